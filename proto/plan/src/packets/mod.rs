//! Scattering and gathering in packets with a set-up cost: the order, the number of packets of each
//! message, and lower bounds.
//!
//! Source: Tsai, *On the Furthest-Distance-First Principle in Scattering and Gathering* (paper
//! 003); additions to the paper are marked. A packet of p flits takes the set-up cost and p on a
//! link, with single ports, store and forward, first come, first served: [`model`]. One message has
//! a best packet count ([`model::best_count`]), messages on one path from P0 a best schedule ([`path`]). On
//! other trees a schedule is searched for ([`tree`], [`search`]) and compared with
//! bounds ([`bounds`]). Packets may also have flits of several messages ([`mixed`]).
//!
//! A gather whose lengths are all known is a mirrored scatter: time runs backwards, send and
//! receive ports change places, and a packet that crosses from a to b in `[s, e]` of the scatter
//! crosses from b to a in `[T - e, T - s]`. So this module describes only scatters.
//! [`certification`] gathers lengths that P0 does not have.

mod bounds;
mod caps;
pub mod certification;
pub mod mixed;
pub mod model;
pub mod path;
pub mod search;
mod tree;

use flitcast_proto::{PeId, Tree};
use model::{
    LinkCost, Message, PacketPlanError, Run, Ticks, best_alone, even, messages, time_alone,
};
use tree::{Scatter, Schedule, Sorting};

/// Limit of the flits of all messages: see [`model::best_count`] for the largest product.
pub const MAX_FLITS: u64 = 1 << 48;

/// The method by which a schedule was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A requested order or cut.
    Given,
    /// One message in even packets.
    Even,
    /// Farthest destination first, a cap on packet sizes for each message.
    OneWay,
    /// Farthest destination first, one cap or one count for all.
    FarthestFirst,
    /// Largest tail first, one cap or one count for all.
    LargestTailFirst,
    /// Branch and bound, and local search.
    Search,
    /// Packets with flits of several messages.
    Mixed,
}

/// A scatter in packets.
#[derive(Clone, Debug)]
pub struct PacketPlan {
    /// The packets in the order in which they leave P0.
    pub sequence: Vec<Run>,
    /// Time when the last packet is complete at its destination.
    pub time: Ticks,
    /// A lower bound for any schedule; equal to `time` if the schedule is proven optimal.
    pub bound: Ticks,
    pub method: Method,
}

/// The cut of messages into packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each message into this many even packets, or one per flit if it has fewer flits.
    Count(u64),
    /// The only nonnull message into packets of these sizes.
    Sizes(Vec<u64>),
    /// The whole dispatch sequence: destinations and sizes of each packet, which may mix messages.
    Sequence(Vec<Run>),
}

/// Returns the best schedule found for a scatter of `flits[i]` flits to P_i; on a tree that needs a
/// search, after at most `nodes` nodes of it.
pub fn plan(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    nodes: u64,
) -> Result<PacketPlan, PacketPlanError> {
    check(flits)?;
    let messages = messages(tree, flits);
    match at_once(tree, cost, &messages) {
        Some(plan) => Ok(plan),
        None => Ok(on_tree(tree, &Scatter::new(tree, flits, cost)?, nodes)),
    }
}

/// Returns the best schedule under one cap on packet sizes or with one count of packets, one message
/// after the other: `order` has each PE with a nonnull message once. Farthest destination first on a
/// path, each message has its own packet size, and the schedule is optimal.
pub fn plan_in_order(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    order: &[PeId],
) -> Result<PacketPlan, PacketPlanError> {
    check(flits)?;
    let messages = messages(tree, flits);
    let is_farthest_first = order.iter().eq(messages.iter().map(|message| &message.pe));
    if let Some(plan) = at_once(tree, cost, &messages).filter(|_| is_farthest_first) {
        return Ok(plan);
    }
    let scatter = Scatter::new(tree, flits, cost)?;
    let (best, method) = scatter.best_cut(&[scatter.given(order)]);
    Ok(planned(tree, &scatter, &best, method))
}

