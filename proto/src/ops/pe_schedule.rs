//! The schedules that PEs receive before a round.

use std::collections::{BTreeMap, BTreeSet};

use super::collective::{Collective, Direction};
use crate::items::{Message, ScheduledHop};
use crate::limits::POLL_MAX_MESSAGE_BYTES;
use crate::schedule::certification::Sync;
use crate::schedule::pace::{Pace, Packets};
use crate::{Compression, MessageId, PeId, Tree};

/// The rules by which a PE decides what it sends and what it does with what arrives.
///
/// Planners choose the messages, their order and the crossings; the role of a PE does not depend on the
/// algorithm that has chosen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeRole {
    /// Scatter: the root sends messages in the given order, and the other PEs relay them.
    Scatter,
    /// Gather by Shoulder-Tap; the tree must be a path.
    ShoulderTap,
    /// Gather by Transmission-Certification.
    Certification(Sync),
    /// Gather on a star: the root requests one message after the other, `window` at most at a time.
    Linear {
        /// At least 1.
        window: u32,
    },
    /// Scatter or gather: a PE holds all messages of its subtree before it forwards them.
    Combining,
    /// Broadcast: a PE forwards each flit to one child after the other.
    FlitByFlit,
    /// Any collective but a gather: a PE executes a list of crossings.
    StaticSchedule,
}

impl PeRole {
    pub fn serves(self, collective: Collective) -> bool {
        match self {
            PeRole::Scatter => collective == Collective::Scatter,
            PeRole::ShoulderTap | PeRole::Certification(_) | PeRole::Linear { .. } => {
                collective == Collective::Gather
            }
            PeRole::Combining => matches!(collective, Collective::Scatter | Collective::Gather),
            PeRole::FlitByFlit => collective == Collective::Broadcast,
            PeRole::StaticSchedule => collective != Collective::Gather,
        }
    }

    /// Returns the phase of the round for error messages: "in a scatter".
    pub(super) fn phase(self) -> &'static str {
        match self {
            PeRole::Scatter => "in a scatter",
            PeRole::ShoulderTap => "in a Shoulder-Tap gather",
            PeRole::Certification(_) => "in this phase of a Transmission-Certification gather",
            PeRole::Linear { .. } => "in a linear gather",
            PeRole::Combining => "in a combining round",
            PeRole::FlitByFlit => "in a broadcast",
            PeRole::StaticSchedule => "in a round by a list",
        }
    }

    /// Returns whether a PE has a separate port for the control items of each neighbour.
    pub fn has_control_ports(self) -> bool {
        matches!(
            self,
            PeRole::Certification(Sync::Parallel | Sync::MultiPort)
        )
    }
}

/// The schedule of one PE for one round: its role, flit size, pacing, and the messages that it sends
/// and receives.
#[derive(Clone, Debug, PartialEq)]
pub struct PeSchedule {
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

impl PeSchedule {
    /// Checks that this PE, with connections to `connected` (sorted), can execute all crossings: each has
    /// flits of a message of the collective and uses a connection; the flits of a message arrive once
    /// each and without gaps, and all of those that end here; and only flits that start or arrive here
    /// are sent.
    ///
    /// # Errors
    ///
    /// Returns a description of the first crossing that is not possible.
    pub fn check_hops(
        &self,
        pe: PeId,
        tree: &Tree,
        connected: &[PeId],
    ) -> Result<(), &'static str> {
        if self.role != PeRole::StaticSchedule {
            return match self.hops.is_empty() {
                true => Ok(()),
                false => Err("with crossings for a role that has none"),
            };
        }
        for hop in &self.hops {
            self.check_hop(pe, tree, connected, hop)?;
        }
        let all_flits = |bytes: u64| bytes.div_ceil(self.flit_bytes.into());
        // The flits of each message that this PE has in the end: its own, and those that arrive.
        let sends = self.sends.iter();
        let sends = sends.map(|message| (message.id, all_flits(message.bytes)));
        let mut here: BTreeMap<MessageId, u64> = sends.collect();
        let (mut arriving, sent): (Vec<&ScheduledHop>, Vec<&ScheduledHop>) =
            self.hops.iter().partition(|hop| hop.to == pe);
        arriving.sort_unstable_by_key(|hop| (hop.message, hop.offset));
        for hop in arriving {
            let end = here.entry(hop.message).or_default();
            if *end != hop.offset {
                return Err("with crossings that repeat flits or leave some out");
            }
            *end += hop.flits;
        }
        let flits_of = |message| here.get(&message).copied().unwrap_or(0);
        let mut receives = self.receives.iter();
        if receives.any(|message| flits_of(message.id) != all_flits(message.bytes)) {
            return Err("with crossings that are not the flits of a message");
        }
        let mut sent = sent.iter();
        match sent.all(|hop| hop.offset + hop.flits <= flits_of(hop.message)) {
            true => Ok(()),
            false => Err("with crossings of flits that never arrive"),
        }
    }

    fn check_hop(
        &self,
        pe: PeId,
        tree: &Tree,
        connected: &[PeId],
        hop: &ScheduledHop,
    ) -> Result<(), &'static str> {
        let other = match (hop.from == pe, hop.to == pe) {
            (true, false) => hop.to,
            (false, true) => hop.from,
            _ => return Err("with crossings between other PEs"),
        };
        if connected.binary_search(&other).is_err() {
            return Err("with crossings over connections that the PE does not have");
        }
        let parts = self.parts as usize;
        let message = self.collective.address_of_part(tree, hop.message, parts);
        let end = hop.offset.checked_add(hop.flits);
        let is_possible = hop.flits > 0 && hop.first_step > 0 && hop.every > 0;
        match message.is_some() && end.is_some() && is_possible {
            true => Ok(()),
            false => Err("with crossings of no flits of any message"),
        }
    }
}
