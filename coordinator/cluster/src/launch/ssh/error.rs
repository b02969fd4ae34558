//! Errors of ssh, with advice.

use std::process::ExitStatus;
use std::time::Duration;

use anyhow::anyhow;

use crate::text::words::last_words;

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

    /// Returns the error for ssh, or the script on the host, that failed with these last lines.
    pub fn failed(self, destination: &str, status: ExitStatus, lines: &[String]) -> anyhow::Error {
        let told = match (lines.is_empty(), status.code()) {
            (false, _) => lines.join(" / ").trim_end_matches('.').to_owned(),
            (true, Some(SSH_FAILED)) => "it failed without a word".to_owned(),
            (true, Some(code)) => format!("ended with exit status {code}"),
            (true, None) => "was killed".to_owned(),
        };
        let advice = advice(destination, status, lines);
        anyhow!("ssh {destination}, {}: {told}{advice}", self.name())
    }

    /// Returns the error for a step that exceeded its time limit, with the last lines on stderr.
    pub fn late(self, destination: &str, limit: Duration, lines: &[String]) -> anyhow::Error {
        let (step, seconds) = (self.name(), limit.as_secs());
        let behind = last_words(": ", lines);
        anyhow!("ssh {destination}, {step}: not done after {seconds} s{behind}")
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
