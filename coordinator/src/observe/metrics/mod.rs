//! `--metrics ADDR`: what a command or a PE has counted, as Prometheus scrapes it. What is
//! told is `families`' business, how it is written `exposition`'s, and how it is asked for
//! `server`'s.
//!
//! It is told in the clear and to anybody who reaches the address: numbers, and no messages.

mod exposition;
mod families;
mod server;

use std::io;
use std::net::{SocketAddr, TcpListener};

use flitcast_node::Tally;
use flitcast_proto::PeId;
use thiserror::Error;

use crate::observe::live;
use families::{coordinator, node};
use server::serve;

pub use server::understood;

/// Metrics cannot be had where they were asked for.
#[derive(Debug, Error)]
#[error("--metrics {address}: {source}")]
pub struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// An address at which metrics will be told.
#[derive(Debug)]
pub struct Metrics(TcpListener);

impl Metrics {
    /// Takes the address, if one is asked for, and says on stderr where that is: its port
    /// may be 0, for any.
    ///
    /// # Errors
    ///
    /// It is in use, or none of this machine's.
    pub fn listen(address: Option<SocketAddr>) -> Result<Option<Metrics>, MetricsError> {
        let Some(address) = address else {
            return Ok(None);
        };
        let failed = |source| MetricsError { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        eprintln!("metrics at http://{at}/metrics");
        Ok(Some(Metrics(listener)))
    }

    /// Tells what this process conducts, from now on and as long as the runtime lives, within
    /// which this is called.
    pub fn tell_conducted(self) {
        self.tell(|| coordinator(&live::NOW.totals()));
    }

    /// Tells what a PE has counted.
    pub fn tell_of_pe(self, pe: PeId, tally: Tally) {
        self.tell(move || node(pe, &tally));
    }

    fn tell(self, page: impl Fn() -> String + Send + Sync + 'static) {
        match tokio::net::TcpListener::from_std(self.0) {
            Ok(listener) => drop(tokio::spawn(serve(listener, page))),
            Err(error) => tracing::warn!(%error, "no metrics"),
        }
    }
}
