//! One PE of a cluster: its process, its channel, its events and its end; and the errors of launching a
//! cluster, with the PEs concerned.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use flitcast_node::channel::ChannelError;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Register, ToPe};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::launch::ssh::SSH_FAILED;
use crate::text::phrases;
use crate::text::phrases::signal_named;

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

/// Shells report death by signal `n` as the exit status `SIGNALLED + n`.
const SIGNALLED: i32 = 128;
const SIGNALS: i32 = 64;

/// The end of a process. Its display form follows the PE's name.
#[derive(Debug)]
pub enum Exit {
    /// A process on this host ended.
    Here(ExitStatus),
    /// A process on another host ended, with the exit status of the shell that started it there.
    There {
        /// Destination of ssh.
        destination: String,
        /// Exit status of the shell.
        code: i32,
    },
    /// The ssh connection ended by itself; the remote process ends because its own channel does.
    CutOff {
        /// Destination of ssh.
        destination: String,
        ssh: ExitStatus,
    },
    NotBegun(anyhow::Error),
}

impl Exit {
    /// Derives the end of a remote process from the exit status of its ssh.
    pub fn of_ssh(destination: String, ssh: ExitStatus) -> Exit {
        match ssh.code().filter(|code| *code != SSH_FAILED) {
            Some(code) => Exit::There { destination, code },
            None => Exit::CutOff { destination, ssh },
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Here(status) => ended(f, status.code(), status.signal()),
            Exit::There { destination, code } => {
                let signal = Some(code - SIGNALLED).filter(|s| (1..=SIGNALS).contains(s));
                ended(f, Some(*code).filter(|_| signal.is_none()), signal)?;
                write!(f, " on {destination}")
            }
            Exit::CutOff { destination, ssh } => {
                write!(f, "is cut off: `ssh {destination}` ")?;
                ended(f, ssh.code(), ssh.signal())
            }
            Exit::NotBegun(fault) => write!(f, "cannot be started: {fault}"),
        }
    }
}

fn ended(f: &mut fmt::Formatter<'_>, code: Option<i32>, signal: Option<i32>) -> fmt::Result {
    match (code, signal) {
        (Some(code), _) => write!(f, "ended with exit status {code}"),
        (_, Some(signal)) => write!(f, "was killed by {}", signal_named(signal)),
        _ => f.write_str("ended"),
    }
}

#[derive(Debug, Error)]
#[error("{message}")]
pub struct LaunchError {
    message: String,
    pes: Vec<PeId>,
    others: Vec<Death>,
}

/// A process that ended before it registered.
#[derive(Debug, Error)]
#[error("{pe} {exit}{}{}", too_soon(.exit), phrases::last_words(": ", .last_lines))]
pub struct Death {
    pub pe: PeId,
    pub exit: Exit,
    pub last_lines: Vec<String>,
}

/// An error that is not of a PE: excluding one would not help.
impl From<anyhow::Error> for LaunchError {
    fn from(error: anyhow::Error) -> LaunchError {
        LaunchError::of(Vec::new(), error.to_string())
    }
}

impl LaunchError {
    /// Creates the error of failed PEs.
    pub fn of(pes: Vec<PeId>, message: String) -> LaunchError {
        LaunchError {
            message,
            pes,
            others: Vec::new(),
        }
    }

    /// Creates the error of processes that ended before they registered, at least one. The message
    /// names the first only.
    pub fn died(mut deaths: Vec<Death>) -> LaunchError {
        LaunchError {
            message: deaths[0].to_string(),
            pes: deaths.iter().map(|death| death.pe).collect(),
            others: deaths.split_off(1),
        }
    }

    /// Returns the failed processes besides the one that the message names.
    pub fn others(&self) -> &[Death] {
        &self.others
    }

    pub fn pes(&self) -> &[PeId] {
        &self.pes
    }
}

fn too_soon(exit: &Exit) -> &'static str {
    match exit {
        Exit::NotBegun(_) => "",
        _ => " before it registered",
    }
}
