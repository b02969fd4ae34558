//! The end of a PE's process, on this host or on one that is reached by ssh, or the failure to
//! start it.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::launch::ssh::SSH_FAILED;
use crate::text::phrases::signal_named;

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
