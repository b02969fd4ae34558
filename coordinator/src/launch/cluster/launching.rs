//! Launching a cluster: processes are started here, over ssh, or join, until all have registered.
//! `cluster.rs` handles them afterwards.
//!
//! If one host fails, the launch fails, but the calls to other hosts are awaited for some time, so
//! that the error names all failed PEs (`LaunchError::others`) and `--retry` excludes them
//! together.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flitcast_node::door::{Door, listen};
use flitcast_node::limits::Timeouts;
use flitcast_proto::{PeId, Tree};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::conversation::converse;
use super::greeting::{Greeter, Newcomer};
use super::joining::Joining;
use super::process::{Start, Telling, arguments, command, keep, play};
use super::{Cluster, Death, Heard, LaunchError, Member, Process, remote};
use crate::launch::log_args::LogArgs;
use crate::launch::ssh::{CopyPlan, Hosts, RemoteCommand};
use crate::launch::starter::{Orders, StarterError};
use crate::observe::console::Console;
use crate::site::guard::{Guard, Guarded};
use crate::site::kept;
use crate::site::placement::{Launch, Placement};

/// Time for all processes to start and register. Two idle cores start 64 in about 60 ms, so a
/// thousand on a busy machine have enough time.
pub(super) const LAUNCH: Duration = Duration::from_secs(30);
/// Time for the other hosts to start or fail after the first has failed over ssh. For an
/// unreachable host, ssh gives up after 10 s.
const OTHERS: Duration = Duration::from_secs(15);
/// Capacity of the queue of events; each PE answers two pings per second.
const EVENTS: usize = 4096;
/// Capacity of the queue of messages to a PE. No further message is sent before the PE has
/// answered.
const WORDS: usize = 64;

/// The parameters of a launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchPlan<'a> {
    /// Program that runs a PE.
    pub program: &'a Path,
    /// PEs to launch.
    pub pes: &'a [PeId],
    /// Tree of these PEs.
    pub tree: &'a Tree,
    /// Hosts and addresses of the PEs.
    pub placement: &'a Placement,
    /// Security of connections.
    pub guard: &'a Guard,
    /// Whether further clusters may follow this one.
    pub again: bool,
    /// Whether all PEs must join, or those that join in time are enough.
    pub require_all: bool,
    /// Whether the PEs must run commands, in this cluster or in one that follows.
    pub commands: bool,
    /// Logging of the processes that are started.
    pub logs: &'a LogArgs,
    /// Time limits.
    pub timeouts: &'a Timeouts,
}

impl LaunchPlan<'_> {
    /// Returns the parameters of a starter.
    fn orders(&self, console: &Console) -> Orders {
        let (port, wait) = match self.placement.launch {
            Launch::Join { port, wait, .. } => (port, wait),
            Launch::Local | Launch::Ssh(_) => (0, LAUNCH),
        };
        let place = |&pe: &PeId| (pe, self.placement.places[pe.index()].clone());
        Orders {
            program: self.program.to_owned(),
            pes: self.pes.iter().map(place).collect(),
            coordinator: SocketAddr::new(self.placement.coordinator, port),
            guard: self.guard.clone(),
            commands: self.commands,
            wait,
            logs: self.logs.clone(),
            console: console.clone(),
        }
    }
}

/// Waits for the failure of the starter; never returns if there is no starter or no failure.
async fn failure(failed: Option<oneshot::Receiver<StarterError>>) -> StarterError {
    match failed {
        Some(failed) => match failed.await {
            Ok(error) => error,
            Err(_) => pending().await,
        },
        None => pending().await,
    }
}

