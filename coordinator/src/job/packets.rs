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
use flitcast_proto::packets::certification::{self, ControlCost};
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
use crate::job::{order, order_bound};
use crate::options::order::MessageOrder;
use crate::options::packets::Packets;
use crate::text::figures::as_micros;
use crate::text::units::{Bytes, Nanos};
use crate::text::words::counted;
use crate::ways::way::Way;

/// Time that a search for the best packets may take.
const LOOKING_NS: u64 = 200_000_000;

/// Number of packet counts that are tried one by one.
const FEW: u64 = 64;

/// Number of cuts for which an order is searched for: a second or two.
const SEARCHED: usize = 8;

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
    (tree, way, pacing): (&Arc<Tree>, &Way, Pacing),
    bytes: &[u64],
    asked: Packets,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let operation = way.operation;
    let ordered = |order: &MessageOrder, one| order::ordered(order, tree, one, model, given_up);
    let before_others = way.order.before_others();
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
        ordered(&before_others, foreseen_of(foreseen))
    };
    let of_one_size = |flit_bytes| {
        let foreseen = foresee(tree, operation, pacing, bytes, flit_bytes, model, given_up)?;
        ordered(&before_others, foreseen_of(foreseen))
    };
    let usual = of_one_size(USUAL_FLIT_BYTES)?;
    let usual_ns = usual.ns();
    let sizes = sizes(tree, operation, bytes, |bytes| asked.of(bytes));
    let mut best = match sizes {
        Some(sizes) => ordered(&way.order, cut(sizes)?)?,
        None => {
            let best = best_of_one_size(tree, operation, &usual, model, of_one_size)?;
            let planned = planned(tree, operation, bytes, model)
                .map(&cut)
                .transpose()?;
            let few = few_packets(tree, operation, bytes, &usual, cut)?;
            let others = best.into_iter().chain(planned).chain(few);
            let mut all: Vec<Foreseen> = std::iter::once(usual).chain(others).collect();
            all.sort_by_key(Foreseen::ns);
            match &way.order {
                MessageOrder::Search => best_order(tree, all, model, given_up)?,
                order => ordered(order, all.swap_remove(0))?,
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

/// Searches for an order for the quickest of these cuts, of which there is at least one, and returns
/// the best. They are sorted by their time before the search.
fn best_order(
    tree: &Arc<Tree>,
    cuts: Vec<Foreseen>,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let (mut best, mut left) = (None::<Foreseen>, SEARCHED);
    for one in cuts {
        let bound = order_bound::bound_of(tree, &one, model);
        let is_worse = |best: &Foreseen| left == 0 || best.ns() as f64 <= bound;
        if best.as_ref().is_some_and(is_worse) {
            continue;
        }
        left -= 1;
        let found = order::ordered(&MessageOrder::Search, tree, one, model, given_up)?;
        if best.as_ref().is_none_or(|best| found.ns() < best.ns()) {
            best = Some(found);
        }
    }
    let Some(mut best) = best else {
        unreachable!("the usual size is one of the cuts");
    };
    let choice = best.order.take();
    best.order = choice.map(|choice| order_bound::of_any_packets(choice, tree, &best, model));
    Ok(best)
}

/// Predicts each message in one packet, in two, and so on, as long as there is time.
fn few_packets(
    tree: &Arc<Tree>,
    operation: Operation,
    bytes: &[u64],
    usual: &Foreseen,
    cut: impl Fn(Vec<u32>) -> Result<Foreseen, RoundFault>,
) -> Result<Vec<Foreseen>, RoundFault> {
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let least = longest.div_ceil(MAX_FLIT_BYTES.into()).max(1);
    let mut left_ns = LOOKING_NS;
    let mut few = Vec::new();
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
        few.push(cut(sizes)?);
    }
    Ok(few)
}

/// Returns the planned packet size of each message of a scatter whose messages are all on one way from
/// the root, or of a gather by certification, whose control items pay no set-up. On equal links the
/// former are optimal. Returns `None` for all other rounds.
fn planned(tree: &Tree, operation: Operation, bytes: &[u64], model: &Model) -> Option<Vec<u32>> {
    let longest = bytes.iter().copied().max()?;
    let grain = longest.div_ceil(GRAINS).max(MIN_FLIT_BYTES.into());
    let grains: Vec<u64> = bytes.iter().map(|bytes| bytes.div_ceil(grain)).collect();
    let nonnull = messages(tree, &grains);
    if nonnull.len() < 2 {
        return None;
    }
    let [a_packet, a_byte] = packet_costs(tree, operation, model);
    let picos = |ns: f64| (ns * 1e3).clamp(1.0, 1e15) as Ticks;
    let cost = LinkCost {
        setup: picos(a_packet),
        flit: picos(a_byte * grain as f64),
    };
    if let Operation::Certification(_) = operation {
        let planned = certification::plan_best_cap(tree, &grains, cost, ControlCost::Free);
        let cap = planned.ok()?.cap.saturating_mul(grain);
        let cap = cap.clamp(MIN_FLIT_BYTES.into(), MAX_FLIT_BYTES.into());
        return sizes(tree, operation, bytes, |bytes| {
            Packets::Size(cap as u32).of(bytes)
        });
    }
    if operation != Operation::Scatter || !path::is_one_way(tree, &nonnull) {
        return None;
    }
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

    /// Wires whose packets have a set-up cost, alike or not, and processes that cost nothing.
    fn model(random: &mut SplitMix64, pes: usize) -> Model {
        let rates = 1 + random.below(2) * 7;
        let mut link = || Link {
            latency_ns: random.below(100_000) as f64,
            ns_per_byte: (1 + random.below(rates)) as f64,
            burst_bytes: 0.0,
            setup_ns: random.below(200_000) as f64,
        };
        let alike = link();
        let mut edge = || {
            let down = if rates > 1 { link() } else { alike };
            Edge { down, up: down }
        };
        Model {
            edges: (0..pes).map(|_| edge()).collect(),
            hosts: Hosts::one(Host::NONE),
            ports: Ports::Single,
            buffer_bytes: BUFFER_BYTES,
            ahead_ns: f64::INFINITY,
            ..Model::unit(pes)
        }
    }

    /// A scatter in this order.
    fn way(order: MessageOrder) -> Way {
        Way {
            operation: Operation::Scatter,
            baseline: None,
            pacing: None,
            flit_bytes: None,
            packets: None,
            order,
            covers: false,
        }
    }

    /// No packets that can be asked for are quicker than those that are chosen, in the same order;
    /// no order is quicker than the one that is searched for; and nothing is quicker than the bound.
    #[test]
    fn auto_is_no_slower_than_what_could_be_asked_for() {
        let mut random = SplitMix64::new(34);
        let mut better = 0;
        for case in 0..30 {
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
            let foreseen = |order: &MessageOrder, asked: Packets| {
                let way = way(order.clone());
                let planned = (&tree, &way, Pacing::Scheduled);
                let found = foresee_in_packets(planned, &bytes, asked, &model, &given_up);
                found.expect("a schedule")
            };
            let orders = [MessageOrder::Search, MessageOrder::Tail, MessageOrder::Fdf];
            let chosen = orders
                .each_ref()
                .map(|order| foreseen(order, Packets::Auto));
            let any = chosen[0]
                .order
                .expect("an order was searched for")
                .of_scatter();
            let counts = (1..=8).chain([13, 20, 40]).map(Packets::Count);
            let sizes = [4 << 10, USUAL_FLIT_BYTES, 1 << 20].map(Packets::Size);
            for asked in counts.chain(sizes) {
                let each = orders.each_ref().map(|order| foreseen(order, asked));
                for (auto, one) in chosen.iter().zip(&each) {
                    let choice = one.packets.expect("packets were asked for");
                    assert_eq!(choice.predicted_ns, one.ns());
                    assert!(auto.ns() <= one.ns(), "{case} {asked}: {:?}", one.packets);
                    assert!(any.bound_ns <= one.ns(), "{case} {asked}: {any}");
                    // Times are rounded to nanoseconds, hop by hop.
                    let bound_ns = each[0].order.map(|order| order.of_scatter().bound_ns);
                    assert!(bound_ns <= Some(one.ns() + 10), "{case} {asked}");
                    assert!(each[0].ns() <= one.ns(), "{case} {asked}");
                }
                let fdf = &each[2].briefs[0].sends;
                let depths = fdf.iter().map(|message| tree.depth(message.id.pe()));
                assert!(depths.rev().is_sorted(), "{case} {asked}");
                better += u32::from(each[0].ns() < each[1].ns().min(each[2].ns()));
            }
        }
        assert!(better > 30, "{better}");
    }
}
