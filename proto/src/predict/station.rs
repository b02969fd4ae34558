//! A PE of a predicted round: its state machine, its ports and the work in its hands.

use super::resources::Port;
use crate::PeId;
use crate::pe::{Control, Message, Pe, Route};
use crate::spans::Span;

/// A PE and what it is at.
pub struct Station {
    pub pe: Pe,
    pub job: Job,
    /// The work under way.
    pub action: Option<Action>,
    /// It waits for something to happen.
    pub asleep: bool,
    /// It waits for a wire to have room, in the middle of a write.
    pub writes: bool,
    /// When the action's work was asked for.
    pub began: u64,
    /// Since when it waits for its files.
    pub held_up: Option<u64>,
    /// For how long it has in all.
    pub files_ns: u64,
    /// The ports, where all edges share them.
    pub send: Port,
    pub receive: Port,
    pub spans: Vec<Span>,
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

/// What a PE is at, over many frames.
#[derive(Clone, Copy)]
pub enum Job {
    Idle,
    /// A control item is to go.
    Control {
        to: PeId,
        item: Control,
    },
    /// A message that starts here, or was held.
    Send {
        to: PeId,
        message: Message,
        left: u64,
        since: u64,
    },
    /// A message that comes in.
    Receive {
        from: PeId,
        message: Message,
        left: u64,
        route: Route,
        /// The payload of a flit that is yet to be passed on.
        in_hand: Option<u64>,
        since: u64,
        /// When the first flit went on.
        relayed: Option<u64>,
    },
}

/// One frame's work.
#[derive(Clone, Copy)]
pub enum Action {
    ControlOut {
        to: PeId,
        item: Control,
        /// Between two flits of a message.
        interjected: bool,
    },
    ControlIn {
        from: PeId,
        item: Control,
    },
    FlitOut {
        to: PeId,
        message: Message,
        bytes: u64,
    },
    FlitIn {
        bytes: u64,
    },
}

/// What a PE does next.
pub enum Next {
    Act(Action),
    /// Nothing, unless something happens, before this time.
    Sleep(Option<u64>),
}
