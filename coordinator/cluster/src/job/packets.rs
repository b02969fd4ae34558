//! A round whose messages are cut into requested packets (`--packets`).
//!
//! A relay forwards a flit when it has all of it, so a packet of paper 003 is a flit, and the cut of a
//! message is the size of its flits. Only its source needs to know it: all flits but the last are full,
//! which takes no longer than even ones whose largest is no larger (Lemma 12).

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::gather_order::set_order;
use flitcast_plan::algorithms::scatter_in_packets::set_packets;
use flitcast_plan::packets::certification::{self, ControlCost};
use flitcast_plan::packets::mixed::plan_mixed;
use flitcast_plan::packets::model::{LinkCost, Run, messages};
use flitcast_plan::packets::path;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

use crate::job::decisions::PacketChoice;
use crate::job::flit_size::{best_alone, best_around, link_cost, looking_ns, take_time};
use crate::job::order::{bound_of, of_any_packets, ordered};
use crate::job::planned_round::{PlannedRound, Planner};
use crate::options::order::MessageOrder;
use crate::options::packets::Packets;
use crate::tuning::{
    GRAINS, MIXED_PARTS, ORDERED_CUTS, PACKET_COUNTS, PACKETS_NS, USUAL_FLIT_BYTES,
};

/// Plans and predicts a round whose messages are cut as requested.
pub fn plan_in_packets(
    planner: &Planner<'_>,
    requested: Packets,
) -> Result<PlannedRound, ProtocolError> {
    let Planner { tree, bytes, .. } = *planner;
    if requested == Packets::Mixed {
        return plan_mixed_packets(planner);
    }
    let operation = planner.operation();
    let requested_order = &planner.decisions.way.order;
    let before_others = requested_order.before_others();
    let in_order = |one| ordered(planner, &before_others, one);
    let cut = |packet_bytes| in_order(planner.plan_and_predict_cut(packet_bytes)?);
    let of_one_size = |flit_bytes| in_order(planner.plan_and_predict(flit_bytes)?);
    let usual = of_one_size(USUAL_FLIT_BYTES)?;
    let usual_ns = usual.ns();
    let certified = certified(planner, requested);
    let mut best = match sizes(tree, operation, bytes, |bytes| requested.of(bytes)) {
        Some(sizes) => {
            let round = in_order_of(planner, cut(sizes)?, certified)?;
            ordered(planner, requested_order, round)?
        }
        None => {
            let best = best_of_one_size(planner, &usual, of_one_size)?;
            let sizes = certified.as_ref().map(|plan| plan.sizes.clone());
            let planned = match sizes.or_else(|| of_one_way(planner)) {
                Some(sizes) => Some(in_order_of(planner, cut(sizes)?, certified)?),
                None => None,
            };
            let few = few_packets(planner, &usual, cut)?;
            let others = best.into_iter().chain(planned).chain(few);
            let mut all: Vec<PlannedRound> = std::iter::once(usual).chain(others).collect();
            all.sort_by_key(PlannedRound::ns);
            match requested_order {
                MessageOrder::Search => best_order(planner, all)?,
                order => ordered(planner, order, all.swap_remove(0))?,
            }
        }
    };
    let sent = best.schedules.iter().flat_map(|schedule| {
        let sent = schedule.cut_sends();
        sent.map(|(message, flit_bytes)| (message.bytes, u64::from(flit_bytes)))
    });
    let largest = sent.clone().map(|(bytes, packet)| packet.min(bytes)).max();
    best.decisions.packets = Some(PacketChoice {
        asked: requested,
        count: sent.map(|(bytes, packet)| bytes.div_ceil(packet)).sum(),
        largest_bytes: largest.unwrap_or(0) as u32,
        predicted_ns: best.ns(),
        usual_ns,
    });
    Ok(best)
}

/// Returns the largest packet of each message, by message id; `None` if it is to be chosen.
fn sizes(
    tree: &Tree,
    operation: Algorithm,
    bytes: &[u64],
    of: impl Fn(u64) -> Option<u32>,
) -> Option<Vec<u32>> {
    let mut sizes = Vec::new();
    for message in operation.collective().messages(tree) {
        sizes.resize(message.id.index() + 1, MIN_FLIT_BYTES);
        sizes[message.id.index()] = of(operation.collective().length(tree, message, bytes))?;
    }
    Some(sizes)
}

