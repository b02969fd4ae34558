//! The deliveries of a collective on a tree: their numbers, names and lengths.

use super::collective::{Collective, pair};
use crate::items::Address;
use crate::{DeliveryId, DeliveryName, MessageId, PeId, Tree};

impl Collective {
    /// Returns the messages that end at a PE, by id.
    pub fn taken_by(self, tree: &Tree, pe: PeId) -> Vec<MessageId> {
        let messages = self.messages(tree);
        let taken = messages.filter(|message| message.is_for(pe));
        taken.map(|message| message.id).collect()
    }

    /// Returns the delivery of an existing message, or of a part of it, at an existing PE.
    pub fn delivery(self, tree: &Tree, message: MessageId, at: PeId) -> DeliveryId {
        let (MessageId(whole), _) = self.whole(tree, message);
        DeliveryId(match self {
            Collective::Broadcast => at.0,
            Collective::Gossip => (whole * tree.len() as u64 + u64::from(at.0)) as u32,
            _ => whole as u32,
        })
    }

    /// Returns the message and the PE of a delivery, or `None` if it does not exist.
    pub fn delivered(self, tree: &Tree, delivery: DeliveryId) -> Option<(Address, PeId)> {
        let number = MessageId(delivery.0.into());
        let pe = PeId(delivery.0);
        let other_end = || (pe.index() < tree.len() && pe != tree.root()).then_some(pe);
        let (message, at) = match self {
            Collective::Scatter => (number, other_end()?),
            Collective::Gather => (number, other_end().and(Some(tree.root()))?),
            Collective::Broadcast => (MessageId(0), other_end()?),
            Collective::Gossip => {
                let [source, at] = pair(tree, number.0)?;
                (source.into(), at)
            }
            Collective::Exchange => (number, pair(tree, number.0)?[1]),
        };
        Some((self.address(tree, message)?, at))
    }

    /// Returns whether both ends of a delivery are on a tree.
    pub fn can_deliver(self, tree: &Tree, delivery: DeliveryId) -> bool {
        let found = self.delivered(tree, delivery);
        found.is_some_and(|(message, at)| tree.contains(message.source) && tree.contains(at))
    }

    /// Returns the length of arrays that are indexed by delivery.
    pub fn deliveries(self, tree: &Tree) -> usize {
        match self.is_of_pairs() {
            true => tree.len() * tree.len(),
            false => tree.len(),
        }
    }

    /// Returns the name of an existing delivery for users: the PE at its other end if the root is
    /// one end, or else its source and its destination.
    pub fn delivery_name(self, tree: &Tree, delivery: DeliveryId) -> DeliveryName {
        let pe = |index: usize| PeId(index as u32);
        let (index, pes) = (delivery.index(), tree.len());
        match self.is_of_pairs() {
            true => DeliveryName {
                row: pe(index % pes),
                source: Some(pe(index / pes)),
            },
            false => DeliveryName {
                row: pe(index),
                source: None,
            },
        }
    }

    /// Returns the delivery with this name, if it exists.
    pub fn delivery_named(self, tree: &Tree, name: DeliveryName) -> Option<DeliveryId> {
        let before = name.source.map_or(0, |source| source.index() * tree.len());
        let delivery = DeliveryId((before + name.row.index()) as u32);
        let is_one = self.delivered(tree, delivery).is_some();
        (is_one && self.delivery_name(tree, delivery) == name).then_some(delivery)
    }

    /// Returns the PE whose row of a report contains a delivery.
    pub fn row(self, tree: &Tree, delivery: DeliveryId) -> PeId {
        self.delivery_name(tree, delivery).row
    }

    /// Returns all deliveries, including those of absent PEs.
    pub fn all_deliveries(self, tree: &Tree) -> impl Iterator<Item = DeliveryId> {
        let ids = (0..self.deliveries(tree)).map(|index| DeliveryId(index as u32));
        ids.filter(move |id| self.delivered(tree, *id).is_some())
    }

    /// Returns the number of lengths that describe all messages: one for each message id, or, if
    /// the root is an end of every message, one for each other PE.
    pub fn lengths_given(self, tree: &Tree) -> usize {
        match self.is_of_pairs() {
            true => self.ids(tree) as usize,
            false => tree.len() - 1,
        }
    }

    /// Returns the lengths of all deliveries; `lengths` has [`Collective::lengths_given`] elements.
    pub fn by_delivery(self, tree: &Tree, lengths: &[u64]) -> Vec<u64> {
        if !self.is_of_pairs() {
            let mut bytes = lengths.to_vec();
            bytes.insert(tree.root().index(), 0);
            return bytes;
        }
        let mut bytes = vec![0; self.deliveries(tree)];
        for message in self.messages(tree) {
            for at in message.ends(tree) {
                let delivery = self.delivery(tree, message.id, at);
                bytes[delivery.index()] = lengths[message.id.index()];
            }
        }
        bytes
    }

    /// Returns the lengths that describe all deliveries: the inverse of [`Collective::by_delivery`].
    pub fn by_message(self, tree: &Tree, bytes: &[u64]) -> Vec<u64> {
        if !self.is_of_pairs() {
            let mut lengths = bytes.to_vec();
            lengths.remove(tree.root().index());
            return lengths;
        }
        let mut lengths = vec![0; self.lengths_given(tree)];
        for message in self.messages(tree) {
            lengths[message.id.index()] = self.length(tree, message, bytes);
        }
        lengths
    }

    /// Returns the length of a message from the lengths by delivery, which is 0 only where it is
    /// left out.
    pub fn length(self, tree: &Tree, message: Address, bytes: &[u64]) -> u64 {
        let lengths = message.ends(tree);
        let lengths = lengths.map(|pe| bytes[self.delivery(tree, message.id, pe).index()]);
        lengths.max().unwrap_or(0)
    }

    /// Returns the lengths of the nonnull messages from the lengths by delivery.
    pub fn lengths(self, tree: &Tree, bytes: &[u64]) -> impl Iterator<Item = u64> {
        let messages = self.messages(tree);
        let lengths = messages.map(move |message| self.length(tree, message, bytes));
        lengths.filter(|bytes| *bytes > 0)
    }

    /// Returns for each PE, by index, the bytes of all messages that start or end there. `bytes` is
    /// by delivery.
    pub fn moved_by_pe(self, tree: &Tree, bytes: &[u64]) -> Vec<u64> {
        let mut moved = vec![0u64; tree.len()];
        let mut add = |pe: PeId, bytes: u64| {
            moved[pe.index()] = moved[pe.index()].saturating_add(bytes);
        };
        for message in self.messages(tree) {
            add(message.source, self.length(tree, message, bytes));
            for at in message.ends(tree) {
                add(at, bytes[self.delivery(tree, message.id, at).index()]);
            }
        }
        moved
    }

    /// Returns the bytes of all messages, each counted once. `bytes` is by delivery.
    pub fn total(self, tree: &Tree, bytes: &[u64]) -> u64 {
        self.lengths(tree, bytes).fold(0, u64::saturating_add)
    }
}
