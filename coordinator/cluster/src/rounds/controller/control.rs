//! The controller's input and output.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use flitcast_proto::wire::WireError;
use flitcast_proto::wire::control::{Counts, FromPe, Pong, Report, ToPe};
use flitcast_proto::{PeId, RoundId, Time};

use super::awaited::{Answer, Awaited};
use super::clock::before;
use super::failure_cause::{FailureCause, PeLoss};
use super::state::{ClusterInfo, ControllerEvent, GaveUp, Plan, RoundController, State};
use crate::observe::phase::Phase;

impl RoundController {
    /// Creates the controller of a cluster that was just launched.
    pub fn new(now: Time, setting: ClusterInfo) -> RoundController {
        RoundController {
            state: State::AwaitingAnswers,
            awaited: Awaited::new(now),
            plan: None,
            readings: None,
            round: RoundId(0),
            last_reports: vec![None; setting.tree.len()],
            phase: Phase::Connect,
            ended_pes: BTreeSet::new(),
            wants_look: false,
            commands: VecDeque::new(),
            updates: VecDeque::new(),
            gave_up: None,
            setting,
        }
    }

    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.updates.push_back(ControllerEvent::Enters(phase));
    }

    /// Prepares all PEs for rounds, and triggers each round as soon as the last one is reported;
    /// the answers are [`ControllerEvent::RoundReported`], one for each round.
    pub fn run_rounds(&mut self, now: Time, plan: Plan) {
        self.enter(Phase::Prepare);
        for (pe, prepare) in plan.prepares(&self.setting) {
            self.request(now, pe, ToPe::Prepare(prepare));
        }
        self.plan = Some(plan);
    }

    /// Sends a PE a command that it answers; [`ControllerEvent::Answered`] has the answer.
    pub fn request(&mut self, now: Time, pe: PeId, command: ToPe) {
        if !matches!(self.state, State::AwaitingAnswers) {
            return;
        }
        if let Err(WireError::TooLong { length, limit }) = command.check_length() {
            let text = format!(
                "the {} message for {pe} would have {length} bytes, the limit is {limit}: the schedule \
                 has too many crossings there. Use fewer PEs, a tree in which {pe} has fewer neighbours, \
                 or another --algorithm",
                command.kind()
            );
            return self.fail(now, FailureCause::Other("schedule", None, text));
        }
        if let Some(answer) = Answer::to(&command, self.setting.timeouts.disk) {
            self.awaited.add(now, pe, answer);
        }
        self.send_command(pe, command);
    }

    pub(super) fn send_command(&mut self, pe: PeId, command: ToPe) {
        self.commands.push_back((pe, command));
    }

    /// Handles a message from a PE.
    pub fn handle_reply(&mut self, now: Time, pe: PeId, reply: FromPe) {
        if !self.setting.tree.contains(pe) {
            return;
        }
        if let FromPe::Report(report) = &reply {
            self.note(pe, report);
        }
        match (&self.state, reply) {
            (State::Over, _) => {}
            (State::GivingUp(..), _) => self.end_if_all_notified(),
            (
                _,
                FromPe::Fault {
                    reason,
                    peer,
                    bad_input,
                    output_stands,
                    hung_up,
                    changed,
                    ..
                },
            ) => {
                let fault = FailureCause::Fault {
                    witness: pe,
                    blamed: peer.filter(|peer| self.setting.tree.contains(*peer)),
                    reason,
                    bad_input,
                    output_stands,
                    hung_up,
                    changed,
                };
                self.suspect(now, peer, fault);
            }
            (State::Seeking(..), _) => {}
            (_, FromPe::Pong(pong)) => self.handle_pong(now, pe, pong),
            (State::AwaitingAnswers, reply) => match self.awaited.take(pe, &reply) {
                Ok(()) => {
                    if let (FromPe::ClockRead { at_ns }, Some(readings)) =
                        (&reply, &mut self.readings)
                    {
                        let is_root = pe == self.setting.tree.root();
                        readings.add(now, is_root, *at_ns);
                    }
                    self.updates.push_back(ControllerEvent::Answered(pe, reply));
                    self.advance(now);
                }
                Err(trouble) => self.fail(now, trouble),
            },
            (State::Round(_), reply) => self.handle_in_round(now, pe, reply),
            (State::Reporting(_), reply) => self.handle_in_reporting(now, pe, reply),
        }
    }

    fn handle_pong(&mut self, now: Time, pe: PeId, pong: Pong) {
        let files_quiet = Duration::from_millis(pong.files_quiet_ms);
        self.awaited.works(before(now, files_quiet));
        if let State::Round(under_way) = &mut self.state {
            under_way.watch.observe(pe, &pong, now);
        }
        self.updates.push_back(ControllerEvent::Pong(pe, pong));
        self.look_after_round(now);
    }

    /// Handles the end of a PE's process or channel.
    pub fn handle_lost(&mut self, now: Time, pe: PeId, lost: PeLoss) {
        if !self.setting.tree.contains(pe) {
            return;
        }
        if self.is_last(pe, &lost) {
            self.ended_pes.insert(pe);
        }
        match self.state {
            State::Seeking(..) => self.seek_in_loss(now, pe, lost),
            State::GivingUp(..) => {
                // No report can arrive over a broken channel.
                if matches!(lost, PeLoss::Lifeless(_) | PeLoss::Broken(_)) {
                    self.give_up_on(pe);
                }
                self.end_if_all_notified();
            }
            State::Over => {}
            _ => self.lose(now, pe, lost),
        }
    }

    /// Handles the expiry of the deadline that [`RoundController::poll_timeout`] returned.
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::AwaitingAnswers => {
                if let Some(silent) = self.awaited.late(now) {
                    self.fail(now, silent);
                }
            }
            State::Round(_) => self.look_after_round(now),
            State::Reporting(deadline) if *deadline <= now => self.miss_reports(now),
            State::Seeking(_, deadline) if *deadline <= now => self.cease_seeking(now),
            State::GivingUp(_, deadline) if *deadline <= now => self.end(),
            _ => {}
        }
    }

    /// Returns when [`RoundController::handle_timeout`] is to be called unless an event occurs before;
    /// `None` if nothing is awaited.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::AwaitingAnswers => self.awaited.deadline(),
            State::Round(under_way) => Some(under_way.next_look),
            State::Reporting(deadline)
            | State::Seeking(_, deadline)
            | State::GivingUp(_, deadline) => Some(*deadline),
            State::Over => None,
        }
    }

    pub fn poll_command(&mut self) -> Option<(PeId, ToPe)> {
        self.commands.pop_front()
    }

    pub fn poll_update(&mut self) -> Option<ControllerEvent> {
        self.updates.pop_front()
    }

    /// Returns whether pings should request the PEs' unreachable neighbours, because nothing has
    /// moved for a while.
    pub fn wants_look(&self) -> bool {
        self.wants_look
    }

    /// Returns whether nothing is awaited: all requests are answered and all rounds reported, or
    /// the rounds were given up.
    pub fn is_idle(&self) -> bool {
        self.poll_timeout().is_none()
    }

    /// Returns the results of rounds that were given up, once they are known.
    pub fn gave_up(&mut self) -> Option<GaveUp> {
        self.gave_up.take()
    }

    /// Returns whether a PE's process is assumed to run and to be reachable.
    pub(super) fn is_alive(&self, pe: PeId) -> bool {
        !self.ended_pes.contains(&pe)
    }

    /// Stores a report on the current round.
    fn note(&mut self, pe: PeId, report: &Report) {
        let is_over = matches!(self.state, State::Over);
        if report.round != self.round || is_over {
            return;
        }
        let reported = ControllerEvent::Reported(pe, report.counts.clone());
        self.updates.push_back(reported);
        self.last_reports[pe.index()] = Some(Report {
            // The other counts are used as they arrive.
            counts: Box::new(Counts {
                unkept: report.counts.unkept,
                ..Counts::default()
            }),
            ..report.clone()
        });
    }
}
