//! How large a flit is to be, where nobody has asked for a size.
//!
//! A relay passes a flit on when it has all of it, so short flits fill a deep tree sooner, and
//! each costs its software once more. The best even split of one stream (paper 003, Lemma 12,
//! solved exactly in `flitcast_proto::packets`) says where to look; what a round then takes is
//! what the prediction of that very round says, since only it knows of cores that are shared, of
//! disks, and of what goes on at the same time.

use std::fmt;
use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::cost::{Link, Model};
use flitcast_proto::ops::{Brief, Broadcast, Direction, Fits, Operation};
use flitcast_proto::packets::count::best_count;
use flitcast_proto::packets::model::Ticks;
use flitcast_proto::predict::{self, Prediction, most_pieces};
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::MAX_FLIT_BYTES;
use serde::Serialize;

use crate::job::lanes::LaneChoice;
use crate::job::model::foresee;
use crate::job::order::OrderChoice;
use crate::job::packets::PacketChoice;
use crate::text::figures::as_micros;
use crate::text::units::{Bytes, Nanos};

/// Long enough that software costs little, short enough to fill a pipe soon: what is taken
/// unless another size is worth it.
pub const USUAL_FLIT_BYTES: u32 = 64 << 10;
/// The same over a hypercube's trees behind a switch, where each flit comes from another sender than
/// the one before it: little enough for the switch to hold where one is late.
const SWITCHED_FLIT_BYTES: u32 = 16 << 10;
/// Below this a flit's prefix and seal are more than a tenth of it, and a system call is made for
/// next to nothing.
const LEAST: u64 = 1 << 10;
/// Another size is taken if its round is predicted to take at most so much of that in flits of
/// the usual size. Rounds are predicted to some 15 % (`rounds/learning.rs`): what is said to gain
/// less could be a loss.
const WORTH: f64 = 0.8;
/// The same of a broadcast, for which there is a formula (spec of exchanges, section 10): shorter
/// flits gained more than was predicted in what was measured, since every delay at a relay holds up
/// all behind it by a flit.
const WORTH_IN_A_STREAM: f64 = 0.999;
/// A link is to be so many times slower than the software at its ends. Between processes of one
/// machine nothing but software takes time, on cores that they share, and predictions there are a
/// third off at times, more than any size gains; so the usual one stays.
const SLOWER: f64 = 4.0;
/// Going on to the next power of two must gain so much of what is left: the larger flit costs
/// less of what predictions do not know.
const NEXT: f64 = 0.98;
/// Predicting a flit over an edge takes about so long, ...
const CROSSING_NS: u64 = 500;
/// ... and all predictions together this part of the round at most, ...
const PART: u64 = 10;
/// ... or this time, which nobody notices.
const UNNOTICED_NS: u64 = 5_000_000;

/// The payload of a full flit, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlitSize {
    /// Bytes.
    #[serde(skip)]
    pub bytes: u32,
    /// What a round was predicted to take with it, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// What it was predicted to take in flits of the usual size.
    #[serde(rename = "usual_us", serialize_with = "as_micros")]
    pub usual_ns: u64,
    /// That size.
    #[serde(skip)]
    pub usual_bytes: u32,
}

impl fmt::Display for FlitSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {}: {} instead of {} at {}",
            Bytes(self.bytes.into()),
            Nanos(self.predicted_ns),
            Nanos(self.usual_ns),
            Bytes(self.usual_bytes.into())
        )
    }
}

/// A round as it was foreseen.
#[derive(Debug)]
pub struct Foreseen {
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Why, if it was chosen and is not the usual size.
    pub chosen: Option<FlitSize>,
    /// How messages were cut, if packets were asked for.
    pub packets: Option<PacketChoice>,
    /// In which order messages leave, if one was searched for.
    pub order: Option<OrderChoice>,
    /// How they go, where there could be several trees.
    pub trees: Option<LaneChoice>,
    /// What each PE is told, by PE index.
    pub briefs: Vec<Brief>,
    /// By tree, what each PE is told instead, if messages go on several trees.
    pub lanes: Vec<Vec<Brief>>,
    /// What the round is expected to take.
    pub prediction: Prediction,
}

