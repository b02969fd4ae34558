//! One PE of a cluster: its process, its channel and its events.

use std::net::SocketAddr;

use flitcast_node::channel::ChannelError;
use flitcast_proto::wire::control::{FromPe, Register, ToPe};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::exit::Exit;

/// An event of one PE.
#[derive(Debug)]
pub enum PeEvent {
    Reply(FromPe),
    /// The PE's channel ended, or failed with an error.
    ChannelEnded(Option<ChannelError>),
    /// The PE's process ended; with its last lines on stderr.
    Exited(Exit, Vec<String>),
}

#[derive(Debug)]
pub struct Member {
    /// The process; `None` if it has joined.
    pub process: Option<Process>,
    /// Registration and address; `None` until the process registers.
    pub register: Option<(Register, SocketAddr)>,
    pub queue: Option<mpsc::Sender<ToPe>>,
    /// Whether a process that has joined will join the next cluster as well.
    pub stays: bool,
    pub commands: bool,
    /// Whether its process has ended; if it has joined, whether its channel has.
    pub exited: bool,
    /// Whether no more events are expected from it, even if its process still runs.
    pub given_up: bool,
    /// The task that owns the channel: aborting it closes the channel.
    pub conversation: Option<AbortHandle>,
}

/// A process that was started here, locally or over ssh.
#[derive(Debug)]
pub struct Process {
    /// Process id; `None` if it runs on another host.
    pub pid: Option<u32>,
    /// Token that makes the keeper task kill the process.
    pub kill: CancellationToken,
    /// The task that owns the process: aborting it kills the process.
    pub keeper: JoinHandle<()>,
}

impl Member {
    /// Creates a member that has not registered.
    pub fn new(process: Option<Process>) -> Member {
        Member {
            process,
            register: None,
            queue: None,
            stays: false,
            commands: false,
            exited: false,
            given_up: false,
            conversation: None,
        }
    }

    /// Closes the channel at once.
    pub fn hang_up(&self) {
        if let Some(conversation) = &self.conversation {
            conversation.abort();
        }
    }

    /// Returns whether [`Cluster::stop`] waits for this member to end. It does not wait for a
    /// joined process whose channel is lost, or that never registered.
    pub fn is_waited_for(&self) -> bool {
        let expected = self.process.is_some() || (self.register.is_some() && !self.given_up);
        !self.exited && expected
    }
}
