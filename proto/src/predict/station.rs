//! A PE of a predicted round: its part of the round, its ports and the work in its hands.

use std::collections::VecDeque;

use super::resources::PortQueue;
use crate::PeId;
use crate::round::{Action, Round, Sized};

/// A PE and what it is at.
pub struct Station {
    pub round: Round,
    /// The work under way.
    pub work: Option<Work>,
    /// It waits for something to happen.
    pub asleep: bool,
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

/// What takes a core: one frame's work.
pub enum Work {
    /// The action puts a frame into a wire.
    Out(Action),
    /// A frame is taken from a wire.
    In(PeId, Sized),
}

/// What a PE does next.
pub enum Next {
    Act(Work),
    /// Nothing, unless something happens, before this time.
    Sleep(Option<u64>),
    /// It stays where it is until its files let it go on, and has not been asleep then.
    Stays,
}
