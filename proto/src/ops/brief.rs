//! What each PE is told of a round before it begins.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::even_parts;
use super::table::{Direction, Operation, Word};
use crate::items::{Address, Leg, Message};
use crate::schedule::pace::{Pace, Pacing, Timing};
use crate::{MessageId, PeId, Tree};

/// So many bytes of short frames that follow each other to one neighbour go with one call of the
/// operating system: to copy them takes a part of what a call takes, and as many are read at once.
pub const GATHERED_BYTES: usize = 16 << 10;

/// On one machine the next short message is there sooner than a PE that sleeps is woken up: it looks
/// for it so often before it sleeps, and lets whoever else wants its processor go on each time. If
/// nobody does, that takes some 30 us, and what it takes to ask the connections.
pub const LOOKS: usize = 40;

/// It does so where all messages of its list are at most so long. Longer ones are not there as soon, and
/// whoever copies them needs the processor.
const AWAKE_FOR_BYTES: u64 = 128 << 10;

/// What a PE is told of a round beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// What the round does.
    pub operation: Operation,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// What a tick is, and how orders are obeyed.
    pub pace: Pace,
    /// The nonnull messages this PE is the source of, in the order in which they
    /// go: the root's schedule in a scatter, its own message for another PE in a gather.
    pub sends: Vec<Message>,
    /// Payload bytes of a full flit of each of them, where messages are cut each in its own way; else
    /// empty. None is more than `flit_bytes`.
    pub packet_bytes: Vec<u32>,
    /// The nonnull messages this PE is the destination of, by id.
    pub takes: Vec<Message>,
    /// What this PE's subtree is to get, or to send where all goes up, in nonnull messages; what
    /// is its own included. Only the end of the round is told by it, never the schedule.
    pub subtree_messages: u64,
    /// The same for each child, in index order.
    pub child_messages: Vec<u64>,
    /// By a static schedule: what this PE sends and what it takes, by their first steps.
    pub legs: Vec<Leg>,
    /// It sends to all its neighbours at once and takes from all, from each in this order.
    pub all_ports: bool,
    /// By a list: nothing but processes takes time, so short messages are taken as they come.
    pub in_any_order: bool,
    /// By a list in which all begin with the token: none comes, since its parent's first messages
    /// are short and one of them is for it.
    pub begins_by_message: bool,
}

impl Brief {
    /// Whether it is a list that is played in turns: nobody sends uncalled.
    pub fn is_in_turns(&self) -> bool {
        let has_turns = self.operation.is_duplex() && self.operation.gives_orders();
        let one_port = !self.pace.lock_step && !self.all_ports;
        has_turns && self.pace.pacing == Pacing::Turns && one_port
    }

    /// Whether a PE looks a few times for what comes next before it sleeps.
    pub fn waits_awake(&self) -> bool {
        let mut all = self.sends.iter().chain(&self.takes);
        self.in_any_order && all.all(|message| message.bytes <= AWAKE_FOR_BYTES)
    }

    /// Payload bytes of a full flit of a message that starts here.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let mut cut = self.sends.iter().zip(&self.packet_bytes);
        let own = cut.find(|(sent, _)| sent.id == message);
        own.map_or(self.flit_bytes, |(_, bytes)| *bytes)
    }

    /// The briefs of all PEs of a round, by PE index, `bytes` being the lengths by delivery: 0
    /// where a PE is absent, or a message is left out there. Who is absent is told of nothing.
    pub fn all(tree: &Tree, operation: Operation, bytes: &[u64], timing: &Timing) -> Vec<Brief> {
        let mut sends = vec![Vec::new(); tree.len()];
        let mut takes = vec![Vec::new(); tree.len()];
        for id in (operation.entry().order)(tree, bytes, timing) {
            let Some(address) = operation.address(tree, id) else {
                continue;
            };
            let Address {
                source,
                destination,
                ..
            } = address;
            let length = operation.length(tree, address, bytes);
            let takes_it = |pe: &PeId| bytes[operation.delivery(tree, id, *pe).index()] > 0;
            let parts = even_parts(length, operation.parts(tree), timing.flit_bytes());
            for (part, bytes) in parts
                .into_iter()
                .enumerate()
                .filter(|(_, bytes)| *bytes > 0)
            {
                let message = Message {
                    id: operation.part(tree, id, part),
                    source,
                    destination,
                    bytes,
                };
                sends[source.index()].push(message);
                for pe in address.ends(tree).filter(takes_it) {
                    takes[pe.index()].push(message);
                }
            }
        }
        for takes in &mut takes {
            takes.sort_by_key(|message| message.id);
        }
        let subtree_messages = tree.subtree_sums(|pe| match operation.direction() {
            Direction::Down | Direction::Across => takes[pe.index()].len() as u64,
            Direction::Up => sends[pe.index()].len() as u64,
        });
        let mut legs = vec![Vec::new(); tree.len()];
        for leg in operation.legs(tree, bytes, timing) {
            legs[leg.from.index()].push(leg);
            legs[leg.to.index()].push(leg);
        }
        for (pe, sends) in tree.ids().zip(&mut sends) {
            // By a list, in its order.
            let mut firsts = BTreeMap::new();
            for leg in legs[pe.index()].iter().filter(|leg| leg.from == pe) {
                firsts.entry(leg.message).or_insert(leg.first_step);
            }
            sends.sort_by_key(|message| firsts.get(&message.id).copied());
        }
        let brief = |pe: PeId| {
            let children = tree.children(pe).iter();
            let sends = std::mem::take(&mut sends[pe.index()]);
            Brief {
                operation,
                flit_bytes: timing.flit_bytes(),
                pace: timing.pace(tree, pe),
                packet_bytes: timing.packet_bytes_of(sends.iter().map(|sent| sent.id)),
                sends,
                takes: std::mem::take(&mut takes[pe.index()]),
                subtree_messages: subtree_messages[pe.index()],
                child_messages: children
                    .map(|child| subtree_messages[child.index()])
                    .collect(),
                legs: std::mem::take(&mut legs[pe.index()]),
                all_ports: operation.uses_all_ports(timing),
                in_any_order: false,
                begins_by_message: false,
            }
        };
        let mut briefs: Vec<Brief> = tree.ids().map(brief).collect();
        for brief in &mut briefs {
            let has_order = brief.all_ports || brief.is_in_turns();
            let is_list = operation.is_duplex();
            brief.in_any_order = is_list && timing.shares_no_port && !has_order;
        }
        for pe in tree.pes() {
            for child in briefs[pe.index()].told_by_messages(pe) {
                if tree.parent(child) == Some(pe) {
                    briefs[child.index()].begins_by_message = true;
                }
            }
        }
        briefs
    }

    /// To whom this PE's own first messages go, as far as they are short: those who wait for a token
    /// have it as soon by one of these.
    pub fn told_by_messages(&self, pe: PeId) -> BTreeSet<PeId> {
        if self.operation.begins_on() != Word::Token || !self.in_any_order {
            return BTreeSet::new();
        }
        let own: BTreeSet<MessageId> = self.sends.iter().map(|message| message.id).collect();
        let sends = self.legs.iter().filter(|leg| leg.from == pe);
        let sends: Vec<&Leg> = sends.collect();
        // What goes together with others' messages may wait for these.
        let groups = sends.chunk_by(|one, next| one.to == next.to);
        let is_at_once = |leg: &&Leg| leg.flits == 1 && own.contains(&leg.message);
        let first = groups.take_while(|group| group.iter().all(is_at_once));
        first.map(|group| group[0].to).collect()
    }
}
