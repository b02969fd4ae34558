//! The hosts of one launch: how many are called at once, who has the program, and who gets
//! it. Each gets it once, however many PEs it has.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex as Turn, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::binary::Binary;
use super::call::{Call, Word};
use super::copy_plan::{CopyPlan, CopySource};
use super::fault::{NotTaken, SshFault, SshStep};
use super::script::{self, TAKING_S};
use crate::site::ssh::Ssh;

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
/// Hosts that take it from one other at once: they share that one's way out.
const TAKERS: usize = 4;
/// For a host to be called, and to take it or to give up by itself.
const TAKE: Duration = Duration::from_secs(CALL.as_secs() + TAKING_S as u64 + 10);

/// What is to run on a host.
pub struct RemoteCommand {
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
    copy_plan: CopyPlan,
    calls: Semaphore,
    copies: Semaphore,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    beginning: watch::Sender<usize>,
}

struct Host {
    calls: Semaphore,
    /// Whether the program was put there by us.
    copied: Turn<bool>,
    /// Whether it has the program, once that is known.
    has_it: watch::Sender<Option<bool>>,
    /// How others take it from there.
    offer: Turn<Handout>,
    takers: Semaphore,
}

/// Whether a host hands the program out.
enum Handout {
    /// It does, as long as anybody wants the program.
    Made(Weak<Serving>),
    /// It could not, and is not asked again.
    Failed,
}

/// A host that hands the program out until this is dropped.
struct Serving {
    port: u16,
    _call: Call,
}

/// What a host answers.
enum HostAnswer {
    Begins(Box<Begun>),
    /// The program is not there, and the host is of this kind.
    Missing(String),
}

/// Somebody is about to begin, until this is dropped.
pub struct Beginning(watch::Sender<usize>);

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.send_modify(|beginning| *beginning -= 1);
    }
}

/// A try to have a host begin. Others wait for what comes of it, so when it is over, however
/// that came, it is known whether the host has the program.
struct Try<'a>(&'a Host);

impl Drop for Try<'_> {
    fn drop(&mut self) {
        self.0.has_it.send_if_modified(|has_it| {
            let is_unknown = has_it.is_none();
            has_it.get_or_insert(false);
            is_unknown
        });
    }
}

impl Hosts {
    /// Those that are reached so, to run `program` unless another is named; by `copy_plan`, who
    /// lacks it takes it from others.
    ///
    /// # Errors
    ///
    /// The program, which stands with the error, cannot be read.
    pub fn new(
        ssh: &Ssh,
        program: &Path,
        copy_plan: CopyPlan,
    ) -> Result<Hosts, (PathBuf, io::Error)> {
        let program = ssh.binary.as_deref().unwrap_or(program);
        let binary = Binary::read(program).map_err(|error| (program.to_owned(), error))?;
        Ok(Hosts {
            ssh: ssh.clone(),
            binary,
            copy_plan,
            calls: Semaphore::new(CALLS),
            copies: Semaphore::new(COPIES),
            hosts: Mutex::default(),
            beginning: watch::Sender::new(0),
        })
    }

    /// Notes that somebody is about to begin, who is counted until then.
    pub fn beginning(&self) -> Beginning {
        self.beginning.send_modify(|beginning| *beginning += 1);
        Beginning(self.beginning.clone())
    }

    /// Whether somebody is about to begin; each that is has limits of its own.
    pub fn is_busy(&self) -> bool {
        *self.beginning.borrow() > 0
    }

    /// Waits until nobody is.
    pub async fn settled(&self) {
        // Its sender is here.
        let _ = self.beginning.subscribe().wait_for(|left| *left == 0).await;
    }

