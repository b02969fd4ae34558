//! Errors of a host before the program runs there, with advice.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// Exit status of `ssh` if ssh itself failed.
pub const SSH_FAILED: i32 = 255;

/// A step of the work with a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SshStep {
    /// Connecting, and looking for the program.
    Connecting,
    /// Copying the program from this machine.
    Copying,
    /// Copying the program from the host of the parent.
    Taking,
    /// Serving the program to other hosts.
    Serving,
}

impl SshStep {
    fn name(self) -> &'static str {
        match self {
            SshStep::Connecting => "connecting",
            SshStep::Copying => "copying flitcast there",
            SshStep::Taking => "taking flitcast from its parent's host",
            SshStep::Serving => "handing flitcast out to others",
        }
    }
}

/// An error of a host before the program runs there.
#[derive(Debug, Error)]
pub enum SshError {
    /// The local ssh cannot be started.
    #[error("cannot start ssh: {0} (Debian and Ubuntu have it in the package openssh-client)")]
    NoSsh(io::Error),
    /// ssh failed, or the script on the host did.
    #[error("ssh {destination}, {}: {}{}", step.name(), told(*status, last_words), advice(destination, *status, last_words))]
    Failed {
        /// Destination of ssh.
        destination: String,
        /// Step that failed.
        step: SshStep,
        /// Exit status of ssh.
        status: ExitStatus,
        /// Last lines on stderr.
        last_words: Vec<String>,
    },
    /// A step exceeded its time limit.
    #[error("ssh {destination}, {}: not done after {} s{}", step.name(), waited.as_secs(), behind(last_words))]
    Late {
        /// Destination of ssh.
        destination: String,
        /// Step that took too long.
        step: SshStep,
        /// The time limit.
        waited: Duration,
        /// Last lines on stderr.
        last_words: Vec<String>,
    },
    /// The host has another system or processor.
    #[error(
        "{destination} is {there}, and this flitcast is for {ours}: build one for it, and name it in the cluster file, [launch] binary = \"PATH\""
    )]
    OtherSystem {
        /// Destination of ssh.
        destination: String,
        /// System of the host, from `uname`.
        there: String,
        /// System that the program is built for.
        ours: String,
    },
    /// The copy of the program disappeared.
    #[error("ssh {destination}: flitcast was copied there, and is not there")]
    NotThere {
        /// Destination of ssh.
        destination: String,
    },
}

/// The reason why a host cannot copy the program from another.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The other host could not be reached or has no copy.
    #[error("{0} has none")]
    Lacking(String),
    /// The other host failed to serve it before.
    #[error("{0} does not hand it out")]
    Unserved(String),
    /// A call to one of the two hosts failed.
    #[error(transparent)]
    Fault(#[from] SshError),
}

fn behind(last_words: &[String]) -> String {
    match last_words.is_empty() {
        true => String::new(),
        false => format!(": {}", last_words.join(" / ")),
    }
}

fn told(status: ExitStatus, last_words: &[String]) -> String {
    match (last_words.is_empty(), status.code()) {
        (false, _) => last_words.join(" / ").trim_end_matches('.').to_owned(),
        (true, Some(SSH_FAILED)) => "it failed without a word".to_owned(),
        (true, Some(code)) => format!("ended with exit status {code}"),
        (true, None) => "was killed".to_owned(),
    }
}

/// Returns advice for a known message of ssh.
fn advice(destination: &str, status: ExitStatus, last_words: &[String]) -> String {
    if status.code() != Some(SSH_FAILED) {
        return String::new();
    }
    let is_said = |what: &str| last_words.iter().any(|line| line.contains(what));
    let login = format!("`ssh {destination}` must log in by itself, without a question");
    let helps = if is_said("Permission denied") {
        format!("{login}: by a key that is in its authorized_keys")
    } else if is_said("Host key verification failed") {
        format!("{login}: call it once by hand, and compare its key")
    } else if is_said("Could not resolve") {
        "say how ssh finds it: ssh = \"USER@HOST\" in its [[pe]], or a Host in ~/.ssh/config"
            .to_owned()
    } else if is_said("Connection refused") {
        "no ssh server is there, or it has another port".to_owned()
    } else if is_said("timed out") || is_said("No route to host") || is_said("unreachable") {
        "nothing answers there".to_owned()
    } else {
        login
    };
    format!("; {helps}")
}
