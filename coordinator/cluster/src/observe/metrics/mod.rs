//! `--metrics ADDR`: counters of a command or a PE for Prometheus. `families` has the metrics and their
//! text, `server` the HTTP server.
//!
//! The page is served unencrypted and without authentication. It contains numbers, never messages.

mod families;
mod server;

use std::net::{SocketAddr, TcpListener};

use anyhow::anyhow;
use flitcast_node::Tally;
use flitcast_proto::PeId;

use crate::observe::live;
use crate::text::stderr;
use families::{coordinator, node};
use server::serve;

pub use server::check_request;

/// A listener at which metrics will be served.
#[derive(Debug)]
pub struct Metrics(TcpListener);

impl Metrics {
    /// Binds the address, if there is one, and prints the bound address on stderr, because the port
    /// may be 0 for any free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use or does not belong to this machine.
    pub fn listen(address: Option<SocketAddr>) -> anyhow::Result<Option<Metrics>> {
        let Some(address) = address else {
            return Ok(None);
        };
        let failed = |error: std::io::Error| anyhow!("--metrics {address}: {error}");
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        stderr::note(format_args!("metrics at http://{at}/metrics"));
        Ok(Some(Metrics(listener)))
    }

    /// Starts to serve the metrics of this process, until the runtime ends. Must be called within a
    /// runtime.
    pub fn serve_coordinator_metrics(self) {
        self.serve_page(|| coordinator(&live::NOW.totals()));
    }

    pub fn serve_pe_metrics(self, pe: PeId, tally: Tally) {
        self.serve_page(move || node(pe, &tally));
    }

    fn serve_page(self, page: impl Fn() -> String + Send + Sync + 'static) {
        match tokio::net::TcpListener::from_std(self.0) {
            Ok(listener) => drop(tokio::spawn(serve(listener, page))),
            Err(error) => tracing::warn!(%error, "no metrics"),
        }
    }
}
