//! What failed first. A neighbour often notices a death before the operating system tells of it,
//! or that somebody gives up before that one has said why: a moment is waited for a better cause.

use flitcast_proto::{PeId, Time};

use super::clock::after;
use super::trouble::{died, gone};
use super::{Conductor, Lost, State, Trouble};
use crate::launch::cluster::DEATH_NOTICE;

impl Conductor {
    /// A PE is lost while nothing was wrong yet.
    pub(super) fn lose(&mut self, now: Time, pe: PeId, lost: Lost) {
        match lost {
            Lost::Exited { how, last_words } => self.fail(now, died(pe, how, &last_words)),
            Lost::Lifeless(lifeless) => self.fail(now, Trouble::Lifeless(pe, lifeless)),
            _ if self.setting.joined.contains(&pe) => self.fail(now, gone(pe, lost)),
            Lost::Broken(why) => {
                let how = format!("cannot be understood any more: {why}");
                self.suspect(now, Some(pe), Trouble::Vanished(pe, how));
            }
            Lost::Closed => {
                let how = "closed its channel without a word".to_owned();
                self.suspect(now, Some(pe), Trouble::Vanished(pe, how));
            }
        }
    }

    /// Something is wrong. Who is suspected may turn out to be dead, or to know better why; where
    /// nobody is, there is no better cause than this.
    pub(super) fn suspect(&mut self, now: Time, suspect: Option<PeId>, seen: Trouble) {
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

    /// A loss while a better cause is sought: a death is one, and of who has joined the end of
    /// its channel.
    pub(super) fn seek_in_loss(&mut self, now: Time, pe: PeId, lost: Lost) {
        match lost {
            Lost::Exited { how, last_words } => self.fail(now, died(pe, how, &last_words)),
            _ if self.setting.joined.contains(&pe) => self.fail(now, gone(pe, lost)),
            _ => {}
        }
    }

    /// There is no better cause.
    pub(super) fn cease_seeking(&mut self, now: Time) {
        if let State::Seeking(seen, _) = std::mem::replace(&mut self.state, State::Asking) {
            self.fail(now, seen);
        }
    }
}

/// Whether a later suspicion explains the first, which otherwise counts: who ended a connection
/// says why, and that is not that the one who noticed it had ended it before.
fn explains(first: &Trouble, later: &Trouble) -> bool {
    match (first, later) {
        (
            Trouble::Fault {
                witness: noticed,
                blamed: Some(blamed),
                hung_up: true,
                ..
            },
            Trouble::Fault {
                witness,
                blamed: whom,
                hung_up,
                ..
            },
        ) => witness == blamed && !(*hung_up && *whom == Some(*noticed)),
        _ => false,
    }
}
