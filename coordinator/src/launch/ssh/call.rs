//! One call of `ssh`: its command line, what it and the host say, and how it ended.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::fault::{SshFault, SshStep};
use super::script::{self, BEGINS, MISSING, SERVES};
use crate::site::ssh::Ssh;

/// For a host to answer, with all that ssh does before its first word of ours, in seconds.
/// Above `connect` of `limits.rs`: names are looked up and keys checked on the way.
const CONNECT_S: u32 = 10;
/// Longer lines are cut: nobody needs more of them.
const LONGEST_LINE: u64 = 16 * 1024;
/// Lines that wait to be looked at.
const LINES: usize = 64;
/// For an ssh that has said all to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Lines of last words that are kept.
const KEPT: usize = 3;

/// An ssh that runs, until it is known what it is good for.
pub struct Call {
    destination: String,
    step: SshStep,
    /// The ssh, which ends with this.
    pub child: Child,
    /// Its standard input, if that goes on.
    pub stdin: Option<ChildStdin>,
    stdout: Option<mpsc::Receiver<String>>,
    /// What it says on stderr.
    pub stderr: mpsc::Receiver<String>,
    last_words: Vec<String>,
}

/// What a script says to us.
pub enum Word {
    /// From here on, it is the program that speaks.
    Begins,
    /// The program is not there, and the host is of this kind.
    Missing(String),
    /// The program is handed out at this port.
    Serves(u16),
}

impl Call {
    /// Has a host called, to do a script of so many bytes.
    ///
    /// # Errors
    ///
    /// There is no ssh here.
    pub fn new(
        ssh: &Ssh,
        destination: &str,
        step: SshStep,
        script_bytes: usize,
    ) -> Result<Call, SshFault> {
        let mut child = command(ssh, destination, script_bytes)
            .spawn()
            .map_err(SshFault::NoSsh)?;
        let empty = || mpsc::channel(1).1;
        Ok(Call {
            destination: destination.to_owned(),
            step,
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(lines),
            stderr: child.stderr.take().map_or_else(empty, lines),
            last_words: Vec::new(),
            child,
        })
    }

    /// Says `input`, which may be all, and waits for a word of the script's; `None` if it ends
    /// without one.
    pub async fn answer(&mut self, input: &[u8], goes_on: bool) -> Option<Word> {
        let mut stdin = self.stdin.take()?;
        let mut stdout = self.stdout.take()?;
        // A pipe holds it all, whether it is read or not.
        let _ = stdin.write_all(input).await;
        self.stdin = goes_on.then_some(stdin);
        loop {
            tokio::select! {
                Some(line) = stdout.recv() => {
                    if let Some(system) = line.strip_prefix(MISSING) {
                        return Some(Word::Missing(system.to_owned()));
                    }
                    let port = line.strip_prefix(SERVES).and_then(|port| port.parse().ok());
                    if let Some(port) = port {
                        return Some(Word::Serves(port));
                    }
                }
                Some(line) = self.stderr.recv() => match line == BEGINS {
                    true => return Some(Word::Begins),
                    false => keep(&mut self.last_words, line),
                },
                else => return None,
            }
        }
    }

    /// Says both, waits for the end, and tells whether it is a good one.
    pub async fn copy(&mut self, script: &[u8], content: &[u8]) -> bool {
        let Some(mut stdin) = self.stdin.take() else {
            return false;
        };
        let saying = async {
            // Why nobody reads any more, the end says.
            if stdin.write_all(script).await.is_ok() {
                let _ = stdin.write_all(content).await;
            }
            drop(stdin);
        };
        // A login shell may say much, which nobody wants to know.
        let mut stdout = self.stdout.take();
        let hearing = async {
            while let Some(line) = self.stderr.recv().await {
                keep(&mut self.last_words, line);
            }
        };
        let ignoring = async {
            if let Some(stdout) = &mut stdout {
                while stdout.recv().await.is_some() {}
            }
        };
        let (_, (), (), status) = tokio::join!(saying, hearing, ignoring, self.child.wait());
        status.is_ok_and(|status| status.success())
    }

    /// What has become of it.
    pub async fn failed(mut self) -> SshFault {
        let rest = async {
            let status = self.child.wait().await;
            while let Some(line) = self.stderr.recv().await {
                keep(&mut self.last_words, line);
            }
            status
        };
        match timeout(LAST_WORDS, rest).await {
            Ok(Ok(status)) => SshFault::Failed {
                destination: self.destination,
                step: self.step,
                status,
                last_words: self.last_words,
            },
            _ => self.late(LAST_WORDS),
        }
    }

    /// That it takes too long.
    pub fn late(self, waited: Duration) -> SshFault {
        SshFault::Late {
            destination: self.destination,
            step: self.step,
            waited,
            last_words: self.last_words,
        }
    }
}

/// `ssh` that has a host do a script of so many bytes, which standard input begins with.
fn command(ssh: &Ssh, destination: &str, script_bytes: usize) -> Command {
    let mut command = Command::new("ssh");
    if let Some(config) = &ssh.config {
        command.arg("-F").arg(config);
    }
    // What a destination says itself is not overridden.
    if let Some(user) = ssh.user.as_ref().filter(|_| !destination.contains('@')) {
        command.args(["-l", user]);
    }
    if let Some(port) = ssh.port.filter(|_| !destination.starts_with("ssh://")) {
        command.args(["-p", &port.to_string()]);
    }
    let connect = format!("ConnectTimeout={CONNECT_S}");
    for option in [
        // Nobody is there to type a password.
        "BatchMode=yes",
        &connect,
        // What the user's configuration may ask for in sessions of another kind.
        "ClearAllForwardings=yes",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
    ] {
        command.args(["-o", option]);
    }
    command
        .args(["-T", "--", destination])
        .arg(script::command(script_bytes))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The terminal's Ctrl-C is for the coordinator; it tells the others.
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// The lines of a stream, whatever they hold, as they come.
pub fn lines(stream: impl AsyncRead + Send + Unpin + 'static) -> mpsc::Receiver<String> {
    let (say, said) = mpsc::channel(LINES);
    tokio::spawn(async move {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut stream)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)
                .await
            {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if say.send(text.trim_end().to_owned()).await.is_err() {
                return;
            }
        }
    });
    said
}

fn keep(last_words: &mut Vec<String>, line: String) {
    // Who speaks is said already.
    let line = line.strip_prefix("ssh: ").unwrap_or(&line).to_owned();
    if line.is_empty() {
        return;
    }
    if last_words.len() == KEPT {
        last_words.remove(0);
    }
    last_words.push(line);
}
