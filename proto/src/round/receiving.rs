//! The incoming messages of a round, and the frame in hand.

use std::collections::BTreeMap;
use std::ops::Range;

use super::hash::Hash;
use crate::items::{Message, Route};
use crate::wire::flit::Digest;
use crate::{MessageId, PeId, Time};

/// A message that arrives.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: PeId,
    pub(super) message: Message,
    /// The route, or `None` for a message of an earlier round, which is dropped.
    pub(super) route: Option<Route>,
    /// Bytes that are yet to come, and how many of them come later, in another part.
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

    #[inline]
    pub(super) fn is(&self, message: MessageId) -> bool {
        self.message.id == message
    }

    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.message.bytes - self.left
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

/// The incoming messages.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) incoming: Option<Incoming>,
    /// Hash of the payload of `incoming` so far.
    pub(super) hash: Hash,
    /// Incomplete messages of other neighbours, with their hashes.
    pub(super) aside: BTreeMap<PeId, (Incoming, Hash)>,
    /// Messages of which a part has arrived, with the hash of that part.
    pub(super) paused: BTreeMap<MessageId, (Incoming, Hash)>,
    /// The last received frame, while actions on it are left.
    pub(super) in_hand: Option<InHand>,
}

impl Receiving {
    /// Makes the message from this neighbour the current one and sets the previous one aside.
    #[inline]
    pub(super) fn turn_to(&mut self, from: PeId) {
        if self.incoming.as_ref().is_some_and(|it| it.from != from)
            && let Some(incoming) = self.incoming.take()
        {
            let hash = std::mem::take(&mut self.hash);
            self.aside.insert(incoming.from, (incoming, hash));
        }
        if self.incoming.is_none()
            && let Some((incoming, hash)) = self.aside.remove(&from)
        {
            self.incoming = Some(incoming);
            self.hash = hash;
        }
    }

    /// Returns the bytes that are left of the current message, or else of a paused one.
    #[inline]
    pub(super) fn bytes_left(&self, message: MessageId) -> Option<u64> {
        let paused = self.paused.get(&message).map(|(incoming, _)| incoming);
        let incoming = self.incoming.as_ref().or(paused);
        incoming.map(|incoming| incoming.left)
    }

    /// Returns the number of bytes that have arrived of a message.
    #[inline]
    pub(super) fn bytes_taken(&self, message: MessageId) -> u64 {
        let paused = self.paused.get(&message).map(|(incoming, _)| incoming);
        let aside = self.aside.values().map(|(incoming, _)| incoming);
        let mut under_way = self.incoming.iter().chain(aside);
        let under_way = under_way.find(|it| it.is(message));
        under_way.or(paused).map_or(0, Incoming::taken)
    }

    /// Pauses the current message, of which another part comes later.
    pub(super) fn pause(&mut self) {
        let hash = std::mem::take(&mut self.hash);
        let paused = self.incoming.take();
        let paused = paused.map(|incoming| (incoming.message.id, (incoming, hash)));
        self.paused.extend(paused);
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
}
