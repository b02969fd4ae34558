//! The incoming message of a round, and the frame in hand.

use std::ops::Range;

use super::hash::Hash;
use crate::items::{Message, Route};
use crate::wire::flit::Digest;
use crate::{PeId, Time};

/// A message that arrives.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: PeId,
    pub(super) message: Message,
    /// The route, or `None` for a message of an earlier round, which is dropped.
    pub(super) route: Option<Route>,
    /// Bytes that are yet to arrive, and how many of them come later, in another part.
    pub(super) left: u64,
    pub(super) later: u64,
    /// Whether its payload is hashed: it ends here, and there is payload.
    pub(super) is_hashed: bool,
    /// The digest in the last flit.
    pub(super) digest: Option<Digest>,
    /// Whether the commit of the verified message was requested.
    pub(super) is_committed: bool,
    /// When its first flit was here, and when the first flit was forwarded.
    pub(super) since: Time,
    pub(super) relayed: Option<Time>,
}

impl Incoming {
    /// Returns whether the message belongs to this round.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.route.is_some()
    }

    /// Returns whether more of the present part is yet to arrive.
    pub(super) fn has_part_left(&self) -> bool {
        self.left > self.later
    }

    pub(super) fn ends_here(&self) -> bool {
        self.route.as_ref().is_some_and(|route| route.deliver)
    }
}

/// The last received frame.
#[derive(Debug)]
pub(super) struct InHand {
    pub(super) from: PeId,
    /// The range of its payload; empty if it is not a flit of this round.
    pub(super) payload: Range<usize>,
    /// Number of actions done with it.
    pub(super) done: usize,
}

/// The message and the frame that the PE receives.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) incoming: Option<Incoming>,
    /// Hash of the payload of `incoming` so far.
    pub(super) hash: Hash,
    /// The last received frame, while actions on it are left.
    pub(super) in_hand: Option<InHand>,
}

impl Receiving {
    /// Returns whether a message of this round is incomplete.
    pub(super) fn is_in_message(&self) -> bool {
        self.incoming.as_ref().is_some_and(Incoming::counts)
    }

    /// Puts a frame in hand, with the range of its payload.
    #[inline]
    pub(super) fn take(&mut self, from: PeId, payload: Range<usize>) {
        self.in_hand = Some(InHand {
            from,
            payload,
            done: 0,
        });
    }

    /// Counts an action on the frame in hand; returns the bytes of its payload.
    pub(super) fn has_done(&mut self) -> u64 {
        self.in_hand.as_mut().map_or(0, |in_hand| {
            in_hand.done += 1;
            in_hand.payload.len() as u64
        })
    }
}
