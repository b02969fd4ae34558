//! Launching a cluster: processes are started here, over ssh, or join, until all have registered.
//! `running.rs` handles them afterwards.
//!
//! If one host fails, the launch fails, but the calls to other hosts are awaited for some time, so
//! that the error names all failed PEs (`LaunchError::others`) and `--retry` excludes them
//! together.

use std::ffi::OsString;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_node::handshake_limiter::{HandshakeLimiter, listen};
use flitcast_proto::PeId;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::error::{Death, LaunchError};
use super::joiners::Joining;
use super::member::{Heard, Member, Process};
use super::plan::LaunchPlan;
use super::process::{LogForwarder, Start, arguments, command, keep, play};
use super::remote;
use super::running::Cluster;
use crate::launch::ssh::{CopyPlan, Hosts, RemoteCommand};
use crate::launch::starter::StarterError;
use crate::observe::console::Console;
use crate::site::guard::Guarded;
use crate::site::placement::Launch;
use crate::site::running_cluster;
use crate::tuning::{LAUNCH, OTHER_HOSTS, QUEUED_EVENTS};

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
        let placement = plan.placement;
        let guarded = Guarded::new(plan.guard)?;
        let (heard, events) = mpsc::channel(QUEUED_EVENTS);
        let mut cluster = Cluster::new(guarded.cluster, events, *plan.timeouts);
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
            cluster.bring_up(&plan, &guarded, &heard, console).await
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

    /// Starts the processes, unless others do, and waits until all have registered.
    async fn bring_up(
        &mut self,
        plan: &LaunchPlan<'_>,
        guarded: &Guarded,
        heard: &mpsc::Sender<(PeId, Heard)>,
        console: &Console,
    ) -> Result<(), LaunchError> {
        let LaunchPlan {
            tree, placement, ..
        } = *plan;
        let address = placement.coordinator;
        let (port, listening) = match placement.launch {
            Launch::Local | Launch::Ssh(_) => (0, address.to_string()),
            Launch::Join { port, .. } => (port, SocketAddr::new(address, port).to_string()),
        };
        let io = |source| LaunchError::Io {
            what: format!("cannot listen on {listening} for the PEs"),
            source,
        };
        let listener = listen((address, port).into()).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        if let Some(kept) = &placement.kept {
            running_cluster::call(&kept.folder);
        }
        if let Launch::Join { wait, .. } = placement.launch {
            let joining = Joining::new(plan, address, wait);
            return self
                .join_all(joining, &listener, guarded, heard, console)
                .await;
        }
        let hosts = match &placement.launch {
            Launch::Ssh(ssh) => {
                let copies = CopyPlan::new(tree, plan.pes, placement);
                let hosts = Hosts::new(ssh, plan.program, copies);
                let hosts = hosts.map_err(|(path, source)| {
                    let what = format!("cannot read {}", path.display());
                    LaunchError::Io { what, source }
                })?;
                Some(Arc::new(hosts))
            }
            _ => None,
        };
        for &pe in plan.pes {
            let place = &placement.places[pe.index()];
            let start = Start {
                place,
                coordinator: address,
                credentials: plan.guard.folder(),
                admission: guarded.admission(pe)?.written(),
            };
            let telling = LogForwarder {
                pe,
                console: console.clone(),
            };
            match &hosts {
                None => {
                    let command = command(plan.program, place, plan.logs);
                    self.start(pe, command, start, telling, heard)?;
                }
                Some(hosts) => {
                    self.start_there(pe, hosts, start, &plan.logs.args, telling, heard);
                }
            }
        }
        {
            let registering = self.register_all(&listener, guarded, heard, hosts.as_deref());
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
        let missing = self.missing();
        Err(LaunchError::Missing { missing })
    }

    /// Starts the process of a PE on this host.
    fn start(
        &mut self,
        pe: PeId,
        mut command: Command,
        start: Start<'_>,
        telling: LogForwarder,
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
        telling: LogForwarder,
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
        let mut door = HandshakeLimiter::new(
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
                        enough.get_or_insert_with(|| Instant::now() + OTHER_HOSTS);
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
}

/// Waits until every host has started or failed, or until the deadline.
async fn all_begun(hosts: Option<&Hosts>, deadline: Option<Instant>) {
    if let (Some(hosts), Some(deadline)) = (hosts, deadline) {
        let _ = timeout_at(deadline, hosts.settled()).await;
    }
}