impl Foreseen {
    pub(super) fn ns(&self) -> u64 {
        self.prediction.round_ns() + self.prediction.commit_ns()
    }
}

/// Foresees a round in flits of the size that was asked for, or else of the one that is best;
/// `bytes` is by delivery.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule.
pub fn foresee_best(
    tree: &Arc<Tree>,
    operation: Operation,
    pacing: Pacing,
    bytes: &[u64],
    asked: Option<u32>,
    model: &Model,
) -> Result<Foreseen, RoundFault> {
    let of = |flit_bytes: u32| -> Result<Foreseen, RoundFault> {
        let (briefs, prediction) = foresee(tree, operation, pacing, bytes, flit_bytes, model)?;
        Ok(Foreseen {
            flit_bytes,
            chosen: None,
            packets: None,
            order: None,
            trees: None,
            briefs,
            lanes: Vec::new(),
            prediction,
        })
    };
    let (usual_bytes, worth) = match (operation, pacing) {
        (Operation::Broadcast(Broadcast::Hypercube), Pacing::Turns) => (SWITCHED_FLIT_BYTES, WORTH),
        (Operation::Broadcast(_), _) => (USUAL_FLIT_BYTES, WORTH_IN_A_STREAM),
        _ => (USUAL_FLIT_BYTES, WORTH),
    };
    let usual = of(asked.unwrap_or(usual_bytes))?;
    let usual_ns = usual.ns();
    let first = match asked {
        None if are_slow(tree, operation, model) => {
            best_alone(tree, operation, &usual.briefs, model)
        }
        _ => None,
    };
    let Some(first) = first else {
        return Ok(usual);
    };
    let mut left_ns = (usual_ns / PART).max(UNNOTICED_NS);
    // `None` where there is no time to look.
    let mut within = |flit_bytes: u32| -> Result<Option<Foreseen>, RoundFault> {
        if flit_bytes == usual_bytes {
            return Ok(None);
        }
        let takes = looking_ns(tree, &usual.briefs, flit_bytes);
        let Some(left) = left_ns.checked_sub(takes) else {
            return Ok(None);
        };
        left_ns = left;
        of(flit_bytes).map(Some)
    };
    let Some(mut best) = best_around(first, &mut within)? else {
        return Ok(usual);
    };
    let predicted_ns = best.ns();
    if predicted_ns as f64 > worth * usual_ns as f64 {
        return Ok(usual);
    }
    best.chosen = Some(FlitSize {
        bytes: best.flit_bytes,
        predicted_ns,
        usual_ns,
        usual_bytes,
    });
    Ok(best)
}

/// The best of this size and the powers of two around it, as far as they gain; `within` foresees a
/// size if there is time to. `None` if there was none at all.
pub(super) fn best_around(
    first: u32,
    mut within: impl FnMut(u32) -> Result<Option<Foreseen>, RoundFault>,
) -> Result<Option<Foreseen>, RoundFault> {
    let Some(mut best) = within(first)? else {
        return Ok(None);
    };
    let shorter = (LEAST.ilog2()..first.ilog2() + 1).rev().map(|log| 1 << log);
    let longer = (first.ilog2() + 1..=MAX_FLIT_BYTES.ilog2()).map(|log| 1 << log);
    let shorter: Vec<u32> = shorter.filter(|&bytes| bytes < first).collect();
    for sizes in [shorter, longer.collect()] {
        let before = best.flit_bytes;
        for size in sizes {
            match within(size)? {
                Some(next) if (next.ns() as f64) < NEXT * best.ns() as f64 => best = next,
                _ => break,
            }
        }
        if best.flit_bytes != before {
            break;
        }
    }
    Ok(Some(best))
}

/// Edges that a message crosses one after the other, at most.
fn hops(tree: &Tree, operation: Operation) -> u64 {
    let depth = || tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0);
    match (operation.direction(), operation.fits()) {
        // All around, or from one to the other.
        (Direction::Across, Fits::Complete) => tree.count() as u64 - 1,
        (Direction::Across, _) => 2 * u64::from(depth()),
        (_, Fits::Cubes) => u64::from(tree.len().ilog2()) + 1,
        _ => depth().into(),
    }
}