/// Returns the best schedule, farthest destination first, if no search is needed.
fn at_once(tree: &Tree, cost: LinkCost, messages: &[Message]) -> Option<PacketPlan> {
    match messages {
        [message] => Some(alone(cost, message, best_alone(cost, message))),
        _ if cost.setup == 0 => Some(flit_by_flit(cost, messages)),
        _ if path::is_one_way(tree, messages) => Some(path::plan(cost, messages)),
        _ => None,
    }
}

/// Returns a plan of a schedule with the lower bound for any order and any packets.
fn planned(tree: &Tree, scatter: &Scatter, best: &Schedule, method: Method) -> PacketPlan {
    let bound = match at_once(tree, scatter.cost, &scatter.messages) {
        Some(plan) => plan.bound,
        None => bounds::from_the_beginning(scatter),
    };
    PacketPlan {
        sequence: scatter.runs(&best.packets),
        time: best.time,
        bound,
        method,
    }
}

/// Checks that sums and products stay exact.
fn check(flits: &[u64]) -> Result<(), PacketPlanError> {
    let flits: u128 = flits.iter().copied().map(u128::from).sum();
    match flits > MAX_FLITS.into() {
        true => Err(PacketPlanError::Lengths(format!(
            "{flits} flits are too many to plan in packets; the limit is {MAX_FLITS}"
        ))),
        false => Ok(()),
    }
}

fn alone(cost: LinkCost, message: &Message, packets: u64) -> PacketPlan {
    PacketPlan {
        sequence: even(message.pe, message.flits, packets).collect(),
        time: time_alone(cost, message, packets),
        bound: time_alone(cost, message, best_alone(cost, message)),
        method: Method::Even,
    }
}

/// Returns the schedule in single flits, which is optimal without a set-up cost (paper 003, Fact
/// 10).
fn flit_by_flit(cost: LinkCost, messages: &[Message]) -> PacketPlan {
    let run = |message: &Message| Run::new(message.pe, 1, message.flits);
    let time = time_of_single_flits(cost, messages);
    PacketPlan {
        sequence: messages.iter().map(run).collect(),
        time,
        bound: time,
        method: Method::FarthestFirst,
    }
}

/// Returns the time of all messages in packets of one flit, farthest destination first.
fn time_of_single_flits(cost: LinkCost, messages: &[Message]) -> Ticks {
    let mut flits = 0;
    let times = messages.iter().map(|message| {
        flits += message.flits;
        cost.stream(flits + message.hops - 1, flits + message.hops - 1)
    });
    times.max().unwrap_or(0)
}

fn on_tree(tree: &Tree, scatter: &Scatter, nodes: u64) -> PacketPlan {
    let mut bound = bounds::from_the_beginning(scatter);
    let (mut best, method) = scatter.best_cut(&EITHER);
    let unsearched = best.time;
    if best.time > bound && nodes > 0 {
        match search::search(tree, scatter, bound, nodes, &mut best) {
            true => bound = best.time,
            false => search::improve(scatter, bound, &mut best),
        }
    }
    PacketPlan {
        sequence: scatter.runs(&best.packets),
        time: best.time,
        bound,
        method: match best.time < unsearched {
            true => Method::Search,
            false => method,
        },
    }
}

/// The orders that are tried if none is given.
const EITHER: [Sorting; 2] = [Sorting::FarthestFirst, Sorting::LargestTailFirst];

