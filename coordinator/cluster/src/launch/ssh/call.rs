//! One call of `ssh`: its command line, its output, its exit, and its errors with advice.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::anyhow;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::script::{self, BEGINS, MISSING, SERVES};
use crate::site::placement::Ssh;
use crate::text::phrases::{self, keep_last};

/// Time in seconds for ssh to connect and authenticate. It is longer than `connect` of `limits.rs`
/// because ssh also looks up names and checks keys.
const CONNECT_S: u32 = 10;
/// Maximum bytes of a line; longer lines are split.
const LONGEST_LINE: u64 = 16 * 1024;
const LINES: usize = 64;
/// Time for ssh to end after its last output.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// A running ssh whose result is not known yet.
pub struct Call {
    destination: String,
    /// The step of the work with the host, for errors.
    step: &'static str,
    /// The ssh process, which is killed when this is dropped.
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    stdout: Option<mpsc::Receiver<String>>,
    pub stderr: mpsc::Receiver<String>,
    last_lines: Vec<String>,
}

pub enum ScriptMessage {
    /// The output that follows is the program's.
    Begins,
    /// The program is missing; contains the name of the host's system.
    Missing(String),
    Serves(u16),
}

impl Call {
    /// Starts an ssh to a host that runs a script of `script_bytes` bytes.
    pub fn new(
        ssh: &Ssh,
        destination: &str,
        step: &'static str,
        script_bytes: usize,
    ) -> anyhow::Result<Call> {
        let spawned = command(ssh, destination, script_bytes).spawn();
        let mut child = spawned.map_err(|error| {
            let package = "Debian and Ubuntu have it in the package openssh-client";
            anyhow!("cannot start ssh: {error} ({package})")
        })?;
        Ok(Call {
            destination: destination.to_owned(),
            step,
            stdin: child.stdin.take(),
            stdout: Some(lines(child.stdout.take())),
            stderr: lines(child.stderr.take()),
            last_lines: Vec::new(),
            child,
        })
    }

    /// Writes `input` and waits for a message of the script; returns `None` if ssh ends without
    /// one. `keep_open` keeps standard input open.
    pub async fn answer(&mut self, input: &[u8], keep_open: bool) -> Option<ScriptMessage> {
        let mut stdin = self.stdin.take()?;
        let mut stdout = self.stdout.take()?;
        // The pipe holds all of the input, even if it is not read.
        let _ = stdin.write_all(input).await;
        self.stdin = keep_open.then_some(stdin);
        loop {
            tokio::select! {
                Some(line) = stdout.recv() => {
                    if let Some(system) = line.strip_prefix(MISSING) {
                        return Some(ScriptMessage::Missing(system.to_owned()));
                    }
                    let port = line.strip_prefix(SERVES).and_then(|port| port.parse().ok());
                    if let Some(port) = port {
                        return Some(ScriptMessage::Serves(port));
                    }
                }
                Some(line) = self.stderr.recv() => match line == BEGINS {
                    true => return Some(ScriptMessage::Begins),
                    false => keep(&mut self.last_lines, line),
                },
                else => return None,
            }
        }
    }

    /// Writes both parts and waits until ssh has succeeded.
    pub async fn copy_within(
        mut self,
        limit: Duration,
        script: &[u8],
        content: &[u8],
    ) -> anyhow::Result<()> {
        match timeout(limit, self.write_and_wait(script, content)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed().await),
            Err(_) => Err(self.late(limit)),
        }
    }

    /// Writes both parts, waits for the end, and returns whether ssh succeeded.
    async fn write_and_wait(&mut self, script: &[u8], content: &[u8]) -> bool {
        let Some(mut stdin) = self.stdin.take() else {
            return false;
        };
        let writing = async {
            // If writing fails, the exit status contains the reason.
            if stdin.write_all(script).await.is_ok() {
                let _ = stdin.write_all(content).await;
            }
            drop(stdin);
        };
        // A login shell may print text, which is ignored.
        let mut stdout = self.stdout.take();
        let collecting = async {
            while let Some(line) = self.stderr.recv().await {
                keep(&mut self.last_lines, line);
            }
        };
        let ignoring = async {
            if let Some(stdout) = &mut stdout {
                while stdout.recv().await.is_some() {}
            }
        };
        let (_, (), (), status) = tokio::join!(writing, collecting, ignoring, self.child.wait());
        status.is_ok_and(|status| status.success())
    }

    /// Waits for the end and returns it as an error.
    pub async fn failed(mut self) -> anyhow::Error {
        let rest = async {
            let status = self.child.wait().await;
            while let Some(line) = self.stderr.recv().await {
                keep(&mut self.last_lines, line);
            }
            status
        };
        let Ok(Ok(status)) = timeout(LAST_OUTPUT, rest).await else {
            return self.late(LAST_OUTPUT);
        };
        let (destination, step, lines) = (&self.destination, self.step, &self.last_lines);
        let reason = match (lines.is_empty(), status.code()) {
            (false, _) => lines.join(" / ").trim_end_matches('.').to_owned(),
            (true, Some(SSH_FAILED)) => "it failed without a word".to_owned(),
            (true, Some(code)) => format!("ended with exit status {code}"),
            (true, None) => "was killed".to_owned(),
        };
        let advice = advice(destination, status, lines);
        anyhow!("ssh {destination}, {step}: {reason}{advice}")
    }

    /// Returns the error for a call that exceeds its time limit.
    pub fn late(self, limit: Duration) -> anyhow::Error {
        let (destination, step, seconds) = (self.destination, self.step, limit.as_secs());
        let behind = phrases::last_words(": ", &self.last_lines);
        anyhow!("ssh {destination}, {step}: not done after {seconds} s{behind}")
    }
}

