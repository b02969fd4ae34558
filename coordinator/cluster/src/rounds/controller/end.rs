//! The end of rounds after an error: all PEs are stopped, and the deliveries are determined.

use std::collections::BTreeMap;

use flitcast_proto::wire::control::{Arrival, ToPe};
use flitcast_proto::{MessageId, PeId, RoundId, Time};

use super::clock::after;
use super::failure_cause::FailureCause;
use super::state::{RoundController, State};
use super::update::{ControllerEvent, GaveUp};
use crate::rounds::outcome::MissingDelivery;
use crate::tuning::LAST_REPORTS;

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
