//! Scattering and gathering in packets that cost something to start: what is sent in which order,
//! cut into how many packets, and what no schedule takes less than.
//!
//! Source: Tsai, *On the Furthest-Distance-First Principle in Scattering and Gathering* (paper 003);
//! what is ours says so. A packet of p flits takes the set-up cost and p on a link, single ports,
//! store and forward, first come, first served: [`model`]. One message has a best packet count
//! ([`count`]), messages on one way from P0 a best schedule ([`path`]). On other trees a schedule is
//! looked for ([`tree`], [`search`], [`local`]) and held against bounds ([`bounds`]).
//!
//! A gather whose lengths are all known is a scatter in a mirror: time runs backwards, send and
//! receive ports change places, and a packet that crosses from a to b in `[s, e]` of the scatter
//! crosses from b to a in `[T - e, T - s]`. So all of this is said of scatters only.
//! [`certification`] gathers lengths that P0 does not know.

pub mod bounds;
pub mod caps;
pub mod certification;
pub mod count;
pub mod fault;
pub mod local;
pub mod model;
pub mod path;
pub mod search;
pub mod tree;

use crate::Tree;
use count::{best_alone, time_alone};
use fault::PacketsFault;
use model::{LinkCost, Message, Run, Ticks, even, messages};
use search::Outcome;
use tree::Scatter;

/// The most flits of all messages together: see [`count::best_count`] for the largest product.
pub const MAX_FLITS: u64 = 1 << 48;

/// How a schedule was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As somebody asked for it.
    Given,
    /// One message in even packets.
    Even,
    /// Farthest destination first, a cap on packet sizes for each message.
    OneWay,
    /// Farthest destination first, one cap for all.
    FarthestFirst,
    /// Largest tail first, one cap for all.
    LargestTailFirst,
    /// By branch and bound, and small steps.
    Search,
}

/// A scatter in packets.
#[derive(Clone, Debug)]
pub struct PacketPlan {
    /// What leaves P0, in order.
    pub sequence: Vec<Run>,
    /// When the last packet is whole at its destination.
    pub time: Ticks,
    /// No schedule takes less; the same as `time` if that is proven to be the best.
    pub bound: Ticks,
    /// How it was found.
    pub method: Method,
}

/// How one message is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Into so many even packets.
    Count(u64),
    /// Into packets of these sizes.
    Sizes(Vec<u64>),
}

/// The best schedule that is found for `flits[i]` for P_i, on trees that need a search with at most
/// so many nodes of it.
///
/// # Errors
///
/// If there is more than can be worked out.
pub fn plan(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    nodes: u64,
) -> Result<PacketPlan, PacketsFault> {
    check(flits)?;
    let messages = messages(tree, flits);
    if let [message] = &messages[..] {
        return Ok(alone(cost, message, best_alone(cost, message)));
    }
    if cost.setup == 0 {
        return Ok(flit_by_flit(cost, &messages));
    }
    if path::is_one_way(tree, &messages) {
        let path::Planned {
            sequence,
            time,
            bound,
        } = path::plan(cost, &messages);
        return Ok(PacketPlan {
            sequence,
            time,
            bound,
            method: Method::OneWay,
        });
    }
    Ok(on_tree(tree, &Scatter::new(tree, flits, cost)?, nodes))
}

/// What cannot be reckoned with.
fn check(flits: &[u64]) -> Result<(), PacketsFault> {
    let flits = flits.iter().copied().map(u128::from).sum();
    match flits > MAX_FLITS.into() {
        true => Err(PacketsFault::Flits { flits }),
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

/// Where starting a packet costs nothing, nothing is faster (paper 003, Fact 10).
fn flit_by_flit(cost: LinkCost, messages: &[Message]) -> PacketPlan {
    let run = |message: &Message| Run {
        pe: message.pe,
        flits: 1,
        packets: message.flits,
    };
    let time = time_of_single_flits(cost, messages);
    PacketPlan {
        sequence: messages.iter().map(run).collect(),
        time,
        bound: time,
        method: Method::FarthestFirst,
    }
}

/// What all messages take in packets of one flit, farthest destination first.
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
    let (mut best, is_by_tail) = scatter.best_under_a_cap();
    let under_a_cap = best.time;
    if best.time > bound && nodes > 0 {
        let outcome = search::search(tree, scatter, bound, nodes, &mut best);
        match outcome {
            Outcome::Exhausted => bound = best.time,
            Outcome::Open => local::improve(scatter, bound, &mut best),
        }
    }
    PacketPlan {
        sequence: scatter.runs(&best.packets),
        time: best.time,
        bound,
        method: match is_by_tail {
            _ if best.time < under_a_cap => Method::Search,
            true => Method::LargestTailFirst,
            false => Method::FarthestFirst,
        },
    }
}

/// One message, cut as somebody wants it.
///
/// # Errors
///
/// If there are others, or it cannot be cut so.
pub fn plan_split(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    split: &Split,
) -> Result<PacketPlan, PacketsFault> {
    check(flits)?;
    let messages = messages(tree, flits);
    let [message @ Message { pe, flits, .. }] = &messages[..] else {
        return Err(PacketsFault::Several(messages.len()));
    };
    let (pe, flits) = (*pe, *flits);
    match split {
        &Split::Count(packets) if !(1..=flits).contains(&packets) => {
            Err(PacketsFault::Count { packets, flits, pe })
        }
        &Split::Count(packets) => Ok(alone(cost, message, packets)),
        Split::Sizes(sizes) => {
            if let Some(place) = sizes.iter().position(|&size| size == 0) {
                return Err(PacketsFault::Empty(place + 1));
            }
            let sum = sizes.iter().copied().map(u128::from).sum();
            if sum != flits.into() {
                return Err(PacketsFault::Sum { sum, flits, pe });
            }
            let alike = sizes.chunk_by(|one, next| one == next);
            let run = |alike: &[u64]| Run {
                pe,
                flits: alike[0],
                packets: alike.len() as u64,
            };
            let largest = sizes.iter().copied().max().unwrap_or(0);
            let behind = cost.packet(largest) * Ticks::from(message.hops - 1);
            Ok(PacketPlan {
                sequence: alike.map(run).collect(),
                time: cost.stream(sizes.len() as u64, flits) + behind,
                method: Method::Given,
                ..alone(cost, message, best_alone(cost, message))
            })
        }
    }
}

/// What users would do that do not plan, farthest destination first: each message in one packet,
/// and each in packets of one flit.
///
/// # Errors
///
/// If there is more than can be worked out.
pub fn unplanned(tree: &Tree, flits: &[u64], cost: LinkCost) -> Result<[Ticks; 2], PacketsFault> {
    check(flits)?;
    let messages = messages(tree, flits);
    let unsplit = match path::is_one_way(tree, &messages) {
        true => path::time_with_cap(cost, &messages, MAX_FLITS),
        false => {
            let scatter = Scatter::new(tree, flits, cost)?;
            scatter.time(&scatter.cut(MAX_FLITS))
        }
    };
    Ok([unsplit, time_of_single_flits(cost, &messages)])
}

#[cfg(test)]
mod tests;