/// Returns the `ssh` command that makes a host run a script: the first `script_bytes` of standard
/// input.
fn command(ssh: &Ssh, destination: &str, script_bytes: usize) -> Command {
    let mut command = Command::new("ssh");
    if let Some(config) = &ssh.config {
        command.arg("-F").arg(config);
    }
    // Users and ports in a destination take precedence.
    if let Some(user) = ssh.user.as_ref().filter(|_| !destination.contains('@')) {
        command.args(["-l", user]);
    }
    if let Some(port) = ssh.port.filter(|_| !destination.starts_with("ssh://")) {
        command.args(["-p", &port.to_string()]);
    }
    let connect = format!("ConnectTimeout={CONNECT_S}");
    for option in [
        // No user can enter a password.
        "BatchMode=yes",
        &connect,
        // Turns off what the user's configuration may request for interactive sessions.
        "ClearAllForwardings=yes",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
    ] {
        command.args(["-o", option]);
    }
    command.args(["-T", "--", destination]);
    command.arg(script::command(script_bytes));
    attach(&mut command);
    command
}

/// Connects a command's standard streams to this process, which stops the command when it ends.
pub fn attach(command: &mut Command) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A separate process group, so that Ctrl-C in a terminal reaches the coordinator only; the
        // coordinator stops the others.
        .process_group(0)
        .kill_on_drop(true);
}

/// Returns the lines of a stream, if there is one, as they arrive; invalid UTF-8 is replaced.
pub fn lines(stream: Option<impl AsyncRead + Send + Unpin + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES);
    send_lines(stream, sender);
    receiver
}

/// Starts to send the lines of a stream, if there is one, as [`lines`] returns them.
pub fn send_lines(
    stream: Option<impl AsyncRead + Send + Unpin + 'static>,
    sender: mpsc::Sender<String>,
) {
    tokio::spawn(async move {
        let Some(stream) = stream else { return };
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut part = (&mut stream).take(LONGEST_LINE);
            if let Ok(0) | Err(_) = part.read_until(b'\n', &mut line).await {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            if sender.send(text.trim_end().to_owned()).await.is_err() {
                return;
            }
        }
    });
}

fn keep(last_lines: &mut Vec<String>, line: String) {
    // The message already names ssh.
    let line = line.strip_prefix("ssh: ").unwrap_or(&line).to_owned();
    if !line.is_empty() {
        keep_last(last_lines, line);
    }
}

/// Exit status of `ssh` if ssh itself failed.
pub const SSH_FAILED: i32 = 255;

/// Returns advice for a known message of ssh.
fn advice(destination: &str, status: ExitStatus, last_lines: &[String]) -> String {
    if status.code() != Some(SSH_FAILED) {
        return String::new();
    }
    let mentions = |what: &str| last_lines.iter().any(|line| line.contains(what));
    let login = format!("`ssh {destination}` must log in by itself, without a question");
    let hint = if mentions("Permission denied") {
        format!("{login}: by a key that is in its authorized_keys")
    } else if mentions("Host key verification failed") {
        format!("{login}: call it once by hand, and compare its key")
    } else if mentions("Could not resolve") {
        "say how ssh finds it: ssh = \"USER@HOST\" in its [[pe]], or a Host in ~/.ssh/config"
            .to_owned()
    } else if mentions("Connection refused") {
        "no ssh server is there, or it has another port".to_owned()
    } else if mentions("timed out") || mentions("No route to host") || mentions("unreachable") {
        "nothing answers there".to_owned()
    } else {
        login
    };
    format!("; {hint}")
}
