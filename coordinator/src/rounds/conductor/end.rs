//! When something has failed: it is ended everywhere, and it is found out what came of the
//! messages.

use std::time::Duration;

use flitcast_proto::wire::control::ToPe;
use flitcast_proto::{MessageId, PeId, RoundId, Time};

use super::clock::after;
use super::{Conductor, State, Trouble, Update};
use crate::observe::phase::Phase;
use crate::rounds::outcome::Lacking;

/// After a failure, for the survivors to undo what is half done and tell what
/// arrived.
pub const LAST_REPORTS: Duration = Duration::from_secs(2);

/// Rounds that were given up.
#[derive(Debug)]
pub struct GaveUp {
    /// What failed first.
    pub trouble: Trouble,
    /// What was being done.
    pub phase: Phase,
    /// In which round; `None` before the first.
    pub round: Option<RoundId>,
    /// Whose messages were delivered in it.
    pub delivered: Vec<PeId>,
    /// Whose were not, of those that are not null.
    pub lacking: Vec<Lacking>,
}

impl Conductor {
    /// Something has failed: ends the round everywhere and finds out what arrived. Of two
    /// failures the first counts.
    pub fn fail(&mut self, now: Time, trouble: Trouble) {
        if matches!(self.state, State::GivingUp(..) | State::Over) {
            return;
        }
        let reason = trouble.to_string();
        self.updates.push_back(Update::Failed {
            kind: trouble.kind(),
            pe: trouble.pe(),
            cause: reason.clone(),
        });
        // Whoever lives tells what arrived; nobody waits for one that may be stopped.
        if let Trouble::Lifeless(pe, _) | Trouble::Stalled(Some(pe), _) = &trouble {
            self.give_up_on(*pe);
        }
        let (round, tree) = (self.round, self.setting.tree.clone());
        for pe in tree.pes() {
            let reason = reason.clone();
            self.say(pe, ToPe::Abort { round, reason });
        }
        self.state = State::GivingUp(trouble, after(now, LAST_REPORTS));
        self.end_if_all_told();
    }

    /// Expects nothing more of a PE.
    pub(super) fn give_up_on(&mut self, pe: PeId) {
        self.gone.insert(pe);
        self.updates.push_back(Update::GivesUpOn(pe));
    }

    fn has_begun(&self) -> bool {
        self.round > RoundId(0)
    }

    /// Ends it as soon as nobody is left who can tell what arrived, and has not.
    pub(super) fn end_if_all_told(&mut self) {
        let is_waited_for = |pe: PeId| self.is_alive(pe) && self.last_reports[pe.index()].is_none();
        let is_any_waited_for = self.setting.tree.pes().any(is_waited_for);
        if !self.has_begun() || !is_any_waited_for {
            self.end();
        }
    }

    /// Works out what came of the messages.
    pub(super) fn end(&mut self) {
        let State::GivingUp(trouble, _) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        let (mut delivered, mut lacking) = (Vec::new(), Vec::new());
        let plan = self.plan.as_ref().filter(|_| self.has_begun());
        let deliveries =
            plan.map(|plan| plan.deliveries(&self.setting.tree, self.setting.operation));
        for (delivery, (at, message)) in deliveries.unwrap_or_default() {
            // Deliveries between P0 and others are numbered as those.
            let pe = PeId(delivery.0);
            match self.arrival_of(message.id, at) {
                Some((_, true)) => delivered.push(pe),
                arrival => lacking.push(Lacking {
                    pe,
                    bytes: message.bytes,
                    received: arrival.map(|(received, _)| received),
                }),
            }
        }
        self.gave_up = Some(GaveUp {
            trouble,
            phase: self.phase,
            round: self.has_begun().then_some(self.round),
            delivered,
            lacking,
        });
    }

    /// Bytes of a message that came to a PE, and whether it was delivered there; `None` if nobody
    /// can tell any more.
    fn arrival_of(&self, message: MessageId, at: PeId) -> Option<(u64, bool)> {
        let report = self.last_reports[at.index()].as_ref()?;
        let mut arrivals = report.arrivals.iter();
        let arrival = arrivals.find(|arrival| arrival.message == message)?;
        Some((arrival.bytes_received, arrival.delivered))
    }
}