/// Plans a scatter whose messages are cut as given; without an order, farthest destination first or
/// the largest tail first, whichever is faster.
pub fn plan_split(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    split: &Split,
    order: Option<&[PeId]>,
) -> Result<PacketPlan, PacketPlanError> {
    check(flits)?;
    let messages = messages(tree, flits);
    match (split, &messages[..]) {
        (&Split::Count(packets), [message]) => {
            check_count(packets, message)?;
            Ok(alone(cost, message, packets))
        }
        (&Split::Count(packets), _) => {
            if let Some(longest) = messages.iter().max_by_key(|message| message.flits) {
                check_count(packets, longest)?;
            }
            let scatter = Scatter::new(tree, flits, cost)?;
            let cut = scatter.cut(|flits| packets.min(flits));
            let (best, method) = match order {
                None => scatter.best_sorted(cut, &EITHER),
                Some(order) => scatter.best_sorted(cut, &[scatter.given(order)]),
            };
            Ok(planned(tree, &scatter, &best, method))
        }
        (Split::Sizes(sizes), [message]) => {
            if let Some(place) = sizes.iter().position(|&size| size == 0) {
                return Err(PacketPlanError::Split(format!(
                    "packet {} would be empty: a packet has 1 flit at least",
                    place + 1
                )));
            }
            let run = |&flits| Run::new(message.pe, flits, 1);
            let sequence: Vec<Run> = sizes.iter().map(run).collect();
            in_sequence(tree, flits, cost, &sequence)
        }
        (Split::Sizes(_), _) => Err(PacketPlanError::Split(format!(
            "sizes are for one nonnull message, and {} are nonnull: give a COUNT for all of them, \
             or sequence:PExFLITS,..",
            messages.len()
        ))),
        (Split::Sequence(sequence), _) => in_sequence(tree, flits, cost, sequence),
    }
}

fn check_count(packets: u64, &Message { pe, flits, .. }: &Message) -> Result<(), PacketPlanError> {
    match (1..=flits).contains(&packets) {
        true => Ok(()),
        false => Err(PacketPlanError::Split(format!(
            "{packets} packets of the {flits} flits for {pe}: 1 to {flits} packets can have a flit \
             each"
        ))),
    }
}

/// Plans a scatter with exactly these packets.
fn in_sequence(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    sequence: &[Run],
) -> Result<PacketPlan, PacketPlanError> {
    let mut sent = vec![0u128; flits.len()];
    for run in sequence {
        let mut farther = None;
        for part in run.parts() {
            let sum = sent.get_mut(part.pe.index());
            let Some(sum) = sum.filter(|_| part.pe != tree.root()) else {
                return Err(PacketPlanError::Split(format!(
                    "the sequence has a packet for {}, which receives nothing from P0 on this tree",
                    part.pe
                )));
            };
            *sum += u128::from(part.flits) * u128::from(run.packets);
            let mut above = std::iter::successors(farther, |pe| tree.parent(*pe)).skip(1);
            if let Some(farther) = farther
                && above.all(|pe| pe != part.pe)
            {
                return Err(PacketPlanError::Split(format!(
                    "a packet of the sequence is for {farther} and {}: name the farthest PE first, \
                     and then only PEs on the way to it",
                    part.pe
                )));
            }
            farther = Some(part.pe);
        }
    }
    for pe in tree.pes() {
        let (sum, flits) = (sent[pe.index()], flits[pe.index()]);
        if sum != flits.into() {
            return Err(PacketPlanError::Split(format!(
                "the packets for {pe} have {sum} flits together, its message has {flits}"
            )));
        }
    }
    let bound = match sequence.iter().any(|run| !run.also.is_empty()) {
        true => mixed::least_time(tree, flits, cost),
        false => plan(tree, flits, cost, 0)?.bound,
    };
    Ok(PacketPlan {
        sequence: joined(sequence),
        time: mixed::time_of(tree, cost, sequence),
        bound,
        method: Method::Given,
    })
}

/// A sequence whose equal neighbours are one run.
fn joined(sequence: &[Run]) -> Vec<Run> {
    let is_alike = |one: &Run, next: &Run| one.parts().eq(next.parts());
    let alike = sequence.chunk_by(is_alike);
    let run = |alike: &[Run]| Run {
        packets: alike.iter().map(|run| run.packets).sum(),
        ..alike[0].clone()
    };
    alike.map(run).collect()
}

/// Returns the times of two schedules without planning, farthest destination first: each message in
/// one packet, and each in packets of one flit.
pub fn unplanned(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
) -> Result<[Ticks; 2], PacketPlanError> {
    check(flits)?;
    let messages = messages(tree, flits);
    let unsplit = match path::is_one_way(tree, &messages) {
        true => path::time_with_cap(cost, &messages, MAX_FLITS),
        false => {
            let scatter = Scatter::new(tree, flits, cost)?;
            scatter.time(&scatter.cut(|_| 1))
        }
    };
    Ok([unsplit, time_of_single_flits(cost, &messages)])
}

#[cfg(test)]
mod tests;
