//! The hosts of one launch: how many are called at once, who has the program, and who gets
//! it. Each gets it once, however many PEs it has.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex as Turn, Semaphore, mpsc};
use tokio::time::timeout;

use super::Ssh;
use super::binary::Binary;
use super::call::{command, lines};
use super::fault::{SshFault, Step};
use super::script::{self, BEGINS, MISSING};

/// Calls that are under way at once: each is a process here that reckons with keys, some
/// 10 ms of a core. Once a PE begins, its call counts no more.
const CALLS: usize = 32;
/// And at one host: a server that nobody has set up otherwise turns some away from 10 on.
const CALLS_PER_HOST: usize = 8;
/// Copies at once: they share this machine's way out.
const COPIES: usize = 4;
/// For a host to be called and to answer; ssh itself gives up sooner where nobody does.
const CALL: Duration = Duration::from_secs(30);
/// For a copy, 10 MB or so: a host behind 1 Mbit/s has the time.
const COPY: Duration = Duration::from_secs(300);
/// For an ssh that has said all to end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Lines of last words that are kept.
const KEPT: usize = 3;

/// What is to run on a host.
pub struct Task {
    /// What stands before the program.
    pub prefix: Vec<OsString>,
    /// What the program is told as arguments.
    pub arguments: Vec<OsString>,
    /// And on its standard input.
    pub input: Vec<u8>,
    /// Whether its standard input goes on behind that, as long as who began it wants.
    pub leashed: bool,
}

/// What runs on a host.
pub struct Begun {
    /// The ssh that brought it there, and ends with it.
    pub child: Child,
    /// Its standard input, if that goes on.
    pub stdin: Option<ChildStdin>,
    /// What it says on stderr.
    pub stderr: mpsc::Receiver<String>,
}

/// The hosts of a launch.
pub struct Hosts {
    ssh: Ssh,
    binary: Binary,
    calls: Semaphore,
    copies: Semaphore,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    beginning: AtomicUsize,
}

struct Host {
    calls: Semaphore,
    /// Whether the program was copied there by us.
    copied: Turn<bool>,
}

/// What a host answers.
enum Answer {
    Begins(Box<Begun>),
    /// The program is not there, and the host is of this kind.
    Missing(String),
}

/// What a script says to us.
enum Word {
    Begins,
    Missing(String),
}

/// Counts one that is about to begin.
struct Beginning<'a>(&'a AtomicUsize);

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Hosts {
    /// Those that are reached so, to run `program` unless another is named.
    ///
    /// # Errors
    ///
    /// The program, which stands with the error, cannot be read.
    pub fn new(ssh: &Ssh, program: &Path) -> Result<Hosts, (PathBuf, io::Error)> {
        let program = ssh.binary.as_deref().unwrap_or(program);
        let binary = Binary::read(program).map_err(|error| (program.to_owned(), error))?;
        Ok(Hosts {
            ssh: ssh.clone(),
            binary,
            calls: Semaphore::new(CALLS),
            copies: Semaphore::new(COPIES),
            hosts: Mutex::default(),
            beginning: AtomicUsize::new(0),
        })
    }

    /// Whether somebody is about to begin; each that is has limits of its own.
    pub fn is_busy(&self) -> bool {
        self.beginning.load(Relaxed) > 0
    }

    /// Has a host do its task, with a copy of the program first if it has none. Given up
    /// half way, it leaves nothing there.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub async fn begin(&self, destination: &str, task: &Task) -> Result<Begun, SshFault> {
        self.beginning.fetch_add(1, Relaxed);
        let _beginning = Beginning(&self.beginning);
        let system = match self.call(destination, task).await? {
            Answer::Begins(begun) => return Ok(*begun),
            Answer::Missing(system) => system,
        };
        self.provide(destination, system).await?;
        match self.call(destination, task).await? {
            Answer::Begins(begun) => Ok(*begun),
            Answer::Missing(_) => Err(SshFault::NotThere {
                destination: destination.to_owned(),
            }),
        }
    }

    fn host(&self, destination: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let host = hosts.entry(destination.to_owned()).or_insert_with(|| {
            Arc::new(Host {
                calls: Semaphore::new(CALLS_PER_HOST),
                copied: Turn::new(false),
            })
        });
        host.clone()
    }

    async fn call(&self, destination: &str, task: &Task) -> Result<Answer, SshFault> {
        let host = self.host(destination);
        // Neither is ever closed.
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let script = script::start(&self.ssh, &self.binary, task);
        let mut call = Call::new(&self.ssh, destination, Step::Connecting, script.len())?;
        let input = [&script[..], &task.input].concat();
        let answer = timeout(CALL, call.answer(&input, task.leashed)).await;
        match answer {
            Ok(Some(Word::Begins)) => Ok(Answer::Begins(Box::new(Begun {
                child: call.child,
                stdin: call.stdin,
                stderr: call.stderr,
            }))),
            Ok(Some(Word::Missing(system))) => Ok(Answer::Missing(system)),
            Ok(None) => Err(call.failed().await),
            Err(_) => Err(call.late(CALL)),
        }
    }

    /// Copies the program to a host, once.
    async fn provide(&self, destination: &str, system: String) -> Result<(), SshFault> {
        if let Some(ours) = self.binary.system.as_ref().filter(|ours| **ours != system) {
            return Err(SshFault::OtherSystem {
                destination: destination.to_owned(),
                there: system,
                ours: ours.clone(),
            });
        }
        let host = self.host(destination);
        let mut copied = host.copied.lock().await;
        if *copied {
            return Ok(());
        }
        let _one_of_few = self.copies.acquire().await;
        tracing::info!(destination, name = self.binary.name(), "copying flitcast");
        let script = script::copy(&self.ssh, &self.binary);
        let mut call = Call::new(&self.ssh, destination, Step::Copying, script.len())?;
        let done = timeout(COPY, call.copy(&script, &self.binary.content)).await;
        match done {
            Ok(true) => {
                *copied = true;
                Ok(())
            }
            Ok(false) => Err(call.failed().await),
            Err(_) => Err(call.late(COPY)),
        }
    }
}

/// An ssh that runs, until it is known what it is good for.
struct Call {
    destination: String,
    step: Step,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<mpsc::Receiver<String>>,
    stderr: mpsc::Receiver<String>,
    last_words: Vec<String>,
}

impl Call {
    fn new(
        ssh: &Ssh,
        destination: &str,
        step: Step,
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
    async fn answer(&mut self, input: &[u8], goes_on: bool) -> Option<Word> {
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
    async fn copy(&mut self, script: &[u8], content: &[u8]) -> bool {
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
    async fn failed(mut self) -> SshFault {
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

    fn late(self, waited: Duration) -> SshFault {
        SshFault::Late {
            destination: self.destination,
            step: self.step,
            waited,
            last_words: self.last_words,
        }
    }
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
