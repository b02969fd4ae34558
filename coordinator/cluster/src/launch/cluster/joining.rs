//! Waiting for the PEs that others start: which are missing, and for how long. `conversation.rs`
//! authenticates them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use flitcast_node::handshake_limiter::HandshakeLimiter;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::ToPe;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::conversation::HandshakeResult;
use super::member::{LaunchError, Member, PeEvent};
use super::plan::{LaunchPlan, Launching};
use super::running::Cluster;
use crate::text::phrases::names;
use crate::tuning::JOIN_NOTICE;

impl Cluster {
    pub(super) async fn join_all(
        &mut self,
        launching: &Launching<'_>,
        (at, wait): (SocketAddr, Duration),
        listener: &TcpListener,
    ) -> Result<(), LaunchError> {
        let plan = &launching.plan;
        for &pe in plan.pes {
            self.members.insert(pe, Member::new(None));
        }
        let listen = |&pe: &PeId| (pe, plan.placement.places[pe.index()].listen);
        let expected = plan.pes.iter().map(listen).collect();
        let greeter = self.greeter(&launching.guarded, Some(Arc::new(expected)));
        let (places, limit) = (self.places(false), self.timeouts.greeting());
        let mut door = HandshakeLimiter::new(listener, places, limit);
        let began = Instant::now();
        let deadline = began + wait;
        let mut noted = false;
        loop {
            let missing = self.missing();
            if missing.is_empty() {
                return self.all_are_fit(plan);
            }
            tokio::select! {
                newcomer = door.next(|caller| greeter.clone().greet(caller)) => {
                    self.join_one(newcomer, &launching.event_sender);
                }
                Some((pe, event)) = self.events.recv() => self.leave_early(pe, event),
                () = sleep_until(began + JOIN_NOTICE), if !noted && plan.require_all => {
                    noted = true;
                    let (who, seconds) = (names(&missing), wait.as_secs_f64());
                    let line = format!("waiting up to {seconds} s for {who} to join at {at}");
                    launching.console.note(&line);
                }
                () = sleep_until(deadline) => {
                    if !plan.require_all {
                        return Ok(());
                    }
                    return Err(not_joined(missing, at, wait));
                }
            }
        }
    }

    /// Registers a new process, or refuses it if another process already has its PE.
    fn join_one(
        &mut self,
        newcomer: HandshakeResult,
        event_sender: &mpsc::Sender<(PeId, PeEvent)>,
    ) {
        // A process that has just left makes room for the next.
        while let Ok((pe, event)) = self.events.try_recv() {
            self.leave_early(pe, event);
        }
        let (pe, second) = (newcomer.register.pe, newcomer.address);
        let member = self.members.get(&pe);
        let Some((_, first)) = member.and_then(|member| member.register.as_ref()) else {
            tracing::info!(%pe, address = %second, "joined");
            return self.let_in(newcomer, event_sender);
        };
        let reason =
            format!("{pe}: registered twice: the process at {first} stays, the one at {second}");
        tracing::warn!("{reason} is refused");
        let mut writer = newcomer.writer;
        // If the process reads nothing, the connection's own time limit ends the task.
        tokio::spawn(async move { writer.send(ToPe::Refusal { reason }).await });
    }

    /// Handles a process that leaves before all have joined: another may take its place.
    fn leave_early(&mut self, pe: PeId, event: PeEvent) {
        if let PeEvent::ChannelEnded(why) = event
            && let Some(member) = self.members.get_mut(&pe)
            && let Some((_, address)) = &member.register
        {
            let why = why.map_or("it closed its channel".to_owned(), |why| why.to_string());
            tracing::warn!(%pe, %address, why, "left again before all had joined");
            *member = Member::new(None);
        }
    }

    /// Checks that all PEs stay for the next cluster, if there may be one, and that all run
    /// commands, if required.
    fn all_are_fit(&self, plan: &LaunchPlan<'_>) -> Result<(), LaunchError> {
        // PEs that this launch's starter starts are started again for the next cluster.
        let again = plan.again && plan.placement.starter().is_none();
        let who = |is_unfit: fn(&Member) -> bool| -> Vec<PeId> {
            let unfit = self.members.iter().filter(|(_, member)| is_unfit(member));
            unfit.map(|(pe, _)| *pe).collect()
        };
        let (leaving, idle) = (who(|member| !member.stays), who(|member| !member.commands));
        let each = |pes: &[PeId]| if pes.len() == 1 { "it" } else { "each" };
        match (leaving.is_empty(), idle.is_empty()) {
            (false, _) if again => Err(anyhow!(
                "{} would leave after one cluster, and this command may need several: --retry, map, \
                 bench and calibrate do; start {} with `flitcast node --join .. --stay`",
                names(&leaving),
                each(&leaving)
            )
            .into()),
            (_, false) if plan.commands => Err(anyhow!(
                "{} may not run commands: start {} with `flitcast node --join .. --commands`",
                names(&idle),
                each(&idle)
            )
            .into()),
            _ => Ok(()),
        }
    }
}

fn not_joined(missing: Vec<PeId>, at: SocketAddr, wait: Duration) -> LaunchError {
    let (seconds, first) = (wait.as_secs_f64(), missing[0].0);
    let [has, it] = match missing.len() {
        1 => ["has", "it"],
        _ => ["have", "each"],
    };
    let message = format!(
        "after {seconds} s {} {has} yet to join at {at}: start what plays {it} with \
         `flitcast node --join {at} --pe {first} ..` there",
        names(&missing)
    );
    LaunchError::of(missing, message)
}
