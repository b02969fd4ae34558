//! A round whose messages are cut into requested packets (`--packets`).
//!
//! A relay forwards a flit when it has all of it, so a packet of paper 003 is a flit, and the cut of a
//! message is the size of its flits. Only its source needs to know it: all flits but the last are full,
//! which takes no longer than even ones whose largest is no larger (Lemma 12).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_proto::Tree;
use flitcast_proto::cost::Model;
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::packets::model::{LinkCost, Run, Ticks, messages};
use flitcast_proto::packets::path;
use flitcast_proto::predict::Prediction;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use serde::Serialize;

use crate::job::flit_size::{
    Foreseen, USUAL_FLIT_BYTES, best_alone, best_around, looking_ns, packet_costs,
};
use crate::job::model::{foresee, foresee_cut};
use crate::options::packets::Packets;
use crate::text::figures::as_micros;
use crate::text::units::{Bytes, Nanos};
use crate::text::words::counted;

/// Time that a search for the best packets may take.
const LOOKING_NS: u64 = 200_000_000;

/// Number of packet counts that are tried one by one.
const FEW: u64 = 16;

/// Resolution of planned packets: parts of the longest message.
const GRAINS: u64 = 4096;

/// The requested packets, and their predicted effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PacketChoice {
    /// The requested packets.
    #[serde(serialize_with = "as_typed")]
    pub asked: Packets,
    /// The number of packets of all messages.
    pub count: u64,
    /// The largest one, in bytes.
    pub largest_bytes: u32,
    /// The predicted duration of a round with these packets, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration with flits of the default size.
    #[serde(rename = "usual_us", serialize_with = "as_micros")]
    pub usual_ns: u64,
}

fn as_typed<S: serde::Serializer>(asked: &Packets, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(asked)
}

impl fmt::Display for PacketChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of at most {}, {}: {} instead of {} at {}",
            self.count,
            Bytes(self.largest_bytes.into()),
            match self.asked {
                Packets::Auto => "predicted to be the best".to_owned(),
                Packets::Count(count) =>
                    format!("{} a message at most", counted(count, "packet", "packets")),
                Packets::Size(bytes) => format!("none above {}", Bytes(bytes.into())),
            },
            Nanos(self.predicted_ns),
            Nanos(self.usual_ns),
            Bytes(USUAL_FLIT_BYTES.into())
        )
    }
}

/// Plans and predicts a round whose messages are cut as requested; `bytes` is by delivery.
///
/// # Errors
///
/// Returns the error of a state machine, which is a bug in the schedule.
pub fn foresee_in_packets(
    tree: &Arc<Tree>,
    operation: Operation,
    pacing: Pacing,
    bytes: &[u64],
    asked: Packets,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let cut = |packet_bytes: Vec<u32>| -> Result<Foreseen, RoundFault> {
        let foreseen = foresee_cut(
            tree,
            operation,
            pacing,
            bytes,
            packet_bytes,
            model,
            given_up,
        )?;
        Ok(foreseen_of(foreseen))
    };
    let usual = foresee(
        tree,
        operation,
        pacing,
        bytes,
        USUAL_FLIT_BYTES,
        model,
        given_up,
    )?;
    let usual = foreseen_of(usual);
    let usual_ns = usual.ns();
    let sizes = sizes(tree, operation, bytes, |bytes| asked.of(bytes));
    let mut best = match sizes {
        Some(sizes) => cut(sizes)?,
        None => {
            let best = best_of_one_size(tree, operation, &usual, model, |flit_bytes| {
                let foreseen =
                    foresee(tree, operation, pacing, bytes, flit_bytes, model, given_up)?;
                Ok(foreseen_of(foreseen))
            })?;
            let planned = planned(tree, operation, bytes, model)
                .map(&cut)
                .transpose()?;
            let few = few_packets(tree, operation, bytes, &usual, cut)?;
            let all = [Some(usual), best, few, planned].into_iter().flatten();
            match all.min_by_key(Foreseen::ns) {
                Some(best) => best,
                None => unreachable!("the usual size is one of them"),
            }
        }
    };
    let sent = best.briefs.iter().flat_map(|brief| {
        let sent = brief.cut_sends();
        sent.map(|(message, flit_bytes)| (message.bytes, u64::from(flit_bytes)))
    });
    let largest = sent.clone().map(|(bytes, packet)| packet.min(bytes)).max();
    best.packets = Some(PacketChoice {
        asked,
        count: sent.map(|(bytes, packet)| bytes.div_ceil(packet)).sum(),
        largest_bytes: largest.unwrap_or(0) as u32,
        predicted_ns: best.ns(),
        usual_ns,
    });
    Ok(best)
}

fn foreseen_of((briefs, prediction): (Vec<Brief>, Prediction)) -> Foreseen {
    Foreseen {
        flit_bytes: briefs
            .first()
            .map_or(USUAL_FLIT_BYTES, |brief| brief.flit_bytes),
        chosen: None,
        packets: None,
        order: None,
        trees: None,
        briefs,
        lanes: Vec::new(),
        prediction,
    }
}

/// Returns the largest packet of each message, by message id; `None` if it is to be chosen.
fn sizes(
    tree: &Tree,
    operation: Operation,
    bytes: &[u64],
    of: impl Fn(u64) -> Option<u32>,
) -> Option<Vec<u32>> {
    let mut sizes = Vec::new();
    for message in operation.messages(tree) {
        sizes.resize(message.id.index() + 1, MIN_FLIT_BYTES);
        sizes[message.id.index()] = of(operation.length(tree, message, bytes))?;
    }
    Some(sizes)
}

