//! What can go wrong with a host before anything of ours runs there, and what helps.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// `ssh` could not do what it does itself.
pub const SSH_FAILED: i32 = 255;

/// What is being done with a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SshStep {
    /// It is called, and its program looked for.
    Connecting,
    /// The program is copied there.
    Copying,
    /// It takes the program from the host of its PE's parent.
    Taking,
    /// It hands the program out to others.
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

/// Why nothing of ours runs on a host.
#[derive(Debug, Error)]
pub enum SshFault {
    /// There is no ssh here.
    #[error("cannot start ssh: {0} (Debian and Ubuntu have it in the package openssh-client)")]
    NoSsh(io::Error),
    /// ssh did not get there, or the host did not do what it was asked for.
    #[error("ssh {destination}, {}: {}{}", step.name(), told(*status, last_words), advice(destination, *status, last_words))]
    Failed {
        /// Whom it was to reach.
        destination: String,
        /// What was being done.
        step: SshStep,
        /// How ssh ended.
        status: ExitStatus,
        /// What was said on stderr last.
        last_words: Vec<String>,
    },
    /// It takes too long.
    #[error("ssh {destination}, {}: not done after {} s{}", step.name(), waited.as_secs(), behind(last_words))]
    Late {
        /// Whom it was to reach.
        destination: String,
        /// What was being done.
        step: SshStep,
        /// For how long.
        waited: Duration,
        /// What was said on stderr last.
        last_words: Vec<String>,
    },
    /// A host of another kind.
    #[error(
        "{destination} is {there}, and this flitcast is for {ours}: build one for it, and name it in the cluster file, [launch] binary = \"PATH\""
    )]
    OtherSystem {
        /// The host.
        destination: String,
        /// What it is, by `uname`.
        there: String,
        /// What the program is for.
        ours: String,
    },
    /// What was copied is gone.
    #[error("ssh {destination}: flitcast was copied there, and is not there")]
    NotThere {
        /// The host.
        destination: String,
    },
}

/// Why a host does not take the program from another one.
#[derive(Debug, Error)]
pub enum NotTaken {
    /// The other one could not be reached, or got none.
    #[error("{0} has none")]
    Lacking(String),
    /// The other one was asked for it before, in vain.
    #[error("{0} does not hand it out")]
    Unserved(String),
    /// One of the two failed.
    #[error(transparent)]
    Fault(#[from] SshFault),
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

/// What helps against what ssh says.
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
