//! Launching a cluster: processes are started here, over ssh, or join, until all have registered.
//! `running.rs` handles them afterwards.
//!
//! If one host fails, the launch fails, but the calls to other hosts are awaited for some time, so
//! that the error names all failed PEs (`LaunchError::others`) and `--retry` excludes them
//! together.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use flitcast_node::handshake_limiter::{HandshakeLimiter, listen};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::member::{Death, LaunchError, Member, PeEvent, Process};
use super::plan::{LaunchPlan, Launching};
use super::process::{LogForwarder, arguments, begin, keep_here, keep_there};
use super::running::Cluster;
use crate::launch::ssh::{Hosts, RemoteCommand};
use crate::observe::console::Console;
use crate::site::guard::{Guard, Guarded};
use crate::site::placement::Launch;
use crate::site::{ca, running_cluster};
use crate::text::phrases::names;
use crate::tuning::{LAUNCH, OTHER_HOSTS, QUEUED_EVENTS};

/// Validity of certificates that are made for a launch, in days: longer than a job may take.
const KEYS_DAYS: u32 = 30;

/// Waits for the failure of the starter; never returns if there is no starter or no failure.
async fn failure(failed: Option<oneshot::Receiver<anyhow::Error>>) -> anyhow::Error {
    if let Some(failed) = failed
        && let Ok(error) = failed.await
    {
        return error;
    }
    pending().await
}

