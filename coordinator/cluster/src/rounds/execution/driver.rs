//! Drives the controller on a cluster: sends its messages, passes on the PEs' messages and the
//! time, and displays its events. Long computations run on a separate thread meanwhile.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use flitcast_proto::wire::control::{Payload, Report, ToPe};
use flitcast_proto::{PeId, Time};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::parallel_trees::lanes_of;
use crate::job::parallel_trees::ParallelTrees;
use crate::job::request::Request;
use crate::launch::cluster::{Cluster, PeEvent};
use crate::observe::console::Console;
use crate::observe::emit::emit;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::rounds::controller::{
    ClusterInfo, ControllerEvent, FailureCause, GaveUp, PeLoss, Plan, RoundController,
};
use crate::rounds::outcome::{DeliverySummary, Failure, PeLocation};
use crate::text::printable::in_one_line;
use crate::tuning::CLOCK_CHECKS;

/// A reason to stop the work on a cluster.
pub enum StopReason {
    /// An error of the driver, which the controller does not have yet.
    Trouble(FailureCause),
    /// The result of rounds that the controller has given up.
    GaveUp(GaveUp),
}

impl From<FailureCause> for StopReason {
    fn from(trouble: FailureCause) -> StopReason {
        StopReason::Trouble(trouble)
    }
}

/// A clock that stops while this process does not run: stopped by a signal or a debugger, or
/// without a processor. PEs cannot answer a coordinator that sends no requests.
struct RunningClock {
    origin: Instant,
    looked: Instant,
}

impl RunningClock {
    fn new() -> RunningClock {
        let now = Instant::now();
        RunningClock {
            origin: now,
            looked: now,
        }
    }

    fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    /// Returns when the clock will show a time, if this process runs all the time.
    fn at(&self, time: Time) -> Instant {
        self.origin + Duration::from_nanos(time.0)
    }

    /// Records that this process runs, as it does at least every [`CLOCK_CHECKS`].
    fn look(&mut self) {
        let since = self.looked.elapsed();
        if since > 2 * CLOCK_CHECKS {
            self.origin += since - CLOCK_CHECKS;
        }
        self.looked = Instant::now();
    }
}

pub struct Driver<'a> {
    pub cluster: &'a mut Cluster,
    pub request: &'a Request,
    pub console: &'a Console,
    /// Token that a signal cancels to end the command; `None` once the controller has been
    /// notified.
    ends: Option<&'a CancellationToken>,
    pub controller: RoundController,
    /// The trees over which messages may be split.
    pub lanes: ParallelTrees,
    /// The state of the messages before the first round, once the PEs have reported it, with the versions
    /// that they have reported since.
    pub known: DeliverySummary,
    /// The lengths by delivery of what the rounds send: without prefixes that are there.
    pub sent: Vec<u64>,
    predicted_ns: u64,
    clock: RunningClock,
}

