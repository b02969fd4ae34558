//! An external command that is run for a cluster, with its output and its exit.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::anyhow;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::launch::ssh::{attach, send_lines};
use crate::text::phrases::{keep_last, last_words};

/// Time to read the remaining output after the command has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

pub struct ExternalCommand {
    what: String,
    child: Child,
    output: mpsc::Receiver<String>,
    last_lines: Vec<String>,
}

impl ExternalCommand {
    /// Starts a command; `what` names it in errors. The lines of stdout and stderr are read
    /// together.
    pub fn run(what: &str, command: &mut Command) -> anyhow::Result<ExternalCommand> {
        attach(command);
        let spawned = command.stdin(Stdio::null()).spawn();
        let mut child = spawned.map_err(|error| anyhow!("{what} cannot be run: {error}"))?;
        let (sender, output) = mpsc::channel(1);
        send_lines(child.stdout.take(), sender.clone());
        send_lines(child.stderr.take(), sender);
        Ok(ExternalCommand {
            what: what.to_owned(),
            child,
            output,
            last_lines: Vec::new(),
        })
    }

    /// Returns the process id, until the end of the process has been observed.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the end and calls `on_line` for each line until then.
    pub async fn ended(&mut self, mut on_line: impl FnMut(&str)) -> io::Result<ExitStatus> {
        let status = loop {
            tokio::select! {
                Some(line) = self.output.recv() => self.keep(line, &mut on_line),
                status = self.child.wait() => break status?,
            }
        };
        let rest = async {
            while let Some(line) = self.output.recv().await {
                self.keep(line, &mut on_line);
            }
        };
        // A child process that is left may keep the pipes open.
        let _ = timeout(LAST_OUTPUT, rest).await;
        Ok(status)
    }

    fn keep(&mut self, line: String, on_line: &mut impl FnMut(&str)) {
        on_line(&line);
        if !line.is_empty() {
            keep_last(&mut self.last_lines, line);
        }
    }

    /// Returns the error for a command that ended unexpectedly.
    pub fn failed(self, status: io::Result<ExitStatus>) -> anyhow::Error {
        match status {
            Ok(status) => self.error(&format!("ended with {status}")),
            Err(error) => self.error(&format!("cannot be waited for: {error}")),
        }
    }

    /// Returns the error for a command that exceeded its time limit; the command is killed.
    pub fn late(self, limit: Duration) -> anyhow::Error {
        self.error(&format!("has not ended after {} s", limit.as_secs()))
    }

    fn error(&self, why: &str) -> anyhow::Error {
        anyhow!("{} {why}{}", self.what, last_words(": ", &self.last_lines))
    }
}