/// Plans all messages in packets of one size, the best that is found in time.
fn best_of_one_size(
    planner: &Planner<'_>,
    usual: &PlannedRound,
    of: impl Fn(u32) -> Result<PlannedRound, ProtocolError>,
) -> Result<Option<PlannedRound>, ProtocolError> {
    let Planner { tree, model, .. } = *planner;
    let Some(first) = best_alone(tree, planner.operation(), &usual.schedules, model) else {
        return Ok(None);
    };
    let mut left_ns = PACKETS_NS;
    best_around(first, MAX_FLIT_BYTES, |flit_bytes| {
        let takes = looking_ns(tree, &usual.schedules, flit_bytes);
        let has_time = take_time(&mut left_ns, takes);
        has_time.then(|| of(flit_bytes)).transpose()
    })
}

/// Searches for an order for the quickest of these cuts, of which there is at least one, and returns
/// the best. They are sorted by their time before the search.
fn best_order(
    planner: &Planner<'_>,
    cuts: Vec<PlannedRound>,
) -> Result<PlannedRound, ProtocolError> {
    let Planner { tree, model, .. } = *planner;
    let (mut best, mut left) = (None::<PlannedRound>, ORDERED_CUTS);
    for one in cuts {
        let bound = bound_of(tree, &one, model);
        let is_worse = |best: &PlannedRound| left == 0 || best.ns() as f64 <= bound;
        if best.as_ref().is_some_and(is_worse) {
            continue;
        }
        left -= 1;
        let found = ordered(planner, &MessageOrder::Search, one)?;
        if best.as_ref().is_none_or(|best| found.ns() < best.ns()) {
            best = Some(found);
        }
    }
    let Some(mut best) = best else {
        unreachable!("the usual size is one of the cuts");
    };
    let choice = best.decisions.order.take();
    best.decisions.order = choice.map(|choice| of_any_packets(choice, tree, &best, model));
    Ok(best)
}

/// Predicts each message in one packet, in two, and so on, as long as there is time.
fn few_packets(
    planner: &Planner<'_>,
    usual: &PlannedRound,
    cut: impl Fn(Vec<u32>) -> Result<PlannedRound, ProtocolError>,
) -> Result<Vec<PlannedRound>, ProtocolError> {
    let Planner { tree, bytes, .. } = *planner;
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let least = longest.div_ceil(MAX_FLIT_BYTES.into()).max(1);
    let mut left_ns = PACKETS_NS;
    let mut few = Vec::new();
    for count in least..least + PACKET_COUNTS {
        let of = |bytes| Packets::Count(count).of(bytes);
        let Some(sizes) = sizes(tree, planner.operation(), bytes, of) else {
            break;
        };
        let largest = sizes.iter().copied().max().unwrap_or(MIN_FLIT_BYTES);
        let takes = looking_ns(tree, &usual.schedules, largest);
        if !take_time(&mut left_ns, takes.max(1)) {
            break;
        }
        few.push(cut(sizes)?);
    }
    Ok(few)
}

/// Messages in grains, for plans that count flits one by one.
struct Grains {
    bytes: u64,
    /// The grains of each message, by PE.
    messages: Vec<u64>,
    cost: LinkCost,
}

impl Grains {
    /// Returns the messages of a scatter or a gather in grains, if there are several.
    fn of(planner: &Planner<'_>) -> Option<Grains> {
        let Planner {
            tree, bytes, model, ..
        } = *planner;
        let longest = bytes.iter().copied().max()?;
        let grain = longest.div_ceil(GRAINS).max(MIN_FLIT_BYTES.into());
        let grains: Vec<u64> = bytes.iter().map(|bytes| bytes.div_ceil(grain)).collect();
        if messages(tree, &grains).len() < 2 {
            return None;
        }
        Some(Grains {
            bytes: grain,
            messages: grains,
            cost: link_cost(tree, planner.operation(), model, grain),
        })
    }

    fn packet_bytes(&self, grains: u64) -> u32 {
        let bytes = grains.saturating_mul(self.bytes);
        bytes.clamp(MIN_FLIT_BYTES.into(), MAX_FLIT_BYTES.into()) as u32
    }
}

