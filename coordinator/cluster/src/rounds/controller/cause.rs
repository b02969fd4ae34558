//! The choice of the first error. A neighbour often notices a death before the operating system
//! reports it, or the end of a connection before the other PE has reported the reason, so the
//! controller waits a moment for an event that explains an error.

use flitcast_proto::{PeId, Time};

use super::clock::after;
use super::failure_cause::{FailureCause, PeLoss, cause_of_loss};
use super::state::{RoundController, State};
use crate::tuning::DEATH_NOTICE;

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
