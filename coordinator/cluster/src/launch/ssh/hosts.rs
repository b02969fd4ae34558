//! The hosts of one launch: limits of simultaneous calls, and copies of the program. Each host gets
//! one copy, however many PEs it has.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use anyhow::{anyhow, bail};
use flitcast_proto::{PeId, Tree};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex as Turn, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::binary::Binary;
use super::call::{Call, ScriptMessage};
use super::copy_plan::{CopyPlan, CopySource};
use super::script::{self, RemoteCommand, TAKING_S};
use crate::site::placement::{Launch, Placement, Ssh};
use crate::text::phrases::at;

/// Maximum number of simultaneous calls: each is a local process whose cryptography takes about 10
/// ms of a core. A call no longer counts once its PE has started.
const CALLS: usize = 32;
/// Maximum number of simultaneous calls to one host: an sshd with default settings refuses some
/// from the tenth on.
const CALLS_PER_HOST: usize = 8;
/// Maximum number of simultaneous copies from this machine: they share its network link.
const COPIES: usize = 4;
/// Time limit of a call; ssh itself gives up sooner if the host does not answer.
const CALL: Duration = Duration::from_secs(30);
/// Time limit of a copy of about 10 MB: enough for a link of 1 Mbit/s.
const COPY: Duration = Duration::from_secs(300);
/// Maximum number of hosts that copy from one other host at the same time: they share its network
/// link.
const TAKERS: usize = 4;
/// Time limit of a call in which a host copies the program from another; the script's own limit is
/// shorter.
const TAKE: Duration = Duration::from_secs(CALL.as_secs() + TAKING_S as u64 + 10);

/// A program that was started on a host.
pub struct Begun {
    /// The ssh that started the program and ends with it.
    pub child: Child,
    /// Standard input, if it stays open.
    pub stdin: Option<ChildStdin>,
    pub stderr: mpsc::Receiver<String>,
}

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
    /// Whether this launch has copied the program there.
    copied: Turn<bool>,
    /// Whether the host has the program; `None` until known.
    has_it: watch::Sender<Option<bool>>,
    /// Serves the program while any other host copies it; `None` if that failed once.
    offer: Turn<Option<Weak<Serving>>>,
    takers: Semaphore,
}

/// A host that serves the program until this is dropped.
struct Serving {
    port: u16,
    _call: Call,
}

/// A guard that counts a program as starting until it is dropped.
pub struct Beginning(watch::Sender<usize>);

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.send_modify(|beginning| *beginning -= 1);
    }
}

/// An attempt to start a program on a host. Other hosts wait for its result. Dropping the guard
/// sets the result to "does not have the program" if it is still unknown.
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

fn unserved(destination: &str) -> anyhow::Error {
    anyhow!("{destination} does not hand it out")
}

impl Hosts {
    /// Creates the hosts of these PEs if they are reached by ssh. They run `program` unless the
    /// cluster file names another binary.
    pub fn of(
        placement: &Placement,
        tree: &Tree,
        pes: &[PeId],
        program: &Path,
    ) -> anyhow::Result<Option<Arc<Hosts>>> {
        let Launch::Ssh(ssh) = &placement.launch else {
            return Ok(None);
        };
        let program = ssh.binary.as_deref().unwrap_or(program);
        Ok(Some(Arc::new(Hosts {
            ssh: ssh.clone(),
            binary: Binary::read(program).map_err(at(program))?,
            copy_plan: CopyPlan::new(tree, pes, placement),
            calls: Semaphore::new(CALLS),
            copies: Semaphore::new(COPIES),
            hosts: Mutex::default(),
            beginning: watch::Sender::new(0),
        })))
    }

    pub fn beginning(&self) -> Beginning {
        self.beginning.send_modify(|beginning| *beginning += 1);
        Beginning(self.beginning.clone())
    }

    /// Returns whether any program is starting; each has its own time limits.
    pub fn is_busy(&self) -> bool {
        *self.beginning.borrow() > 0
    }

    /// Waits until no program is starting.
    pub async fn settled(&self) {
        // The sender exists as long as `self`.
        let _ = self.beginning.subscribe().wait_for(|left| *left == 0).await;
    }

    /// Starts a command on a host, after copying the program if the host lacks it. Dropping the
    /// future leaves nothing on the host.
    pub async fn begin(&self, destination: &str, task: &RemoteCommand) -> anyhow::Result<Begun> {
        let host = self.host(destination);
        let _try = Try(&host);
        let system = match self.call(destination, task).await? {
            Ok(begun) => {
                host.has_it.send_replace(Some(true));
                return Ok(begun);
            }
            Err(system) => system,
        };
        self.provide(destination, system).await?;
        host.has_it.send_replace(Some(true));
        let begun = self.call(destination, task).await?;
        begun.map_err(|_| anyhow!("ssh {destination}: flitcast was copied there, and is not there"))
    }