/// A planned gather by certification.
struct CertifiedCut {
    /// The largest packet of each message.
    sizes: Vec<u32>,
    /// The order in which P0 takes the messages.
    order: Vec<PeId>,
}

/// Plans a gather by certification, whose control items pay no set-up, in packets of a requested size or of
/// the best one. Returns `None` for all other rounds.
fn certified(planner: &Planner<'_>, requested: Packets) -> Option<CertifiedCut> {
    let Planner { tree, bytes, .. } = *planner;
    let operation = planner.operation();
    operation.certification_sync()?;
    let grains = Grains::of(planner)?;
    let (flits, cost) = (&grains.messages, grains.cost);
    let plan = match requested {
        Packets::Size(size) => {
            let cap = (u64::from(size) / grains.bytes).max(1);
            certification::plan(tree, flits, cost, ControlCost::Free, cap)
        }
        _ => certification::plan_best_cap(tree, flits, cost, ControlCost::Free),
    };
    let plan = plan.ok()?;
    let of_cap = Packets::Size(grains.packet_bytes(plan.cap));
    Some(CertifiedCut {
        sizes: sizes(tree, operation, bytes, |bytes| of_cap.of(bytes))?,
        order: plan.order(tree, flits),
    })
}

/// Returns the round in the order of a plan, if that is quicker. If all orders go at once, the round then
/// takes the time of the plan also where messages differ.
fn in_order_of(
    planner: &Planner<'_>,
    round: PlannedRound,
    plan: Option<CertifiedCut>,
) -> Result<PlannedRound, ProtocolError> {
    let mut schedules = round.schedules.clone();
    let Some(plan) = plan else {
        return Ok(round);
    };
    if set_order(planner.tree, &mut schedules, &plan.order).is_err() {
        return Ok(round);
    }
    let ordered = planner.predict(schedules, round.decisions.clone())?;
    Ok(match ordered.ns() < round.ns() {
        true => ordered,
        false => round,
    })
}

/// Returns the planned packet size of each message of a scatter whose messages are all on one way from
/// the root: on equal links they are optimal. Returns `None` for all other rounds.
fn of_one_way(planner: &Planner<'_>) -> Option<Vec<u32>> {
    let grains = Grains::of(planner)?;
    let nonnull = messages(planner.tree, &grains.messages);
    if planner.operation() != Algorithm::FARTHEST_FIRST || !path::is_one_way(planner.tree, &nonnull)
    {
        return None;
    }
    let mut sizes = vec![MIN_FLIT_BYTES; planner.tree.len()];
    for Run { pe, flits, .. } in path::plan(grains.cost, &nonnull).sequence {
        let size = &mut sizes[pe.index()];
        *size = grains.packet_bytes(flits).max(*size);
    }
    Some(sizes)
}

/// Plans and predicts a scatter in packets that mix messages, with the quickest of some flit sizes.
pub fn plan_mixed_packets(planner: &Planner<'_>) -> Result<PlannedRound, ProtocolError> {
    let longest = planner.bytes.iter().copied().max().unwrap_or(0);
    let sizes = MIXED_PARTS.map(|parts| {
        let [least, most] = [MIN_FLIT_BYTES, MAX_FLIT_BYTES].map(u64::from);
        longest.div_ceil(parts).clamp(least, most) as u32
    });
    let mut all = Vec::new();
    for (place, flit_bytes) in sizes.into_iter().enumerate() {
        if !sizes[..place].contains(&flit_bytes) {
            all.push(in_flits_of(planner, flit_bytes)?);
        }
    }
    match all.into_iter().min_by_key(PlannedRound::ns) {
        Some(best) => Ok(best),
        None => planner.plan_and_predict(USUAL_FLIT_BYTES),
    }
}

