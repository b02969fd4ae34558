//! A PE of a predicted round: its part of the round, its ports and the work in its hands.

use std::collections::{BTreeSet, VecDeque};

use super::resources::PortQueue;
use crate::items::Message;
use crate::ops::GATHERED_BYTES;
use crate::round::{Action, Round, Sized};
use crate::{MessageId, PeId};

/// A PE and what it is at.
pub struct Station {
    pub round: Round,
    /// The work under way.
    pub work: Option<Work>,
    /// Since when it waits for something to happen.
    pub waits_since: Option<u64>,
    /// It looks a few times before it sleeps.
    pub waits_awake: bool,
    /// Whether short frames that follow each other to one neighbour go together.
    pub gathers: bool,
    pub gathered: Gathered,
    /// Messages for several that it is the source of, and has begun to send to one of them.
    pub set_up: BTreeSet<MessageId>,
    /// It has done nothing yet.
    pub fresh: bool,
    /// What it is in the middle of writing, while wires have no room for it.
    pub writes: VecDeque<Action>,
    /// When the work was asked for.
    pub began: u64,
    /// Since when it waits for its files.
    pub held_up: Option<u64>,
    /// For how long it has in all.
    pub files_ns: u64,
    /// The ports, where all edges share them.
    pub send: PortQueue,
    pub receive: PortQueue,
}

impl Station {
    /// Notes whether it can go on at `now`, as far as its files are concerned.
    pub fn goes_on(&mut self, now: u64, can: bool) -> bool {
        match can {
            true => self.files_ns += self.held_up.take().map_or(0, |since| now - since),
            false => self.held_up = self.held_up.or(Some(now)),
        }
        can
    }
}

/// Short frames that are to go with what follows them: for whom, and how many bytes.
#[derive(Default)]
pub struct Gathered(Option<(PeId, u64)>);

impl Gathered {
    /// Whether a frame for this neighbour goes along with them.
    pub fn is_for(&self, to: PeId) -> bool {
        self.0.is_some_and(|(whom, _)| whom == to)
    }

    /// A frame of so many bytes goes to a neighbour, or is gathered for the next one.
    pub fn add(&mut self, to: PeId, bytes: u64) {
        let before = self.0.filter(|(whom, _)| *whom == to);
        let bytes = before.map_or(0, |(_, bytes)| bytes) + bytes;
        self.0 = (bytes <= GATHERED_BYTES as u64).then_some((to, bytes));
    }
}

/// What takes a core: one frame's work.
pub enum Work {
    /// The action puts a frame into a wire.
    Out(Action),
    /// A frame is taken from a wire; whether it came with the one before.
    In(PeId, Sized, bool),
}

/// Flits that go out.
pub struct FlitsOut {
    pub to: PeId,
    pub message: Message,
    pub offset: u64,
    pub bytes: u64,
}

impl FlitsOut {
    /// What an action sends, if it sends flits.
    pub fn of(action: &Action) -> Option<FlitsOut> {
        let (&to, &message, &offset, &bytes) = match action {
            Action::SendFlit {
                to,
                message,
                offset,
                bytes,
                ..
            }
            | Action::SendAgain {
                to,
                message,
                offset,
                bytes,
                ..
            }
            | Action::SendHeld {
                to,
                message,
                offset,
                bytes,
                ..
            }
            | Action::Forward {
                to,
                message,
                offset,
                bytes,
                ..
            } => (to, message, offset, bytes),
            _ => return None,
        };
        Some(FlitsOut {
            to,
            message,
            offset,
            bytes,
        })
    }
}

/// What a PE does next.
pub enum Next {
    Act(Work),
    /// Nothing, unless something happens, before this time.
    Sleep(Option<u64>),
    /// It stays where it is until its files let it go on, and has not been asleep then.
    Stays,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_to_one_neighbour_go_along_until_they_are_many_bytes() {
        let mut gathered = Gathered::default();
        let bytes = GATHERED_BYTES as u64 / 2;
        let mut goes_along = |to, bytes| {
            let goes = gathered.is_for(PeId(to));
            gathered.add(PeId(to), bytes);
            goes
        };
        assert!(!goes_along(1, bytes), "it is the first");
        assert!(goes_along(1, bytes));
        assert!(goes_along(1, 1), "it does not fit, and takes them along");
        assert!(!goes_along(1, bytes));
        assert!(!goes_along(2, bytes), "it goes elsewhere");
        assert!(!goes_along(1, 3 * bytes), "it is too long");
        assert!(!goes_along(1, bytes));
    }
}
