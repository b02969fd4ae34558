//! What has the PEs of a cluster started that then join: `srun` inside Slurm, or compose. It
//! is begun with the cluster and ends with it; where PEs join and who may is `cluster`'s
//! business.
//!
//! Each cluster has its own, so nobody needs to stay. It begins before the coordinator listens: the
//! address may be of a network that compose makes. A task of Slurm learns its PE from its number and the
//! list that all tasks are given, since a repaired round lacks some.

mod compose;
mod external_command;
mod slurm_step;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use flitcast_proto::PeId;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::launch::log_args::LogArgs;
use crate::observe::console::Console;
use crate::site::guard::Guard;
use crate::site::placement::Place;
use crate::site::starter::Starter;

/// What it is begun with.
#[derive(Debug)]
pub struct Orders {
    /// What plays a PE.
    pub program: PathBuf,
    /// Who is to be played, and where.
    pub pes: Vec<(PeId, Place)>,
    /// Where the coordinator listens for them.
    pub coordinator: SocketAddr,
    /// How connections are guarded.
    pub guard: Guard,
    /// Whether they are to run commands.
    pub commands: bool,
    /// How long they may take to join.
    pub wait: Duration,
    /// How they log.
    pub logs: LogArgs,
    /// Where what they say is told.
    pub console: Console,
}

/// Why nobody was started, or nobody is any more.
#[derive(Debug, Error)]
#[error("{what} {why}{}", match last_words.is_empty() {
    true => String::new(),
    false => format!(": {}", last_words.iter().cloned().collect::<Vec<_>>().join(" / ")),
})]
pub struct StarterError {
    /// What was run.
    what: String,
    /// What became of it.
    why: String,
    /// What it had said last.
    last_words: VecDeque<String>,
}

/// What has begun.
#[derive(Debug)]
pub struct Started {
    end: CancellationToken,
    keeper: JoinHandle<()>,
}

/// What is heard of it.
#[derive(Debug)]
pub struct Hearing {
    /// It has done its part, and PEs may join.
    pub begun: oneshot::Receiver<()>,
    /// It failed, or ended before it was told to.
    pub failed: oneshot::Receiver<StarterError>,
}

impl Starter {
    /// Begins to have them started. Dropped instead of ended, it leaves them to notice.
    pub(in crate::launch) fn start(&self, orders: Orders) -> (Started, Hearing) {
        let (say_begun, begun) = oneshot::channel();
        let (say_failed, failed) = oneshot::channel();
        let end = CancellationToken::new();
        let (starter, told) = (self.clone(), end.clone());
        let keeper = tokio::spawn(async move {
            let kept = match starter {
                Starter::Slurm(step) => step.keep(orders, say_begun, told).await,
                Starter::Compose(compose) => compose.keep(orders, say_begun, told).await,
            };
            if let Err(error) = kept {
                // Once all are there, nobody asks: their channels tell.
                let _ = say_failed.send(error);
            }
        });
        (Started { end, keeper }, Hearing { begun, failed })
    }
}

impl Started {
    /// Ends what is left of it, and waits until that is done.
    pub async fn end(self) {
        self.end.cancel();
        // Everything that it waits for has a limit of its own.
        let _ = self.keeper.await;
    }
}