    /// Has a host do its task, with a copy of the program first if it has none. Given up
    /// half way, it leaves nothing there.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub async fn begin(&self, destination: &str, task: &RemoteCommand) -> Result<Begun, SshFault> {
        let host = self.host(destination);
        let _try = Try(&host);
        let system = match self.call(destination, task).await? {
            HostAnswer::Begins(begun) => {
                host.has_it.send_replace(Some(true));
                return Ok(*begun);
            }
            HostAnswer::Missing(system) => system,
        };
        self.provide(destination, system).await?;
        host.has_it.send_replace(Some(true));
        match self.call(destination, task).await? {
            HostAnswer::Begins(begun) => Ok(*begun),
            HostAnswer::Missing(_) => Err(SshFault::NotThere {
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
                has_it: watch::Sender::new(None),
                offer: Turn::new(Handout::Made(Weak::new())),
                takers: Semaphore::new(TAKERS),
            })
        });
        host.clone()
    }

    async fn call(&self, destination: &str, task: &RemoteCommand) -> Result<HostAnswer, SshFault> {
        let host = self.host(destination);
        // Neither is ever closed.
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let script = script::start(&self.ssh, &self.binary, task);
        let mut call = Call::new(&self.ssh, destination, SshStep::Connecting, script.len())?;
        let input = [&script[..], &task.input].concat();
        let answer = timeout(CALL, call.answer(&input, task.leashed)).await;
        match answer {
            Ok(Some(Word::Begins)) => Ok(HostAnswer::Begins(Box::new(Begun {
                child: call.child,
                stdin: call.stdin,
                stderr: call.stderr,
            }))),
            Ok(Some(Word::Missing(system))) => Ok(HostAnswer::Missing(system)),
            Ok(Some(Word::Serves(_)) | None) => Err(call.failed().await),
            Err(_) => Err(call.late(CALL)),
        }
    }

    /// Gets the program to a host, once: over the tree, or else from here.
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
        let taken = match self.copy_plan.source(destination) {
            None => false,
            Some(source) => match self.take(destination, source).await {
                Ok(()) => true,
                Err(why) => {
                    tracing::info!(destination, %why, "cannot take flitcast from another host");
                    false
                }
            },
        };
        if !taken {
            self.copy(destination).await?;
        }
        *copied = true;
        Ok(())
    }

    /// Copies it from here.
    async fn copy(&self, destination: &str) -> Result<(), SshFault> {
        let _one_of_few = self.copies.acquire().await;
        tracing::info!(destination, name = self.binary.name(), "copying flitcast");
        let script = script::copy(&self.ssh, &self.binary);
        let mut call = Call::new(&self.ssh, destination, SshStep::Copying, script.len())?;
        let done = timeout(COPY, call.copy(&script, &self.binary.content)).await;
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(call.failed().await),
            Err(_) => Err(call.late(COPY)),
        }
    }

    /// Has a host take it from another, once that has it.
    async fn take(&self, destination: &str, source: &CopySource) -> Result<(), NotTaken> {
        let (host, other) = (self.host(destination), self.host(&source.host));
        let mut known = other.has_it.subscribe();
        let known = known.wait_for(Option::is_some).await.map(|it| *it);
        if !matches!(known, Ok(Some(true))) {
            return Err(NotTaken::Lacking(source.host.clone()));
        }
        let serving = self.serving(&source.host, &other).await?;
        // None of them is ever closed.
        let _one_of_few = other.takers.acquire().await;
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let at = SocketAddr::new(source.address, serving.port);
        tracing::info!(destination, from = source.host, at = %at, "taking flitcast");
        let script = script::take(&self.ssh, &self.binary, at);
        let mut call = Call::new(&self.ssh, destination, SshStep::Taking, script.len())?;
        match timeout(TAKE, call.copy(&script, &[])).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(call.failed().await.into()),
            Err(_) => Err(call.late(TAKE).into()),
        }
    }

    /// Has a host hand it out to all that want it at the time.
    async fn serving(&self, destination: &str, host: &Host) -> Result<Arc<Serving>, NotTaken> {
        let mut offer = host.offer.lock().await;
        match &*offer {
            Handout::Failed => return Err(NotTaken::Unserved(destination.to_owned())),
            Handout::Made(serving) => {
                if let Some(serving) = serving.upgrade() {
                    return Ok(serving);
                }
            }
        }
        *offer = Handout::Failed;
        let serving = Arc::new(self.serve(destination, host).await?);
        *offer = Handout::Made(Arc::downgrade(&serving));
        Ok(serving)
    }

    async fn serve(&self, destination: &str, host: &Host) -> Result<Serving, NotTaken> {
        let unserved = || NotTaken::Unserved(destination.to_owned());
        let listen = self.copy_plan.listen(destination).ok_or_else(unserved)?;
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let script = script::serve(&self.ssh, &self.binary, listen);
        let mut call = Call::new(&self.ssh, destination, SshStep::Serving, script.len())?;
        // Its standard input goes on: it ends with that.
        match timeout(CALL, call.answer(&script, true)).await {
            Ok(Some(Word::Serves(port))) => Ok(Serving { port, _call: call }),
            Ok(_) => Err(call.failed().await.into()),
            Err(_) => Err(call.late(CALL).into()),
        }
    }
}
