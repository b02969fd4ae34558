//! Starters of PEs that then join: `srun` inside Slurm, or compose. A starter begins and ends with
//! its cluster; `cluster` defines where PEs join and which may.
//!
//! Each cluster has its own starter, so PEs need not stay. The starter begins before the
//! coordinator listens, because the address may belong to a network that compose creates. A Slurm
//! task derives its PE from its task number and the list of PEs, because a repaired round lacks
//! some PEs.

mod compose;
mod external_command;
mod slurm_step;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use flitcast_proto::PeId;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::observe::console::Console;
use crate::site::guard::Guard;
use crate::site::placement::{Place, Starter};

/// The parameters of a starter.
#[derive(Debug)]
pub struct StarterConfig {
    /// Program that runs a PE.
    pub program: PathBuf,
    pub pes: Vec<(PeId, Place)>,
    /// Address where the coordinator listens for them.
    pub coordinator: SocketAddr,
    /// Security of connections.
    pub guard: Guard,
    pub commands: bool,
    pub wait: Duration,
    pub logs: Vec<String>,
    pub console: Console,
}

/// A running starter.
#[derive(Debug)]
pub struct Started {
    end: CancellationToken,
    keeper: JoinHandle<()>,
}

impl Starter {
    /// Starts the starter. The first channel reports that PEs may join, the second one that the
    /// starter has failed or ended too early. If `Started` is dropped without `end`, the PEs have to
    /// notice the end of the cluster themselves.
    pub fn start(
        &self,
        orders: StarterConfig,
    ) -> (
        Started,
        oneshot::Receiver<()>,
        oneshot::Receiver<anyhow::Error>,
    ) {
        let (begun_sender, begun) = oneshot::channel();
        let (failed_sender, failed) = oneshot::channel();
        let end = CancellationToken::new();
        let (starter, ending) = (self.clone(), end.clone());
        let keeper = tokio::spawn(async move {
            let kept = match starter {
                Starter::Slurm(step) => step.keep(orders, begun_sender, ending).await,
                Starter::Compose(compose) => compose.keep(orders, begun_sender, ending).await,
            };
            if let Err(error) = kept {
                // Once all PEs have joined, the receiver is gone; their channels report failures
                // then.
                let _ = failed_sender.send(error);
            }
        });
        (Started { end, keeper }, begun, failed)
    }
}

impl Started {
    /// Ends the starter and waits until that is done.
    pub async fn end(self) {
        self.end.cancel();
        // Each step of the keeper task has its own time limit.
        let _ = self.keeper.await;
    }
}
