//! The schedules that PEs receive before a round.

use std::collections::BTreeMap;

use super::operation::{Algorithm, Direction};
use super::parts::bytes_of_parts;
use crate::items::{Message, ScheduledHop};
use crate::limits::SPIN_MAX_MESSAGE_BYTES;
use crate::schedule::flits_of;
use crate::schedule::pace::{Pace, Pacing, Timing};
use crate::{MessageId, PeId, Tree};

/// The schedule of one PE for one round: algorithm, flit size, pacing, and the messages that it
/// sends and receives.
#[derive(Clone, Debug, PartialEq)]
pub struct PeSchedule {
    /// Algorithm of the round.
    pub operation: Algorithm,
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
    /// Whether the PE may receive a short message ahead of the static schedule, because only
    /// processes take time.
    pub in_any_order: bool,
}

impl PeSchedule {
    /// Returns whether the PE sends and receives at the same time.
    pub fn is_duplex(&self) -> bool {
        self.operation.is_duplex() || self.all_ports
    }

    /// Returns whether PEs follow a static schedule in turns: each crossing waits for its
    /// receiver's call.
    pub fn is_in_turns(&self) -> bool {
        let has_turns = self.operation.is_duplex() && self.operation.gives_orders();
        let one_port = !self.pace.lock_step && !self.all_ports;
        has_turns && self.pace.pacing == Pacing::Turns && one_port
    }

    /// Returns whether the PE polls up to [`SPIN_ATTEMPTS`](crate::limits::SPIN_ATTEMPTS) times before it sleeps.
    pub fn spins_before_sleep(&self) -> bool {
        let mut all = self.sends.iter().chain(&self.receives);
        self.in_any_order && all.all(|message| message.bytes <= SPIN_MAX_MESSAGE_BYTES)
    }

    /// Returns the messages that start here, in sending order, with the payload bytes of their full
    /// flits.
    pub fn cut_sends(&self) -> impl Iterator<Item = (&Message, u32)> + Clone {
        let cut = self.packet_bytes.iter().copied();
        let cut = cut.chain(std::iter::repeat(self.flit_bytes));
        self.sends.iter().zip(cut)
    }

    /// Returns the payload bytes of a full flit of a message that starts here, by linear search.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let own = self.cut_sends().find(|(sent, _)| sent.id == message);
        own.map_or(self.flit_bytes, |(_, bytes)| bytes)
    }

    /// Returns the schedules of all PEs by index. `bytes` is by delivery: 0 if a PE is absent or
    /// the message is left out there. An absent PE has no messages.
    pub fn all(
        tree: &Tree,
        operation: Algorithm,
        bytes: &[u64],
        timing: &Timing,
    ) -> Vec<PeSchedule> {
        let (mut sends, mut receives) = messages_of_pes(tree, operation, bytes, timing);
        let subtree_messages = tree.subtree_sums(|pe| match operation.direction() {
            Direction::Down | Direction::Across => receives[pe.index()].len() as u64,
            Direction::Up => sends[pe.index()].len() as u64,
        });
        let mut hops = vec![Vec::new(); tree.len()];
        for hop in operation.hops(tree, bytes, timing) {
            hops[hop.from.index()].push(hop);
            hops[hop.to.index()].push(hop);
        }
        for (pe, sends) in tree.ids().zip(&mut sends) {
            // The order of the static schedule, if there is one.
            let mut firsts = BTreeMap::new();
            for hop in hops[pe.index()].iter().filter(|hop| hop.from == pe) {
                firsts.entry(hop.message).or_insert(hop.first_step);
            }
            sends.sort_by_key(|message| firsts.get(&message.id).copied());
        }
        let brief = |pe: PeId| {
            let children = tree.children(pe).iter();
            let sends = std::mem::take(&mut sends[pe.index()]);
            PeSchedule {
                operation,
                flit_bytes: timing.flit_bytes(),
                pace: timing.pace(tree, pe),
                packet_bytes: timing.packet_bytes_of(sends.iter().map(|sent| sent.id)),
                sends,
                receives: std::mem::take(&mut receives[pe.index()]),
                subtree_messages: subtree_messages[pe.index()],
                child_messages: children
                    .map(|child| subtree_messages[child.index()])
                    .collect(),
                child_ranks: Vec::new(),
                hops: std::mem::take(&mut hops[pe.index()]),
                all_ports: operation.uses_all_ports(timing)
                    && (operation.is_duplex() || pe == tree.root()),
                in_any_order: false,
            }
        };
        let mut briefs: Vec<PeSchedule> = tree.ids().map(brief).collect();
        for brief in &mut briefs {
            let has_order = brief.all_ports || brief.is_in_turns();
            let is_list = operation.is_duplex();
            brief.in_any_order = is_list && timing.shares_no_port && !has_order;
        }
        briefs
    }
}

/// Returns the messages that each PE sends, in the order of the algorithm, and those that it
/// receives, by id; both lists are by PE index.
fn messages_of_pes(
    tree: &Tree,
    operation: Algorithm,
    bytes: &[u64],
    timing: &Timing,
) -> (Vec<Vec<Message>>, Vec<Vec<Message>>) {
    let mut sends = vec![Vec::new(); tree.len()];
    let mut receives = vec![Vec::new(); tree.len()];
    let flit_bytes = timing.flit_bytes();
    for id in (operation.entry().order)(tree, bytes, timing) {
        let Some(address) = operation.address(tree, id) else {
            continue;
        };
        let length = operation.length(tree, address, bytes);
        let takes_it = |pe: &PeId| bytes[operation.delivery(tree, id, *pe).index()] > 0;
        let flits = operation.part_flits(tree, flits_of(length, flit_bytes));
        let parts = bytes_of_parts(&flits, length, flit_bytes.into());
        let parts = parts.into_iter().enumerate();
        for (part, bytes) in parts.filter(|(_, bytes)| *bytes > 0) {
            let message = Message {
                id: operation.part(tree, id, part),
                source: address.source,
                destination: address.destination,
                bytes,
            };
            sends[address.source.index()].push(message);
            for pe in address.ends(tree).filter(takes_it) {
                receives[pe.index()].push(message);
            }
        }
    }
    for receives in &mut receives {
        receives.sort_by_key(|message: &Message| message.id);
    }
    (sends, receives)
}
