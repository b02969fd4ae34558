//! Tells what happens to all who show it: `flitcast watch` and the metrics (`live`), and traces
//! (`otel`).

use crate::job::request::Request;
use crate::observe::event::Event;
use crate::observe::live;
#[cfg(feature = "otel")]
use crate::observe::otel;

/// Tells all who show it. Of [`Event::Ends`], a collector of traces may take some time to hear.
pub fn tell(event: Event<'_>) {
    live::NOW.hear(&event);
    #[cfg(feature = "otel")]
    otel::NOW.hear(&event);
}

/// A run on one cluster, which ends when this is gone.
#[derive(Debug)]
pub struct RunGuard(());

impl RunGuard {
    /// A cluster is being launched for a request.
    #[must_use]
    pub fn launching(request: &Request) -> RunGuard {
        tell(Event::Launching(request));
        RunGuard(())
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        tell(Event::RunEnds);
    }
}
