//! What a driver is to do, and what it may be told meanwhile.

use std::ops::Range;

use crate::items::{Control, Message};
use crate::{PeId, Time};

/// What a driver does next. Each is done, and said to be done, before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a control item.
    SendControl {
        /// The neighbour that it is for.
        to: PeId,
        /// The item.
        item: Control,
    },
    /// Send the next flit of a message that starts here, behind the prefix that
    /// [`Round::put_prefix`](super::Round::put_prefix) makes.
    SendFlit {
        /// The neighbour.
        to: PeId,
        /// The message.
        message: Message,
        /// Where in the message the payload begins.
        offset: u64,
        /// Bytes of the payload.
        bytes: u64,
    },
    /// Send the flit that was sent last to one more neighbour, as it went.
    SendAgain {
        /// The neighbour.
        to: PeId,
        /// The message.
        message: Message,
        /// Where in the message the payload begins.
        offset: u64,
        /// Bytes of the payload.
        bytes: u64,
    },
    /// Send the next frame of a message that is held, as it came.
    SendHeld {
        /// The neighbour.
        to: PeId,
        /// The message.
        message: Message,
        /// Where in the message its payload begins.
        offset: u64,
        /// Bytes of the payload.
        bytes: u64,
        /// Nothing of the message that lies ahead of this place goes from here behind it;
        /// [`u64::MAX`] where nothing of it does.
        later_from: u64,
    },
    /// Send the frame in hand on, as it came.
    Forward {
        /// Who sent it.
        from: PeId,
        /// The neighbour that gets it.
        to: PeId,
        /// The message that it belongs to.
        message: Message,
        /// Where in the message its payload begins.
        offset: u64,
        /// Bytes of its payload.
        bytes: u64,
    },
    /// Store the payload of the frame in hand, which is the next of a message for this PE.
    Store {
        /// Who sent it.
        from: PeId,
        /// The message.
        message: Message,
        /// Where in the message the payload begins.
        offset: u64,
        /// Where the payload lies in the frame's body.
        payload: Range<usize>,
    },
    /// Hold the frame in hand, until the message is sent on.
    Hold {
        /// Who sent it.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// The frame in hand is done with: make room for the next one.
    Drop {
        /// Who sent it.
        from: PeId,
    },
    /// A message for this PE is here and what its source sent: make it durable and visible.
    /// [`Round::handle_delivered`](super::Round::handle_delivered) tells when it is; this is
    /// done as soon as that is under way.
    Commit {
        /// The message.
        message: Message,
    },
    /// Nothing: a message is through, and its port turns to what comes next. What others have
    /// sent by now has had to wait for that. Where PEs send and receive at once nobody waits for it,
    /// and it is said of own messages only: of one that goes on later, or by several ports.
    Turn {
        /// Whose stream it was; `None` for an own message.
        from: Option<PeId>,
    },
    /// Wait for a frame of a neighbour that the round listens to, for a message to become
    /// visible, for what is under way to be sent, or until a time; until now, see whether any of
    /// this has come about.
    Wait {
        /// When to ask again at the latest.
        until: Option<Time>,
    },
    /// This PE's part of the round is over.
    Finished,
}

impl Action {
    /// The neighbour that a flit is sent to from here.
    pub fn sends_to(&self) -> Option<PeId> {
        match self {
            Action::SendFlit { to, .. }
            | Action::SendAgain { to, .. }
            | Action::SendHeld { to, .. } => Some(*to),
            _ => None,
        }
    }
}

/// A frame of which only the size is known: what a prediction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sized {
    /// A control item.
    Control(Control),
    /// The next flits of a message.
    Flits {
        /// The message.
        message: Message,
        /// Bytes of their payload.
        bytes: u64,
    },
}

/// Who hears what happens in a round, as it happens: a node's counters.
pub trait Observer {
    /// The first of the round has come, or P0 was triggered.
    fn begun(&self) {}
    /// The PE's part of the round is over.
    fn finished(&self) {}
    /// So many bytes of messages have left their source or reached their destination here.
    fn moved(&self, bytes: u64) {
        let _ = bytes;
    }
    /// A frame of an earlier round has come.
    fn late(&self) {}
    /// So many flits of others' messages are in memory now.
    fn holds(&self, flits: u64) {
        let _ = flits;
    }
    /// The PE's own message was due, and has begun.
    fn started(&self, due: Time, began: Time) {
        let _ = (due, began);
    }
}

/// Nobody hears it.
impl Observer for () {}
