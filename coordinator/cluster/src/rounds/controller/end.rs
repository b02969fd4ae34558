//! The first error of rounds, and their end after it: all PEs are stopped, and the deliveries are determined.
//!
//! A neighbour often notices a death before the operating system reports it, or the end of a connection
//! before the other PE has reported the reason, so the controller waits a moment for an event that explains
//! an error.

use std::collections::BTreeMap;

use flitcast_proto::wire::control::{Arrival, ToPe};
use flitcast_proto::{MessageId, PeId, RoundId, Time};

use super::clock::after;
use super::failure_cause::{FailureCause, PeLoss, cause_of_loss};
use super::state::{ControllerEvent, GaveUp, RoundController, State};
use crate::rounds::outcome::MissingDelivery;
use crate::tuning::{DEATH_NOTICE, LAST_REPORTS};

impl RoundController {
    /// Handles the loss of a PE without a previous error.
    pub(super) fn lose(&mut self, now: Time, pe: PeId, lost: PeLoss) {
        let how = match lost {
            PeLoss::Lifeless(lifeless) => {
                return self.fail(now, FailureCause::Lifeless(pe, lifeless));
            }
            lost if self.is_last(pe, &lost) => return self.fail(now, cause_of_loss(pe, lost)),
            PeLoss::Broken(why) => format!("cannot be understood any more: {why}"),
            _ => "closed its channel without a word".to_owned(),
        };
        self.suspect(now, Some(pe), FailureCause::vanished(pe, &how));
    }

    /// Returns whether no further event of a PE follows: a process that has joined sends none after
    /// the end of its channel.
    pub(super) fn is_last(&self, pe: PeId, lost: &PeLoss) -> bool {
        matches!(lost, PeLoss::Exited { .. }) || self.setting.joined.contains(&pe)
    }

    /// Handles an error. A suspected PE may turn out to be dead, or may report the reason; without
    /// a suspect, there is no better explanation.
    pub(super) fn suspect(&mut self, now: Time, suspect: Option<PeId>, seen: FailureCause) {
        match (suspect, &mut self.state) {
            (None, _) => self.fail(now, seen),
            (Some(_), State::Seeking(first, _)) => {
                if explains(first, &seen) {
                    *first = seen;
                }
            }
            (Some(_), _) => self.state = State::Seeking(seen, after(now, DEATH_NOTICE)),
        }
    }

    /// Handles a loss during the wait for an explanation: the death of a process is one, and so is
    /// the end of a joined PE's channel.
    pub(super) fn seek_in_loss(&mut self, now: Time, pe: PeId, lost: PeLoss) {
        if self.is_last(pe, &lost) {
            self.fail(now, cause_of_loss(pe, lost));
        }
    }

    pub(super) fn cease_seeking(&mut self, now: Time) {
        if let State::Seeking(seen, _) = std::mem::replace(&mut self.state, State::AwaitingAnswers)
        {
            self.fail(now, seen);
        }
    }
}

/// Returns whether a later error replaces the first one as its explanation: the PE that ended a
/// connection reports the reason, unless it reports that the other PE had ended the connection before.
fn explains(first: &FailureCause, later: &FailureCause) -> bool {
    match (first, later) {
        (
            FailureCause::Fault {
                witness: first_witness,
                blamed: Some(blamed),
                hung_up: true,
                ..
            },
            FailureCause::Fault {
                witness,
                blamed: accused,
                hung_up,
                ..
            },
        ) => witness == blamed && !(*hung_up && *accused == Some(*first_witness)),
        _ => false,
    }
}

impl RoundController {
    /// Handles an error: ends the round in all PEs and requests their last reports. Only the first
    /// error counts.
    pub fn fail(&mut self, now: Time, trouble: FailureCause) {
        if matches!(self.state, State::GivingUp(..) | State::Over) {
            return;
        }
        let reason = trouble.to_string();
        if trouble.is_failure() {
            self.updates.push_back(ControllerEvent::Failed {
                kind: trouble.kind(),
                pe: trouble.pe(),
                cause: reason.clone(),
            });
        }
        // All PEs that still run report deliveries; a PE that may be stopped is not awaited.
        if let FailureCause::Lifeless(pe, _) | FailureCause::Stalled(Some(pe), _) = &trouble {
            self.give_up_on(*pe);
        }
        let (round, tree) = (self.round, self.setting.tree.clone());
        for pe in tree.pes() {
            let reason = reason.clone();
            self.send_command(pe, ToPe::Abort { round, reason });
        }
        self.state = State::GivingUp(trouble, after(now, LAST_REPORTS));
        self.end_if_all_notified();
    }

    pub(super) fn give_up_on(&mut self, pe: PeId) {
        self.ended_pes.insert(pe);
        self.updates.push_back(ControllerEvent::GivesUpOn(pe));
    }

    fn has_begun(&self) -> bool {
        self.round > RoundId(u64::from(self.is_waiting_to_begin()))
    }

    /// Returns whether the current round waits for the clocks of the PEs, before it begins.
    fn is_waiting_to_begin(&self) -> bool {
        self.readings.is_some()
    }

    /// Ends the wait as soon as all PEs that can report deliveries have done so.
    pub(super) fn end_if_all_notified(&mut self) {
        let is_waited_for = |pe: PeId| self.is_alive(pe) && self.last_reports[pe.index()].is_none();
        let is_any_waited_for = self.setting.tree.pes().any(is_waited_for);
        // PEs do not report a round that has not begun.
        if !self.has_begun() || self.is_waiting_to_begin() || !is_any_waited_for {
            self.end();
        }
    }

    /// Determines the state of all deliveries.
    pub(super) fn end(&mut self) {
        let State::GivingUp(trouble, _) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let (mut delivered, mut lacking) = (Vec::new(), Vec::new());
        let mut digests = BTreeMap::new();
        let plan = self.plan.as_ref().filter(|_| self.has_begun());
        let deliveries =
            plan.map(|plan| plan.deliveries(&self.setting.tree, self.setting.operation));
        for (delivery, (at, message)) in deliveries.unwrap_or_default() {
            match self.arrival_of(message.id, at) {
                Some(Arrival {
                    delivered: true,
                    digest,
                    ..
                }) => {
                    delivered.push(delivery);
                    digests.extend(digest.map(|digest| (delivery, digest)));
                }
                arrival => lacking.push(MissingDelivery {
                    delivery,
                    bytes: message.bytes,
                    received: match self.is_waiting_to_begin() {
                        true => Some(0),
                        false => arrival.map(|arrival| arrival.bytes_received),
                    },
                }),
            }
        }
        self.gave_up = Some(GaveUp {
            trouble,
            phase: self.phase,
            round: self.has_begun().then_some(self.round),
            delivered,
            digests,
            lacking,
        });
    }

    /// Returns the state of a message at a PE; `None` if the PE has not reported it.
    fn arrival_of(&self, message: MessageId, at: PeId) -> Option<Arrival> {
        let report = self.last_reports[at.index()].as_ref()?;
        let mut arrivals = report.arrivals.iter();
        arrivals.find(|arrival| arrival.message == message).copied()
    }
}