/// What a prediction takes in flits of this size, at most.
pub(super) fn looking_ns(tree: &Tree, briefs: &[Brief], flit_bytes: u32) -> u64 {
    // It moves the longest messages in pieces.
    let most = most_pieces(tree, briefs);
    let pieces = |bytes: u64| bytes.div_ceil(flit_bytes.into()).min(most);
    let takes = briefs.iter().flat_map(|brief| &brief.takes);
    let crossings = takes.map(|message| pieces(message.bytes) * predict::hops(tree, message));
    CROSSING_NS.saturating_mul(crossings.sum())
}

/// What a flit costs on the dearest of the links that messages cross, and what a byte on the
/// slowest, in nanoseconds.
pub(super) fn dearest(tree: &Tree, operation: Operation, model: &Model) -> Link {
    let links = tree.below_root().flat_map(|pe| {
        let edge = &model.edges[pe.index()];
        match operation.direction() {
            Direction::Down => vec![edge.down],
            Direction::Up => vec![edge.up],
            Direction::Across => vec![edge.down, edge.up],
        }
    });
    links.fold(Link::default(), |one, other| Link {
        setup_ns: one.setup_ns.max(other.setup_ns),
        ns_per_byte: one.ns_per_byte.max(other.ns_per_byte),
        ..one
    })
}

/// The same with what software adds at a relay: a packet's beta and g.
pub(super) fn packet_costs(tree: &Tree, operation: Operation, model: &Model) -> [f64; 2] {
    let link = dearest(tree, operation, model);
    let host = model.hosts.slowest(MAX_FLIT_BYTES);
    let a_byte = link.ns_per_byte + host.send_ns_per_byte + host.receive_ns_per_byte;
    let a_packet = 2.0 * host.flit_ns + link.occupied_ns(1, model.prefix_bytes);
    [a_packet, a_byte]
}

/// Whether links are that much slower than the software at their ends.
fn are_slow(tree: &Tree, operation: Operation, model: &Model) -> bool {
    let host = model.hosts.slowest(MAX_FLIT_BYTES);
    let software = host.send_ns_per_byte + host.receive_ns_per_byte;
    dearest(tree, operation, model).ns_per_byte >= SLOWER * software
}

/// The best flit size of the busiest port's stream, if that went down the tree alone: a hop
/// takes it a + g F for each flit of F bytes, and what it sends before the last hop begins is
/// `r (a + g F) + (hops - 1)(a + g F)`. `None` if there is nothing to send.
pub(super) fn best_alone(
    tree: &Arc<Tree>,
    operation: Operation,
    briefs: &[Brief],
    model: &Model,
) -> Option<u32> {
    let stream = |brief: &Brief| {
        let [sends, takes] = [&brief.sends, &brief.takes];
        let bytes = [sends, takes].map(|all| all.iter().map(|message| message.bytes).sum::<u64>());
        bytes[0].max(bytes[1])
    };
    let stream = briefs.iter().map(stream).max().filter(|&bytes| bytes > 0)?;
    let [a_flit, a_byte] = packet_costs(tree, operation, model);
    // A femtosecond is fine enough for the quickest byte; a stream has at most 2^64 of them, and a
    // cost is cut off where the products would not fit.
    let femtos = |ns: f64| (ns * 1e6).clamp(0.0, 1e15) as Ticks;
    // Longer streams want the longest flits anyway.
    let stream = stream.min(1 << 40);
    let behind = Ticks::from(hops(tree, operation).saturating_sub(1));
    let flits = best_count(
        femtos(a_flit),
        femtos(a_byte).min(1 << 40) * behind.min(1 << 12),
        stream,
    );
    let size = stream.div_ceil(flits);
    Some(size.clamp(LEAST, MAX_FLIT_BYTES.into()) as u32)
}

#[cfg(test)]
mod tests;