impl<'a> Driver<'a> {
    pub fn new(
        cluster: &'a mut Cluster,
        request: &'a Request,
        console: &'a Console,
        ends: &'a CancellationToken,
    ) -> Self {
        let tree = &request.site.tree;
        let joined = tree.pes().filter(|pe| cluster.joined_from(*pe).is_some());
        let setting = ClusterInfo {
            tree: tree.clone(),
            operation: request.way.operation,
            timeouts: request.timeouts,
            joined: joined.collect(),
            addresses: tree.ids().map(|pe| address(cluster, request, pe)).collect(),
        };
        Driver {
            cluster,
            request,
            console,
            ends: Some(ends),
            lanes: lanes_of(request),
            controller: RoundController::new(Time(0), setting),
            known: DeliverySummary::default(),
            sent: Vec::new(),
            predicted_ns: 0,
            clock: RunningClock::new(),
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Starts a new phase. No answer is expected meanwhile, so none is lost.
    pub fn enter(&mut self, phase: Phase) {
        self.controller.enter(phase);
        self.show_all();
    }

    fn show_all(&mut self) {
        while let Some(update) = self.controller.poll_update() {
            self.show(update);
        }
    }

    /// Displays events and sends messages while no answer is expected.
    pub async fn catch_up(&mut self) -> Result<(), StopReason> {
        self.show_all();
        self.send_commands().await;
        match self.controller.gave_up() {
            Some(gave_up) => Err(StopReason::GaveUp(gave_up)),
            None => Ok(()),
        }
    }

    /// Sends a PE a command that it answers.
    pub fn send_request(&mut self, pe: PeId, command: ToPe) {
        self.controller.request(self.now(), pe, command);
    }

    pub fn run_rounds(&mut self, plan: Plan) {
        self.predicted_ns = plan.predicted_ns;
        self.controller.run_rounds(self.now(), plan);
    }

    /// Returns the next answer to a request; `None` if no more are expected.
    pub async fn next_answer(&mut self) -> Result<Option<ControllerEvent>, StopReason> {
        loop {
            while let Some(update) = self.controller.poll_update() {
                if let Some(answer) = self.show(update) {
                    return Ok(Some(answer));
                }
            }
            self.catch_up().await?;
            if self.controller.is_idle() {
                return Ok(None);
            }
            self.handle_event().await;
            self.cluster.look(self.controller.wants_look());
        }
    }

    pub async fn send_commands(&mut self) {
        while let Some((pe, command)) = self.controller.poll_command() {
            self.cluster.send_command(pe, command).await;
        }
    }

    /// Passes the next event of a PE, or the expiry of a deadline, to the controller.
    pub async fn handle_event(&mut self) {
        let deadline = Instant::now() + CLOCK_CHECKS;
        let timeout = self.controller.poll_timeout();
        let timeout = timeout.map(|time| (time, self.clock.at(time)));
        let until = timeout.map_or(deadline, |(_, at)| at.min(deadline));
        let end_requested = async {
            match self.ends {
                Some(ends) => ends.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            () = end_requested => {
                self.ends = None;
                self.controller.fail(self.clock.now(), FailureCause::Interrupted);
                return;
            }
            event = self.cluster.next_event(until) => event,
        };
        self.clock.look();
        let now = self.now();
        match event {
            None => match timeout {
                Some((time, _)) if now >= time || Instant::now() < until => {
                    // If no event can arrive any more, the deadline expires at once.
                    self.controller.handle_timeout(now.max(time));
                }
                _ => {}
            },
            Some((pe, PeEvent::Reply(reply))) => self.controller.handle_reply(now, pe, reply),
            Some((pe, PeEvent::ChannelEnded(end))) => {
                self.controller
                    .handle_lost(now, pe, PeLoss::of_channel(end));
            }
            Some((pe, PeEvent::Exited(exit, last_words))) => {
                let how = exit.to_string();
                let lost = PeLoss::Exited { how, last_words };
                self.controller.handle_lost(now, pe, lost);
            }
        }
    }

    /// Displays an event, or returns it if it is an answer.
    fn show(&mut self, update: ControllerEvent) -> Option<ControllerEvent> {
        match update {
            ControllerEvent::Enters(phase) => emit(Event::Enters(phase)),
            ControllerEvent::Pong(pe, pong) => emit(Event::Pong(pe, &pong)),
            ControllerEvent::Reported(pe, counts) => emit(Event::Reported(pe, &counts)),
            ControllerEvent::RoundBegins(round) => {
                let collective = self.request.way.operation.collective();
                let total = collective.total(&self.request.site.tree, &self.sent);
                self.console.begin(self.name(round.0), total);
                emit(Event::RoundBegins {
                    round,
                    bytes: &self.sent,
                    predicted_ns: self.predicted_ns,
                });
                tracing::info!(%round, "triggered");
            }
            ControllerEvent::Progress { bytes, elapsed } => {
                self.console.moved(bytes, elapsed, self.predicted_ns);
            }
            ControllerEvent::Slow {
                round,
                times,
                phase,
            } => self.console.slow(round, times, phase),
            ControllerEvent::RoundDone => emit(Event::RoundDone),
            ControllerEvent::GivesUpOn(pe) => self.cluster.give_up_on(pe),
            ControllerEvent::Failed { kind, pe, cause } => {
                tracing::info!(cause = in_one_line(&cause), "giving up");
                let cause = &cause;
                emit(Event::Failed { kind, pe, cause });
            }
            ControllerEvent::Answered(..) | ControllerEvent::RoundReported(_) => {
                return Some(update);
            }
        }
        None
    }

    fn name(&self, round: u64) -> String {
        let what = self.request.way.operation.collective().name();
        let algorithm = self.request.way.algorithm();
        match self.request.rounds {
            1 => what.to_owned(),
            rounds => format!("{what} by {algorithm} {round}/{rounds}"),
        }
    }

    /// Stores the digests in the reports on a round.
    ///
    /// # Errors
    ///
    /// Returns an error if a message has several versions now.
    pub fn check_versions(&mut self, reports: &[Report]) -> Result<(), FailureCause> {
        let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
        self.known.seen.learn(operation, tree, reports);
        let known = &self.request.messages.versions;
        let input = match &self.request.messages.payload {
            Payload::Files(files) => files.input.display().to_string(),
            Payload::Synthetic { .. } => "the input".to_owned(),
        };
        let conflict = self.known.seen.conflict(operation, tree, known, &input);
        conflict.map_or(Ok(()), |(message, text)| {
            Err(FailureCause::Versions(message, text))
        })
    }

    /// Ends the rounds if they are not over, and returns the failure with its results.
    pub async fn failure(mut self, mut halt: StopReason) -> Failure {
        loop {
            match halt {
                StopReason::GaveUp(gave_up) => return self.into_failure(gave_up),
                StopReason::Trouble(trouble) => self.controller.fail(self.now(), trouble),
            }
            // Answers are not needed any more.
            halt = loop {
                if let Err(halt) = self.next_answer().await {
                    break halt;
                }
            };
        }
    }

    fn into_failure(self, gave_up: GaveUp) -> Failure {
        let (cluster, request, mut known) = (self.cluster, self.request, self.known);
        let (operation, tree) = (request.way.operation, &request.site.tree);
        known.seen.digests.extend(gave_up.digests);
        let changed = gave_up.trouble.other_versions().into_iter();
        let whole = |id| operation.collective().whole(tree, id).0;
        let below = |pe: PeId| {
            let is_below = move |other: &PeId| tree.child_toward(pe, *other).is_some();
            tree.pes().filter(is_below).collect()
        };
        let at = gave_up.trouble.pe().map(|pe| PeLocation {
            address: address(cluster, request, pe),
            pid: cluster.pid(pe),
            joined_from: cluster.joined_from(pe),
            below: below(pe),
            ..PeLocation::of(request, pe)
        });
        Failure {
            cause: gave_up.trouble.to_string(),
            others: Vec::new(),
            phase: gave_up.phase,
            at,
            guard: request.site.guard.clone(),
            round: gave_up.round,
            operation,
            tree: tree.clone(),
            keeps_files: matches!(request.messages.payload, Payload::Files(_)),
            refused: matches!(gave_up.trouble, FailureCause::OutputStands(_)),
            failed_pes: gave_up.trouble.failed_pes(),
            is_faulty_pe_alive: gave_up.trouble.is_faulty_pe_alive(),
            changed: changed.map(whole).collect(),
            holds: match gave_up.trouble {
                FailureCause::Holds(holds) => holds,
                _ => Vec::new(),
            },
            aftermath: DeliverySummary {
                delivered: gave_up.delivered,
                lacking: gave_up.lacking,
                ..known
            },
        }
    }
}

/// Returns a PE's address, or the one that it has joined from if none is configured.
pub fn or_joined_from(cluster: &Cluster, address: IpAddr, pe: PeId) -> IpAddr {
    match cluster.joined_from(pe) {
        Some(from) if address.is_unspecified() => from.ip(),
        _ => address,
    }
}

/// Returns the address at which a PE listens, if it is known.
fn address(cluster: &Cluster, request: &Request, pe: PeId) -> Option<String> {
    let place = request.site.placement.places.get(pe.index())?;
    let listen: SocketAddr = cluster.register(pe)?.listen.parse().ok()?;
    let address = or_joined_from(cluster, place.address, pe);
    Some(SocketAddr::new(address, listen.port()).to_string())
}

/// A flag that cancels a computation whose result is not needed any more.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Driver<'_> {
    /// Computes a result on another thread. A signal or the death of a PE sets the flag that
    /// `compute` receives, and returns without waiting for the thread.
    pub async fn aside<T: Send + 'static>(
        &mut self,
        compute: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, StopReason> {
        let given_up = Arc::new(AtomicBool::new(false));
        let _give_up = GiveUp(given_up.clone());
        let (result, mut computed) = oneshot::channel();
        // The process can exit while a thread runs, but not while a blocking task of the runtime
        // runs.
        thread::spawn(move || result.send(compute(&given_up)));
        loop {
            self.catch_up().await?;
            tokio::select! {
                computed = &mut computed => match computed {
                    Ok(computed) => return Ok(computed),
                    Err(_) => panic!("the computation has panicked"),
                },
                () = self.handle_event() => {}
            }
        }
    }
}