impl Cluster {
    /// Starts a process for each PE, or waits for those that join, until all have registered or the
    /// launch is cancelled.
    pub async fn launch(
        plan: LaunchPlan<'_>,
        console: &Console,
        given_up: &CancellationToken,
    ) -> Result<Cluster, LaunchError> {
        let LaunchPlan {
            program,
            pes,
            tree,
            placement,
            guard,
            logs,
            timeouts,
            ..
        } = plan;
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::Io { what, source }
        };
        let guarded = Guarded::new(guard)?;
        let (port, listening) = match placement.launch {
            Launch::Local | Launch::Ssh(_) => (0, placement.coordinator.to_string()),
            Launch::Join { port, .. } => {
                let address = SocketAddr::new(placement.coordinator, port);
                (port, address.to_string())
            }
        };
        let listening = format!("cannot listen on {listening} for the PEs");
        let (heard, events) = mpsc::channel(EVENTS);
        let mut cluster = Cluster {
            id: guarded.cluster,
            members: BTreeMap::new(),
            events,
            kill: CancellationToken::new(),
            timeouts: *timeouts,
            look: Arc::default(),
            started: None,
        };
        let (begun, failed) = match placement.starter() {
            Some(starter) => {
                let (started, hearing) = starter.start(plan.orders(console));
                cluster.started = Some(started);
                (Some(hearing.begun), Some(hearing.failed))
            }
            None => (None, None),
        };
        let launched = async {
            // Compose may have to create the network that has the address first.
            if let Some(begun) = begun {
                // The starter reports why it did not begin.
                let Ok(()) = begun.await else {
                    return pending().await;
                };
            }
            let listener = listen((placement.coordinator, port).into()).map_err(io(&listening))?;
            let address = listener.local_addr().map_err(io(&listening))?;
            if let Some(kept) = &placement.kept {
                kept::call(&kept.folder);
            }
            if let Launch::Join { wait, .. } = placement.launch {
                let joining = Joining::new(&plan, address, wait);
                let joined = cluster.join_all(joining, &listener, &guarded, &heard, console);
                return joined.await;
            }
            let hosts = match &placement.launch {
                Launch::Ssh(ssh) => {
                    let hosts = Hosts::new(ssh, program, CopyPlan::new(tree, pes, placement));
                    Some(hosts.map_err(|(path, source)| {
                        let what = format!("cannot read {}", path.display());
                        LaunchError::Io { what, source }
                    })?)
                }
                _ => None,
            };
            let hosts = hosts.map(Arc::new);
            for &pe in pes {
                let place = &placement.places[pe.index()];
                let start = Start {
                    place,
                    coordinator: address,
                    credentials: guard.folder(),
                    admission: guarded.admission(pe)?.written(),
                };
                let telling = Telling {
                    pe,
                    console: console.clone(),
                };
                match &hosts {
                    None => {
                        let command = command(program, place, logs);
                        cluster.start(pe, command, start, telling, &heard)?;
                    }
                    Some(hosts) => {
                        cluster.start_there(pe, hosts, start, &logs.args, telling, &heard);
                    }
                }
            }
            {
                let registering =
                    cluster.register_all(&listener, &guarded, &heard, hosts.as_deref());
                let mut registering = std::pin::pin!(registering);
                loop {
                    match timeout(LAUNCH, &mut registering).await {
                        Ok(registered) => return registered,
                        // Each step over ssh has its own time limit.
                        Err(_) if hosts.as_ref().is_some_and(|hosts| hosts.is_busy()) => {}
                        Err(_) => break,
                    }
                }
            }
            let missing = cluster.missing();
            Err(LaunchError::Missing { missing })
        };
        // The listener is closed here, so a process that connects later is refused.
        let launched = tokio::select! {
            launched = launched => launched,
            error = failure(failed) => Err(LaunchError::Starter(error)),
            () = given_up.cancelled() => Err(LaunchError::GivenUp),
        };
        match launched {
            Ok(()) => Ok(cluster),
            // Processes that have joined receive a request to stop; they join the next cluster or
            // end.
            Err(error) if placement.is_joined() => {
                cluster.stop(false, pending()).await;
                Err(error)
            }
            Err(error) => {
                cluster.kill().await;
                Err(error)
            }
        }
    }

    /// Starts the process of a PE on this host.
    fn start(
        &mut self,
        pe: PeId,
        mut command: Command,
        start: Start<'_>,
        telling: Telling,
        heard: &mpsc::Sender<(PeId, Heard)>,
    ) -> Result<(), LaunchError> {
        let child = play(&mut command, pe, &start, &self.timeouts).map_err(|source| {
            let program = command.as_std().get_program().display();
            let what = format!("cannot start a process: {program}");
            LaunchError::Io { what, source }
        })?;
        let (heard, kill) = (heard.clone(), self.kill.child_token());
        let process = Process {
            pid: child.id(),
            kill: kill.clone(),
            keeper: tokio::spawn(keep(pe, child, start.admission, telling, heard, kill)),
        };
        self.members.insert(pe, Member::new(Some(process)));
        Ok(())
    }

    /// Starts the process of a PE on another host, as soon as it is reached.
    fn start_there(
        &mut self,
        pe: PeId,
        hosts: &Arc<Hosts>,
        start: Start<'_>,
        log_args: &[String],
        telling: Telling,
        heard: &mpsc::Sender<(PeId, Heard)>,
    ) {
        let place = start.place;
        let mut told: Vec<OsString> = log_args.iter().map(OsString::from).collect();
        told.extend(arguments(pe, &start, &self.timeouts));
        let task = RemoteCommand {
            prefix: place.run.iter().map(OsString::from).collect(),
            arguments: told,
            input: start.admission,
            leashed: false,
        };
        let destination = place.destination();
        let (heard, kill) = (heard.clone(), self.kill.child_token());
        let keeping = remote::keep(
            pe,
            hosts.clone(),
            destination,
            task,
            telling,
            heard,
            kill.clone(),
        );
        let process = Process {
            pid: None,
            kill,
            keeper: tokio::spawn(keeping),
        };
        self.members.insert(pe, Member::new(Some(process)));
    }

    async fn register_all(
        &mut self,
        listener: &TcpListener,
        guarded: &Guarded,
        heard: &mpsc::Sender<(PeId, Heard)>,
        hosts: Option<&Hosts>,
    ) -> Result<(), LaunchError> {
        let greeter = self.greeter(guarded, None);
        let mut door = Door::new(
            listener,
            self.places(hosts.is_some()),
            self.timeouts.greeting(),
        );
        let mut missing = self.missing().len();
        let mut deaths = Vec::new();
        let mut enough = None;
        while missing > 0 {
            tokio::select! {
                newcomer = door.next(|caller| greeter.clone().greet(caller)) => {
                    let (pe, address) = (newcomer.register.pe, newcomer.address);
                    let Some(member) = self.members.get(&pe) else { continue };
                    // The process has the secret of this launch, so this is a mistake and not an
                    // attack.
                    if let Some(why) = newcomer.disguise {
                        return Err(LaunchError::Disguised { pe, address, why });
                    }
                    if let Some((_, first)) = member.register {
                        return Err(LaunchError::Twice { pe, first, second: address });
                    }
                    self.let_in(newcomer, heard);
                    missing -= 1;
                }
                Some((pe, event)) = self.events.recv() => {
                    if let Heard::Exited(exit, last_words) = event {
                        tracing::info!(%pe, "{exit}");
                        deaths.push(Death { pe, exit, last_words });
                        enough.get_or_insert_with(|| Instant::now() + OTHERS);
                    }
                }
                () = all_begun(hosts, enough), if enough.is_some() => break,
            }
        }
        // Exits that were reported last.
        while let (Some(_), Ok((pe, event))) = (hosts, self.events.try_recv()) {
            if let Heard::Exited(exit, last_words) = event {
                deaths.push(Death {
                    pe,
                    exit,
                    last_words,
                });
            }
        }
        let mut deaths = deaths.into_iter();
        let Some(first) = deaths.next() else {
            return Ok(());
        };
        // The processes are killed before the listener closes, so that they do not report that.
        self.kill.cancel();
        Err(LaunchError::Died {
            first: Box::new(first),
            others: deaths.collect(),
        })
    }

    pub(super) fn greeter(&self, guarded: &Guarded, joining: Option<Arc<Joining>>) -> Greeter {
        Greeter {
            cluster: guarded.cluster,
            secret: guarded.secret,
            security: guarded.security.clone(),
            timeouts: self.timeouts,
            joining,
        }
    }

    /// Starts to exchange messages with a process that has registered.
    pub(super) fn let_in(&mut self, newcomer: Newcomer, heard: &mpsc::Sender<(PeId, Heard)>) {
        let pe = newcomer.register.pe;
        // A cluster whose tree was repaired lacks PEs, and ids stay what they are.
        let pes = self
            .members
            .keys()
            .last()
            .map_or(0, |last| last.index() + 1);
        let Some(member) = self.members.get_mut(&pe) else {
            return;
        };
        member.register = Some((newcomer.register, newcomer.address));
        member.stays = newcomer.stays;
        member.commands = newcomer.commands;
        let (queue, queued) = mpsc::channel(WORDS);
        member.queue = Some(queue);
        let (heard, look) = (heard.clone(), self.look.clone());
        let beat = self.timeouts.heartbeat;
        let (mut reader, writer) = (newcomer.reader, newcomer.writer);
        reader.decoder_mut().limit_to_cluster(pes);
        let conversation = converse(pe, reader, writer, queued, heard, beat, look);
        member.conversation = Some(tokio::spawn(conversation).abort_handle());
    }
}

/// Waits until every host has started or failed, or until the deadline.
async fn all_begun(hosts: Option<&Hosts>, deadline: Option<Instant>) {
    if let (Some(hosts), Some(deadline)) = (hosts, deadline) {
        let _ = timeout_at(deadline, hosts.settled()).await;
    }
}
