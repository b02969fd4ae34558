//! A round: its trigger, its supervision and its reports.

use flitcast_proto::wire::control::{FromPe, Report, ToPe};
use flitcast_proto::{PeId, RoundId, Time};

use super::beginning::Readings;
use super::clock::{after, between};
use super::failure_cause::{FailureCause, out_of_turn};
use super::stall_detector::{Stall, StallDetector};
use super::state::{ControllerEvent, Plan, RoundController, State, UnderWay};
use crate::observe::phase::Phase;
use crate::rounds::outcome::slowdown;
use crate::tuning::ANSWER;

impl RoundController {
    /// Begins the next round if all requests are answered and a round is left.
    pub(super) fn advance(&mut self, now: Time) {
        let rounds = self.plan.as_ref().map_or(0, |plan| plan.rounds);
        if !self.awaited.is_empty() {
            return;
        }
        if let Some(readings) = self.readings.take() {
            self.begin_round(now, self.begins(now, &readings));
        } else if self.round.0 < rounds {
            self.round = RoundId(self.round.0 + 1);
            self.last_reports.fill(None);
            match self.setting.operation.collective().begins_by_clock() {
                true => self.read_clocks(now),
                false => self.begin_round(now, vec![(self.setting.tree.root(), 0)]),
            }
        }
    }

    /// Returns the begin of a round on each PE's clock, by PE index.
    fn begins(&self, now: Time, readings: &Readings) -> Vec<(PeId, u64)> {
        let tree = &self.setting.tree;
        let clocks = self.plan.as_ref().map_or(&[][..], |plan| &plan.clocks);
        let begins = tree.ids().zip(readings.begins(now, clocks));
        begins.filter(|(pe, _)| tree.contains(*pe)).collect()
    }

    fn read_clocks(&mut self, now: Time) {
        self.readings = Some(Readings::new(now));
        for pe in self.setting.tree.clone().pes() {
            self.request(now, pe, ToPe::ReadClock);
        }
    }

    /// Triggers a round at these PEs, each at a time on its clock, or at once if the time is 0.
    fn begin_round(&mut self, now: Time, triggers: Vec<(PeId, u64)>) {
        let round = self.round;
        let of = self.bytes_of_round();
        self.enter(Phase::Round { moved: 0, of });
        self.updates.push_back(ControllerEvent::RoundBegins(round));
        for (pe, at_ns) in triggers {
            self.send_command(pe, ToPe::Trigger { round, at_ns });
        }
        // A round has no deadline, because its links determine its time. It is monitored instead,
        // and given up when nothing moves any more.
        let timeouts = self.setting.timeouts;
        self.state = State::Round(UnderWay {
            watch: StallDetector::new(timeouts, self.setting.tree.len(), now),
            began: now,
            slow: 1.0,
            next_look: after(now, timeouts.heartbeat),
        });
    }

    fn bytes_of_round(&self) -> u64 {
        let (collective, tree) = (self.setting.operation.collective(), &self.setting.tree);
        let moved = |plan: &Plan| collective.moved_by_pe(tree, &plan.bytes)[tree.root().index()];
        self.plan.as_ref().map_or(0, moved)
    }

    /// Handles a message while P0 runs a round.
    pub(super) fn handle_in_round(&mut self, now: Time, pe: PeId, reply: FromPe) {
        let State::Round(under_way) = &self.state else {
            return;
        };
        let root = self.setting.tree.root();
        match reply {
            FromPe::Progress { bytes, .. } if pe == root => {
                let elapsed = between(under_way.began, now);
                let of = self.bytes_of_round();
                self.enter(Phase::Round { moved: bytes, of });
                let progress = ControllerEvent::Progress { bytes, elapsed };
                self.updates.push_back(progress);
            }
            FromPe::Report(_) if pe == root => {
                if self.last_reports[root.index()].is_some() {
                    self.collect_reports(now);
                }
            }
            other => self.fail(now, out_of_turn(pe, &other)),
        }
    }

