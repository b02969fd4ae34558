//! Distribution of events to all observers: `flitcast watch` and metrics (`live`), and traces
//! (`otel`).

use crate::job::request::Request;
use crate::observe::event::Event;
use crate::observe::live;
#[cfg(feature = "otel")]
use crate::observe::otel;

/// Passes an event to all observers. [`Event::Ends`] may wait some time for a collector of traces.
pub fn emit(event: Event<'_>) {
    live::NOW.observe(&event);
    #[cfg(feature = "otel")]
    otel::NOW.observe(&event);
}

/// A run on one cluster. Dropping the guard ends the run.
#[derive(Debug)]
pub struct RunGuard(());

impl RunGuard {
    /// Reports that a cluster is being launched for a request.
    #[must_use]
    pub fn launching(request: &Request) -> RunGuard {
        emit(Event::Launching(request));
        RunGuard(())
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        emit(Event::RunEnds);
    }
}