    fn host(&self, destination: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let host = hosts.entry(destination.to_owned()).or_insert_with(|| {
            Arc::new(Host {
                calls: Semaphore::new(CALLS_PER_HOST),
                copied: Turn::new(false),
                has_it: watch::Sender::new(None),
                offer: Turn::new(Some(Weak::new())),
                takers: Semaphore::new(TAKERS),
            })
        });
        host.clone()
    }

    /// Starts the command if the host has the program; returns the name of its system otherwise.
    async fn call(
        &self,
        destination: &str,
        task: &RemoteCommand,
    ) -> anyhow::Result<Result<Begun, String>> {
        let host = self.host(destination);
        // The semaphores are never closed.
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let script = script::start(&self.ssh, &self.binary, task);
        let step = "connecting";
        let mut call = Call::new(&self.ssh, destination, step, script.len())?;
        let input = [&script[..], &task.input].concat();
        let answer = timeout(CALL, call.answer(&input, task.leashed)).await;
        match answer {
            Ok(Some(ScriptMessage::Begins)) => Ok(Ok(Begun {
                child: call.child,
                stdin: call.stdin,
                stderr: call.stderr,
            })),
            Ok(Some(ScriptMessage::Missing(system))) => Ok(Err(system)),
            Ok(Some(ScriptMessage::Serves(_)) | None) => Err(call.failed().await),
            Err(_) => Err(call.late(CALL)),
        }
    }

    /// Copies the program to a host, at most once: from another host, or from this machine if that
    /// fails.
    async fn provide(&self, destination: &str, system: String) -> anyhow::Result<()> {
        if let Some(ours) = self.binary.system.as_ref().filter(|ours| **ours != system) {
            bail!(
                "{destination} is {system}, and this flitcast is for {ours}: build one for it, \
                 and name it in the cluster file, [launch] binary = \"PATH\""
            );
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

    /// Copies the program from this machine.
    async fn copy(&self, destination: &str) -> anyhow::Result<()> {
        let _one_of_few = self.copies.acquire().await;
        tracing::info!(destination, name = self.binary.name(), "copying flitcast");
        let script = script::copy(&self.ssh, &self.binary);
        let step = "copying flitcast there";
        let call = Call::new(&self.ssh, destination, step, script.len())?;
        call.copy_within(COPY, &script, &self.binary.content).await
    }

    /// Makes a host copy the program from another, as soon as that has it.
    async fn take(&self, destination: &str, source: &CopySource) -> anyhow::Result<()> {
        let (host, other) = (self.host(destination), self.host(&source.host));
        let mut known = other.has_it.subscribe();
        let known = known.wait_for(Option::is_some).await.map(|it| *it);
        if !matches!(known, Ok(Some(true))) {
            bail!("{} has none", source.host);
        }
        let serving = self.serving(&source.host, &other).await?;
        // The semaphores are never closed.
        let _one_of_few = other.takers.acquire().await;
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let at = SocketAddr::new(source.address, serving.port);
        tracing::info!(destination, from = source.host, at = %at, "taking flitcast");
        let script = script::take(&self.ssh, &self.binary, at);
        let step = "taking flitcast from its parent's host";
        let call = Call::new(&self.ssh, destination, step, script.len())?;
        call.copy_within(TAKE, &script, &[]).await
    }

    /// Makes a host serve the program; all hosts that copy it at the time share one call.
    async fn serving(&self, destination: &str, host: &Host) -> anyhow::Result<Arc<Serving>> {
        let mut offer = host.offer.lock().await;
        let made = offer.take().ok_or_else(|| unserved(destination))?;
        let serving = match made.upgrade() {
            Some(serving) => serving,
            None => Arc::new(self.serve(destination, host).await?),
        };
        *offer = Some(Arc::downgrade(&serving));
        Ok(serving)
    }

    async fn serve(&self, destination: &str, host: &Host) -> anyhow::Result<Serving> {
        let listen = self.copy_plan.listen(destination);
        let listen = listen.ok_or_else(|| unserved(destination))?;
        let (_at_host, _here) = (host.calls.acquire().await, self.calls.acquire().await);
        let script = script::serve(&self.ssh, &self.binary, listen);
        let step = "handing flitcast out to others";
        let mut call = Call::new(&self.ssh, destination, step, script.len())?;
        // Its standard input stays open: the end of standard input ends the program.
        match timeout(CALL, call.answer(&script, true)).await {
            Ok(Some(ScriptMessage::Serves(port))) => Ok(Serving { port, _call: call }),
            Ok(_) => Err(call.failed().await),
            Err(_) => Err(call.late(CALL)),
        }
    }
}