/// Plans with flits of one size. Messages that are too long to plan are sent one after the other.
fn in_flits_of(planner: &Planner<'_>, flit_bytes: u32) -> Result<PlannedRound, ProtocolError> {
    let Planner {
        tree, bytes, model, ..
    } = *planner;
    let mut planned = planner.plan_and_predict(flit_bytes)?;
    let flits = bytes.iter().map(|bytes| bytes.div_ceil(flit_bytes.into()));
    let flits: Vec<u64> = flits.collect();
    let cost = link_cost(tree, Algorithm::FARTHEST_FIRST, model, flit_bytes.into());
    let Ok(plan) = plan_mixed(tree, &flits, cost, 0) else {
        return Ok(planned);
    };
    let mut schedules = planned.schedules.clone();
    set_packets(tree, &mut schedules, &plan.sequence);
    planned = planner.predict(schedules, planned.decisions)?;
    let mut plain = planner.decisions.clone();
    plain.way.operation = Algorithm::FARTHEST_FIRST;
    let plain = Planner {
        decisions: &plain,
        ..*planner
    };
    let usual = plain.plan_and_predict(USUAL_FLIT_BYTES)?;
    let largest = plan.sequence.iter().map(Run::size).max().unwrap_or(0);
    planned.decisions.packets = Some(PacketChoice {
        asked: Packets::Mixed,
        count: plan.sequence.iter().map(|run| run.packets).sum(),
        largest_bytes: largest
            .saturating_mul(flit_bytes.into())
            .min(u32::MAX.into()) as u32,
        predicted_ns: planned.ns(),
        usual_ns: usual.ns(),
    });
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use flitcast_plan::cost::{Host, Hosts, Model, Ports};
    use flitcast_proto::cost::{Edge, Link};
    use flitcast_proto::schedule::pace::Pacing;
    use flitcast_proto::seeded::SplitMix64;

    use super::*;
    use crate::job::decisions::Decisions;
    use crate::job::test_tree::tree;
    use crate::tuning::BUFFER_BYTES;

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

    /// No packets that can be requested are quicker than those that are chosen, in the same order;
    /// no order is quicker than the one that is searched for; and nothing is quicker than the bound.
    #[test]
    fn auto_is_no_slower_than_any_requested_packets() {
        let mut random = SplitMix64::new(34);
        let mut better = 0;
        for case in 0..30 {
            let pes = 3 + random.below(8);
            let specs = [
                format!("path:{pes}"),
                format!("kary:2:{pes}"),
                format!("random:{pes}:{}", random.below(1_000)),
            ];
            let tree = tree(&specs[random.below(3) as usize]);
            let model = model(&mut random, tree.len());
            let length = |pe: usize| match pe {
                0 => 0,
                _ => 1 + random.below(300_000),
            };
            let bytes: Vec<u64> = (0..tree.len()).map(length).collect();
            let planned = |order: &MessageOrder, requested: Packets| {
                let mut decisions = Decisions::of(Algorithm::FARTHEST_FIRST, Pacing::Scheduled);
                decisions.way.order = order.clone();
                let planner = Planner::new(&tree, &decisions, &bytes, &model);
                plan_in_packets(&planner, requested).expect("a schedule")
            };
            let orders = [MessageOrder::Search, MessageOrder::Tail, MessageOrder::Fdf];
            let chosen = orders.each_ref().map(|it| planned(it, Packets::Auto));
            let any = chosen[0].scatter_order();
            let counts = (1..=8).chain([13, 20, 40]).map(Packets::Count);
            let sizes = [4 << 10, USUAL_FLIT_BYTES, 1 << 20].map(Packets::Size);
            for requested in counts.chain(sizes) {
                let each = orders.each_ref().map(|order| planned(order, requested));
                for (auto, one) in chosen.iter().zip(&each) {
                    let choice = one.decisions.packets.expect("packets were requested");
                    assert_eq!(choice.predicted_ns, one.ns());
                    assert!(auto.ns() <= one.ns(), "{case} {requested}: {choice:?}");
                    assert!(any.bound_ns <= one.ns(), "{case} {requested}: {any}");
                    // Times are rounded to nanoseconds, hop by hop.
                    let bound_ns = each[0].scatter_order().bound_ns;
                    assert!(bound_ns <= one.ns() + 10, "{case} {requested}");
                    assert!(each[0].ns() <= one.ns(), "{case} {requested}");
                }
                let fdf = &each[2].schedules[0].sends;
                let depths = fdf.iter().map(|message| tree.depth(message.id.pe()));
                assert!(depths.rev().is_sorted(), "{case} {requested}");
                better += u32::from(each[0].ns() < each[1].ns().min(each[2].ns()));
            }
        }
        assert!(better > 30, "{better}");
    }
}