    fn collect_reports(&mut self, now: Time) {
        self.updates.push_back(ControllerEvent::RoundDone);
        self.wants_look = false;
        self.enter(Phase::Report);
        let (round, tree) = (self.round, self.setting.tree.clone());
        for pe in tree.below_root() {
            self.send_command(pe, ToPe::Collect { round });
        }
        self.wait_for_reports(now);
    }

    /// Handles a message while reports are collected.
    pub(super) fn handle_in_reporting(&mut self, now: Time, pe: PeId, reply: FromPe) {
        match reply {
            // Reports with spans are long.
            FromPe::Report(_) => self.wait_for_reports(now),
            FromPe::Progress { .. } => {}
            other => self.fail(now, out_of_turn(pe, &other)),
        }
    }

    fn unreported(&self) -> impl Iterator<Item = PeId> {
        let pes = self.setting.tree.pes();
        pes.filter(|pe| self.last_reports[pe.index()].is_none())
    }

    /// Waits for the next report, or ends the round if there is none left.
    fn wait_for_reports(&mut self, now: Time) {
        self.state = State::Reporting(after(now, ANSWER));
        if self.unreported().next().is_some() {
            return;
        }
        // Absent PEs get blank reports.
        let nothing = || Report::blank(self.round, Vec::new());
        let reports = self.last_reports.iter().cloned();
        let reports = reports.map(|report| report.unwrap_or_else(nothing));
        self.updates
            .push_back(ControllerEvent::RoundReported(reports.collect()));
        self.state = State::AwaitingAnswers;
        self.advance(now);
    }

    /// Handles the expiry of the deadline for reports.
    pub(super) fn miss_reports(&mut self, now: Time) {
        let silent = self.unreported().collect();
        let silent = FailureCause::silent(silent, ANSWER, "reporting the round");
        self.fail(now, silent);
    }

    /// Checks a round: reports it if it is slow, and gives it up if it has stalled.
    pub(super) fn look_after_round(&mut self, now: Time) {
        let State::Round(under_way) = &mut self.state else {
            return;
        };
        under_way.next_look = after(now, self.setting.timeouts.heartbeat);
        // Reported once, and again each time that the ratio has doubled.
        let predicted_ns = self.plan.as_ref().map_or(0, |plan| plan.predicted_ns);
        let slower = slowdown(between(under_way.began, now), predicted_ns);
        if let Some(times) = slower.filter(|times| *times >= 2.0 * under_way.slow) {
            under_way.slow = times;
            self.updates.push_back(ControllerEvent::Slow {
                round: self.round,
                times,
                phase: self.phase,
            });
        }
        let watch = &under_way.watch;
        self.wants_look = watch.wants_look(now);
        if let Some(stall) = watch.check(now) {
            let seconds = watch.quiet(now).as_secs_f64();
            let what = self.describe(stall);
            let text = format!("{what}; nothing has moved for {seconds:.1} s");
            self.fail(now, FailureCause::Stalled(stall.pe(), text));
        }
    }

    fn describe(&self, stall: Stall) -> String {
        let at = |pe: PeId| match self.setting.addresses.get(pe.index()) {
            Some(Some(address)) => format!("{pe} at {address}"),
            _ => pe.to_string(),
        };
        match stall {
            Stall::Unreached { pe, from } => {
                let (pe, from) = (at(pe), at(from));
                format!("{pe} cannot be reached from {from}: it acknowledges nothing")
            }
            Stall::TakesNothing { pe, from } => {
                format!("{} takes nothing from {}", at(pe), at(from))
            }
            Stall::SendsNothing { pe, to } => {
                format!("{} owes {} the rest of a message", at(pe), at(to))
            }
            Stall::Busy { pe } => format!("{} does not get done with its files", at(pe)),
            Stall::StandsStill => "every PE waits for another".to_owned(),
        }
    }
}
