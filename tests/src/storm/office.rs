//! The simulated coordinator: the real controller of rounds between the channels of the PEs.

use std::collections::{BTreeSet, VecDeque};

use flitcast_cluster::machines::{ClusterInfo, ControllerEvent, GaveUp, Plan, RoundController};
use flitcast_node::limits::Timeouts;
use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_proto::wire::control::{FromPe, Report, ToPe};
use flitcast_proto::{PeId, Time};

use super::scenario::{SILENCE_NS, Scenario};

pub(super) use flitcast_cluster::machines::PeLoss;

/// The coordinator's state, and the results of the rounds.
pub(super) struct Office {
    controller: RoundController,
    pes: Vec<PeId>,
    rounds: u64,
    /// For each PE, when the last byte of its channel arrived.
    last_received_at: Vec<u64>,
    /// PEs whose channels have ended.
    lost: BTreeSet<PeId>,
    /// The time of the next check if no event happens before, to be taken once after each change.
    pub(super) look_at: Option<u64>,
    /// Messages to be sent.
    pub(super) commands: VecDeque<(PeId, ToPe)>,
    /// Lines for the trace.
    pub(super) notes: Vec<String>,
    /// Reports on each complete round.
    pub(super) reports: Vec<Vec<Report>>,
    /// When and how the coordinator gave up.
    pub(super) gave_up: Option<(u64, GaveUp)>,
}

impl Office {
    pub(super) fn new(scenario: &Scenario) -> Office {
        let tree = scenario.tree.clone();
        let pes: Vec<PeId> = tree.pes().collect();
        let setting = ClusterInfo {
            operation: scenario.operation,
            timeouts: Timeouts::default(),
            joined: match scenario.seed % 4 {
                0 => pes.iter().copied().collect(),
                _ => BTreeSet::new(),
            },
            addresses: Vec::new(),
            tree,
        };
        let mut controller = RoundController::new(Time(0), setting);
        let plan = Plan {
            bytes: scenario.bytes.clone(),
            schedules: scenario.whole.clone(),
            lanes: scenario.schedules_by_lane(),
            prefixes: Vec::new(),
            rounds: scenario.rounds,
            clocks: vec![ClockOffset::SHARED; scenario.tree.len()],
            predicted_ns: scenario.predicted_ns,
        };
        controller.run_rounds(Time(0), plan);
        let mut office = Office {
            controller,
            last_received_at: vec![0; scenario.tree.len()],
            pes,
            rounds: scenario.rounds,
            lost: BTreeSet::new(),
            look_at: None,
            commands: VecDeque::new(),
            notes: Vec::new(),
            reports: Vec::new(),
            gave_up: None,
        };
        office.process_updates(0);
        office
    }

    /// Returns whether all rounds are reported, or given up.
    pub(super) fn is_over(&self) -> bool {
        self.gave_up.is_some() || self.reports.len() as u64 == self.rounds
    }

    pub(super) fn wants_look(&self) -> bool {
        self.controller.wants_look()
    }

    /// Returns whether the channel of a PE is open.
    pub(super) fn listens_to(&self, pe: PeId) -> bool {
        !self.lost.contains(&pe)
    }

    /// Returns for how long nothing has arrived over the channel of a PE; 0 if it has ended.
    pub(super) fn silent_ns(&self, now: u64, pe: PeId) -> u64 {
        match self.listens_to(pe) {
            true => now - self.last_received_at[pe.index()],
            false => 0,
        }
    }

    pub(super) fn handle_reply(&mut self, now: u64, pe: PeId, reply: FromPe) {
        if self.listens_to(pe) && !self.is_over() {
            self.last_received_at[pe.index()] = now;
            self.controller.handle_reply(Time(now), pe, reply);
            self.process_updates(now);
        }
    }

    pub(super) fn lose(&mut self, now: u64, pe: PeId, lost: PeLoss) {
        if self.is_over() {
            return;
        }
        if self.lost.insert(pe) || matches!(lost, PeLoss::Exited { .. }) {
            self.controller.handle_lost(Time(now), pe, lost);
            self.process_updates(now);
        }
    }

    pub(super) fn is_late(&mut self, now: u64) {
        if self.controller.poll_timeout().is_some_and(|at| at.0 <= now) {
            self.controller.handle_timeout(Time(now));
        }
        self.process_updates(now);
    }

    /// Handles the controller's events and messages.
    fn process_updates(&mut self, now: u64) {
        let was_over = self.is_over();
        while let Some(update) = self.controller.poll_update() {
            match update {
                ControllerEvent::RoundReported(reports) => self.reports.push(reports),
                ControllerEvent::RoundBegins(round) => {
                    self.notes.push(format!("round {round} begins"))
                }
                ControllerEvent::Failed { cause, .. } => {
                    self.notes.push(format!("failed: {cause}"))
                }
                _ => {}
            }
        }
        self.commands
            .extend(std::iter::from_fn(|| self.controller.poll_command()));
        if let Some(gave_up) = self.controller.gave_up() {
            self.gave_up = Some((now, gave_up));
        }
        if self.is_over() && !was_over {
            let stop = |pe: &PeId| (*pe, ToPe::Stop { over: true });
            self.commands.extend(self.pes.iter().map(stop));
        }
        self.look_at = self.controller.poll_timeout().map(|Time(at)| at);
    }
}

/// Returns the end of a channel of a vanished host, with the text of a real coordinator.
pub(super) fn silent() -> PeLoss {
    let limit = std::time::Duration::from_nanos(SILENCE_NS);
    PeLoss::Lifeless(IdleTimeout::Silent(limit))
}

/// Returns the end of a channel of a restarted host.
pub(super) fn reset() -> PeLoss {
    PeLoss::Broken("Connection reset by peer (os error 104)".to_owned())
}

/// Returns the end of a killed process.
pub(super) fn killed() -> PeLoss {
    PeLoss::Exited {
        how: "was killed by signal 9".to_owned(),
        last_words: Vec::new(),
    }
}
