//! The schedules that PEs receive before a round.

use std::collections::BTreeSet;

use super::collective::{Collective, Direction};
use super::pe_role::PeRole;
use crate::Compression;
use crate::items::{Message, ScheduledHop};
use crate::limits::POLL_MAX_MESSAGE_BYTES;
use crate::schedule::pace::{Pace, Packets};
use crate::{MessageId, PeId, Tree};

/// The schedule of one PE for one round: its role, flit size, pacing, and the messages that it sends
/// and receives.
#[derive(Clone, Debug, PartialEq)]
pub struct PeSchedule {
    /// Collective of the round.
    pub collective: Collective,
    pub role: PeRole,
    /// Maximum number of parts of a message; 1 if messages are undivided.
    pub parts: u32,
    /// Whether part 0 of a message in parts is its last flit ([`crate::ops::parts`]).
    pub has_tail: bool,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Unit of time, and how orders are obeyed.
    pub pace: Pace,
    /// The nonnull messages that start here, in sending order: all of them at the root of a
    /// scatter, the PE's own message in a gather.
    pub sends: Vec<Message>,
    /// Payload bytes of a full flit of each message in `sends`, at most `flit_bytes`; empty if all
    /// messages use `flit_bytes`.
    pub packet_bytes: Vec<u32>,
    /// The nonnull messages that end here, by id.
    pub receives: Vec<Message>,
    /// Number of nonnull messages that end in this PE's subtree, the PE included; or that start
    /// there, if messages go up.
    pub subtree_messages: u64,
    /// `subtree_messages` of each child, in index order.
    pub child_messages: Vec<u64>,
    /// The ranks of the children, in index order, by which the PE takes their streams in a gather by
    /// certification; empty if it takes each as early as it can come.
    pub child_ranks: Vec<u32>,
    /// Crossings of the static schedule that this PE sends or receives, by first step.
    pub hops: Vec<ScheduledHop>,
    /// Whether the PE uses a port for each neighbour at the same time; the crossings of each
    /// neighbour stay in order. In a scatter or a gather only P0 can, because one stream passes any
    /// other PE.
    pub all_ports: bool,
    /// Whether the PE sends no faster than its link carries, and each crossing of the static schedule
    /// waits for its receiver's call.
    pub in_turns: bool,
    /// Whether the PE may receive a short message ahead of the static schedule, because only
    /// processes take time.
    pub in_any_order: bool,
    /// Whether the PE polls up to [`POLL_ATTEMPTS`](super::POLL_ATTEMPTS) times before it sleeps.
    pub polls_before_sleep: bool,
    /// The compression of flits where it makes them shorter.
    pub compression: Compression,
}

impl PeSchedule {
    /// Returns whether the PE sends and receives at the same time.
    pub fn is_duplex(&self) -> bool {
        self.role == PeRole::StaticSchedule || self.all_ports
    }

    /// Returns the PEs with which this PE exchanges frames: the parent, the children, and by index those
    /// that the static schedule contains beside them.
    pub fn neighbours(&self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        let in_tree = tree.parent(pe).into_iter();
        let mut all: Vec<PeId> = in_tree.chain(tree.children(pe).iter().copied()).collect();
        let ends = self.hops.iter().flat_map(|hop| [hop.from, hop.to]);
        let mut peers: Vec<PeId> = ends
            .filter(|end| *end != pe && !all.contains(end))
            .collect();
        peers.sort_unstable();
        peers.dedup();
        all.extend(peers);
        all
    }

    /// Returns the neighbours that send flits to this PE.
    pub fn senders(&self, tree: &Tree, pe: PeId) -> BTreeSet<PeId> {
        if self.role == PeRole::StaticSchedule {
            let incoming = self.hops.iter().filter(|hop| hop.to == pe);
            return incoming.map(|hop| hop.from).collect();
        }
        match self.collective.direction() {
            Direction::Down | Direction::Across => {
                let parent = tree.parent(pe).filter(|_| self.subtree_messages > 0);
                parent.into_iter().collect()
            }
            Direction::Up => {
                let children = tree.children(pe).iter().zip(&self.child_messages);
                let senders = children.filter(|(_, messages)| **messages > 0);
                senders.map(|(child, _)| *child).collect()
            }
        }
    }

    /// Returns whether the static schedule has the PE store messages of others, and forward them.
    pub fn forwards_stored(&self, pe: PeId) -> bool {
        let is_own = |id| self.sends.iter().any(|message| message.id == id);
        let mut hops = self.hops.iter();
        hops.any(|hop| hop.from == pe && !is_own(hop.message))
    }

    /// Returns the payload bytes of the longest flit of the messages that end here.
    pub fn longest_received_flit(&self) -> u32 {
        let longest = self.receives.iter().map(|message| message.bytes).max();
        longest.unwrap_or(0).min(u64::from(self.flit_bytes)) as u32
    }

    /// Returns whether the PE sends and receives only messages that are short enough to poll for.
    pub fn has_short_messages(&self) -> bool {
        let mut all = self.sends.iter().chain(&self.receives);
        all.all(|message| message.bytes <= POLL_MAX_MESSAGE_BYTES)
    }

    /// Returns the messages that start here, in sending order, with the payload bytes of their full
    /// flits.
    pub fn cut_sends(&self) -> impl Iterator<Item = (&Message, u32)> + Clone {
        let cut = self.packet_bytes.iter().copied();
        let cut = cut.chain(std::iter::repeat(self.flit_bytes));
        self.sends.iter().zip(cut)
    }

    /// Returns the packets of the PE's own message in a gather.
    pub fn own_packets(&self) -> Packets {
        let own = self.cut_sends().next();
        own.map_or_else(Packets::default, |(message, flit)| {
            Packets::of(message.bytes, flit)
        })
    }

    /// Returns the payload bytes of a full flit of a message that starts here, by linear search.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let own = self.cut_sends().find(|(sent, _)| sent.id == message);
        own.map_or(self.flit_bytes, |(_, bytes)| bytes)
    }
}