/// Plans all messages in packets of one size, the best that is found in time.
fn best_of_one_size(
    tree: &Arc<Tree>,
    operation: Operation,
    usual: &Foreseen,
    model: &Model,
    of: impl Fn(u32) -> Result<Foreseen, RoundFault>,
) -> Result<Option<Foreseen>, RoundFault> {
    let Some(first) = best_alone(tree, operation, &usual.briefs, model) else {
        return Ok(None);
    };
    let mut left_ns = LOOKING_NS;
    best_around(first, |flit_bytes| {
        let takes = looking_ns(tree, &usual.briefs, flit_bytes);
        let Some(left) = left_ns.checked_sub(takes) else {
            return Ok(None);
        };
        left_ns = left;
        of(flit_bytes).map(Some)
    })
}

/// Predicts each message in one packet, in two, and so on, and returns the quickest; `None` if
/// there is no time for a prediction.
fn few_packets(
    tree: &Arc<Tree>,
    operation: Operation,
    bytes: &[u64],
    usual: &Foreseen,
    cut: impl Fn(Vec<u32>) -> Result<Foreseen, RoundFault>,
) -> Result<Option<Foreseen>, RoundFault> {
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let least = longest.div_ceil(MAX_FLIT_BYTES.into()).max(1);
    let mut left_ns = LOOKING_NS;
    let mut best: Option<Foreseen> = None;
    for count in least..least + FEW {
        let of = |bytes| Packets::Count(count).of(bytes);
        let Some(sizes) = sizes(tree, operation, bytes, of) else {
            break;
        };
        let largest = sizes.iter().copied().max().unwrap_or(MIN_FLIT_BYTES);
        let takes = looking_ns(tree, &usual.briefs, largest);
        let Some(left) = left_ns.checked_sub(takes.max(1)) else {
            break;
        };
        left_ns = left;
        let next = cut(sizes)?;
        if best.as_ref().is_none_or(|best| next.ns() < best.ns()) {
            best = Some(next);
        }
    }
    Ok(best)
}

/// Returns the packet size of each message of a scatter whose messages are all on one way from the
/// root. These sizes are optimal on equal links. Returns `None` for all other rounds.
fn planned(tree: &Tree, operation: Operation, bytes: &[u64], model: &Model) -> Option<Vec<u32>> {
    if operation != Operation::Scatter {
        return None;
    }
    let longest = bytes.iter().copied().max()?;
    let grain = longest.div_ceil(GRAINS).max(MIN_FLIT_BYTES.into());
    let grains: Vec<u64> = bytes.iter().map(|bytes| bytes.div_ceil(grain)).collect();
    let nonnull = messages(tree, &grains);
    if nonnull.len() < 2 || !path::is_one_way(tree, &nonnull) {
        return None;
    }
    let [a_packet, a_byte] = packet_costs(tree, operation, model);
    let picos = |ns: f64| (ns * 1e3).clamp(1.0, 1e15) as Ticks;
    let cost = LinkCost {
        setup: picos(a_packet),
        flit: picos(a_byte * grain as f64),
    };
    let mut sizes = vec![MIN_FLIT_BYTES; tree.len()];
    for Run { pe, flits, .. } in path::plan(cost, &nonnull).sequence {
        let packet = flits.saturating_mul(grain).min(MAX_FLIT_BYTES.into());
        sizes[pe.index()] = sizes[pe.index()].max(packet as u32);
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use flitcast_proto::cost::{Edge, Host, Hosts, Link, Ports};
    use flitcast_proto::seeded::SplitMix64;
    use flitcast_proto::tree::TreeSpec;

    use super::*;
    use crate::job::model::BUFFER_BYTES;

    /// Alike wires whose packets have a set-up cost, and processes that cost nothing.
    fn model(random: &mut SplitMix64, pes: usize) -> Model {
        let link = Link {
            latency_ns: random.below(100_000) as f64,
            ns_per_byte: 1.0,
            burst_bytes: 0.0,
            setup_ns: random.below(200_000) as f64,
        };
        let edge = Edge {
            down: link,
            up: link,
        };
        Model {
            edges: vec![edge; pes],
            hosts: Hosts::one(Host::NONE),
            ports: Ports::Single,
            buffer_bytes: BUFFER_BYTES,
            ahead_ns: f64::INFINITY,
            ..Model::unit(pes)
        }
    }

    #[test]
    fn auto_is_no_slower_than_a_count_or_the_usual_size() {
        let mut random = SplitMix64::new(34);
        for _ in 0..30 {
            let pes = 3 + random.below(8);
            let specs = [
                format!("path:{pes}"),
                format!("kary:2:{pes}"),
                format!("random:{pes}:{}", random.below(1_000)),
            ];
            let spec: TreeSpec = specs[random.below(3) as usize].parse().expect("a tree");
            let tree = Arc::new(spec.build().expect("a tree"));
            let model = model(&mut random, tree.len());
            let length = |pe: usize| {
                if pe == 0 {
                    0
                } else {
                    1 + random.below(300_000)
                }
            };
            let bytes: Vec<u64> = (0..tree.len()).map(length).collect();
            let given_up = AtomicBool::new(false);
            let packets = |asked: Packets| {
                let (operation, pacing) = (Operation::Scatter, Pacing::Scheduled);
                let found =
                    foresee_in_packets(&tree, operation, pacing, &bytes, asked, &model, &given_up);
                found.expect("a schedule").packets.expect("a choice")
            };
            let auto = packets(Packets::Auto);
            assert!(auto.predicted_ns <= auto.usual_ns, "{auto:?}");
            for count in 1..=8 {
                let by_count = packets(Packets::Count(count));
                assert!(
                    auto.predicted_ns <= by_count.predicted_ns,
                    "{auto:?} {by_count:?}"
                );
            }
        }
    }
}
