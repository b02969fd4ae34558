//! How the process that plays a PE has ended, or that it never began: here, or on a host
//! that ssh reaches.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::launch::ssh::{SSH_FAILED, SshFault};

/// Exit statuses above it are a shell's word for signals.
const SIGNALLED: i32 = 128;
/// There are no more signals.
const SIGNALS: i32 = 64;

/// How a process ended. Shown, it goes on behind the PE's name.
#[derive(Debug)]
pub enum Exit {
    /// A process of this host.
    Here(ExitStatus),
    /// One of another, by the exit status of the shell that has started it there.
    There {
        /// What ssh calls the host.
        destination: String,
        /// What the shell said.
        code: i32,
    },
    /// The ssh in between has ended by itself; what becomes of the process there is its own
    /// channel's end.
    CutOff {
        /// What ssh calls the host.
        destination: String,
        /// How ssh ended.
        ssh: ExitStatus,
    },
    /// It never began.
    NotBegun(SshFault),
}

impl Exit {
    /// What an ssh's end says of the process that it held.
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
        (_, Some(9)) => f.write_str("was killed by signal 9 (SIGKILL)"),
        (_, Some(signal)) => write!(f, "was killed by signal {signal}"),
        _ => f.write_str("ended"),
    }
}