/// Makes the certificates of tasks of Slurm in a folder that their nodes share, if none are given.
fn keys(plan: &LaunchPlan<'_>) -> anyhow::Result<Option<TempDir>> {
    if !plan.placement.is_slurm() || *plan.guard != Guard::MadeForTheRun {
        return Ok(None);
    }
    let cannot = "cannot make certificates in the working folder, which the nodes have to share";
    let folder = std::env::current_dir().and_then(|here| {
        // Only its owner can read it.
        tempfile::Builder::new()
            .prefix(".flitcast-keys-")
            .tempdir_in(here)
    });
    let folder = folder.context(cannot)?;
    ca::make(folder.path(), plan.tree.len() as u32, KEYS_DAYS)?;
    Ok(Some(folder))
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
        let keys = keys(&plan)?;
        let in_folder = keys
            .as_ref()
            .map(|keys| Guard::Credentials(keys.path().to_owned()));
        let plan = LaunchPlan {
            guard: in_folder.as_ref().unwrap_or(plan.guard),
            ..plan
        };
        let guarded = Guarded::new(plan.guard)?;
        let (event_sender, events) = mpsc::channel(QUEUED_EVENTS);
        let mut cluster = Cluster {
            id: guarded.cluster,
            members: BTreeMap::new(),
            events,
            kill: CancellationToken::new(),
            timeouts: *plan.timeouts,
            look: Arc::default(),
            started: None,
            keys,
        };
        let (begun, failed) = match placement.starter() {
            Some(starter) => {
                let (started, begun, failed) = starter.start(plan.orders(console));
                cluster.started = Some(started);
                (Some(begun), Some(failed))
            }
            None => (None, None),
        };
        let launching = Launching {
            plan,
            guarded,
            event_sender,
            console,
        };
        let launched = async {
            // Compose may have to create the network that has the address first.
            if let Some(begun) = begun {
                // The starter reports why it did not begin.
                let Ok(()) = begun.await else {
                    return pending().await;
                };
            }
            cluster.bring_up(&launching).await
        };
        // The listener is closed here, so a process that connects later is refused.
        let launched = tokio::select! {
            launched = launched => launched,
            error = failure(failed) => Err(error.into()),
            () = given_up.cancelled() => Err(anyhow!("it was cancelled").into()),
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
    async fn bring_up(&mut self, launching: &Launching<'_>) -> Result<(), LaunchError> {
        let plan = &launching.plan;
        let placement = plan.placement;
        let address = placement.coordinator;
        let (port, listen_at) = match placement.launch {
            Launch::Local | Launch::Ssh(_) => (0, address.to_string()),
            Launch::Join { port, .. } => (port, SocketAddr::new(address, port).to_string()),
        };
        let io = |error: io::Error| anyhow!("cannot listen on {listen_at} for the PEs: {error}");
        let listener = listen((address, port).into()).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        if let Some(kept) = &placement.kept {
            running_cluster::call(&kept.folder);
        }
        if let Launch::Join { wait, .. } = placement.launch {
            return self.join_all(launching, (address, wait), &listener).await;
        }
        let hosts = Hosts::of(placement, plan.tree, plan.pes, plan.program);
        let hosts = hosts.map_err(|error| anyhow!("cannot read {error}"))?;
        for &pe in plan.pes {
            let admission = launching.guarded.admission(pe)?.written();
            let forwarder = LogForwarder {
                pe,
                console: launching.console.clone(),
                event_sender: launching.event_sender.clone(),
                last_lines: Vec::new(),
            };
            self.start(plan, hosts.as_ref(), (address, admission), forwarder)
                .await?;
        }
        {
            let registering = self.register_all(launching, &listener, hosts.as_deref());
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
        let (late, seconds) = (names(&missing), LAUNCH.as_secs());
        let message = format!("{late}: did not register within {seconds} s");
        Err(LaunchError::of(missing, message))
    }

    /// Starts the process of a PE, on this host, or on its own as soon as that is reached. The
    /// process authenticates itself to the coordinator at this address by its admission.
    async fn start(
        &mut self,
        plan: &LaunchPlan<'_>,
        hosts: Option<&Arc<Hosts>>,
        (coordinator, admission): (SocketAddr, Vec<u8>),
        forwarder: LogForwarder,
    ) -> Result<(), LaunchError> {
        let (pe, kill) = (forwarder.pe, self.kill.child_token());
        let place = &plan.placement.places[pe.index()];
        let arguments = arguments(plan, coordinator, pe);
        let (pid, keeper) = match hosts.filter(|_| !place.is_here) {
            None => {
                let invocation = (arguments, admission);
                let mut begun = begin(plan.program, place, None, plan.logs, invocation).await?;
                // The admission ends.
                begun.stdin = None;
                let pid = begun.child.id();
                (pid, tokio::spawn(keep_here(begun, forwarder, kill.clone())))
            }
            Some(hosts) => {
                let task = RemoteCommand::new(place, plan.logs, arguments, admission, false);
                let (hosts, destination) = (hosts.clone(), place.destination());
                let keeping = keep_there(hosts, destination, task, forwarder, kill.clone());
                (None, tokio::spawn(keeping))
            }
        };
        let process = Process { pid, kill, keeper };
        self.members.insert(pe, Member::new(Some(process)));
        Ok(())
    }

    async fn register_all(
        &mut self,
        launching: &Launching<'_>,
        listener: &TcpListener,
        hosts: Option<&Hosts>,
    ) -> Result<(), LaunchError> {
        let greeter = self.greeter(&launching.guarded, None);
        let (places, limit) = (self.places(hosts.is_some()), self.timeouts.greeting());
        let mut door = HandshakeLimiter::new(listener, places, limit);
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
                        let message = format!(
                            "{pe}: the process at {address} shows an invalid certificate: {why}"
                        );
                        return Err(LaunchError::of(vec![pe], message));
                    }
                    if let Some((_, first)) = member.register {
                        let message = format!(
                            "{pe}: registered twice, from {first} and {address}; \
                             stop one of the processes"
                        );
                        return Err(LaunchError::of(vec![pe], message));
                    }
                    self.let_in(newcomer, &launching.event_sender);
                    missing -= 1;
                }
                Some((pe, event)) = self.events.recv() => {
                    if let PeEvent::Exited(exit, last_lines) = event {
                        tracing::info!(%pe, "{exit}");
                        deaths.push(Death { pe, exit, last_lines });
                        enough.get_or_insert_with(|| Instant::now() + OTHER_HOSTS);
                    }
                }
                () = all_begun(hosts, enough), if enough.is_some() => break,
            }
        }
        // Exits that were reported last.
        while let (Some(_), Ok((pe, event))) = (hosts, self.events.try_recv()) {
            if let PeEvent::Exited(exit, last_lines) = event {
                let death = Death {
                    pe,
                    exit,
                    last_lines,
                };
                deaths.push(death);
            }
        }
        if deaths.is_empty() {
            return Ok(());
        }
        // The processes are killed before the listener closes, so that they do not report that.
        self.kill.cancel();
        Err(LaunchError::died(deaths))
    }
}

/// Waits until every host has started or failed, or until the deadline.
async fn all_begun(hosts: Option<&Hosts>, deadline: Option<Instant>) {
    if let (Some(hosts), Some(deadline)) = (hosts, deadline) {
        let _ = timeout_at(deadline, hosts.settled()).await;
    }
}
