//! Compares the real state machine in virtual time with the model of packets (`crate::packets`),
//! which shares no code with it.

use flitcast_proto::PeId;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::algorithms::Algorithm;
use crate::algorithms::gather_order::set_order;
use crate::algorithms::scatter_in_packets::set_packets;
use crate::cost::{Edge, Host, Hosts};
use crate::packets::certification::{self, ControlCost};
use crate::packets::mixed::plan_mixed;
use crate::packets::model::{LinkCost, Run, Timetable};
use crate::packets::plan;
use crate::tests::{arrivals, lengths, link, predicted, random_trees, tree, with_root};
use crate::timing::Timing;

/// A model of flits of one byte, with no costs except those of the links.
fn model(pes: usize, cost: LinkCost) -> Model {
    let link = link(0.0, cost.setup as f64, cost.flit as f64);
    Model {
        // A socket accepts all that it has room for, so no PE waits for a relay's port with a
        // packet in hand.
        ahead_ns: f64::INFINITY,
        ..Model::alike(pes, link)
    }
}

/// Returns a link's cost: a set-up from `least` to `least + below - 1` and a flit of up to three ticks.
fn random_cost(random: &mut SplitMix64, least: u64, below: u64) -> LinkCost {
    LinkCost {
        setup: (least + random.below(below)).into(),
        flit: (1 + random.below(3)).into(),
    }
}

/// Returns when each message is complete at its PE, in packets of these sizes, and the order of
/// sending.
fn run(tree: &Arc<Tree>, bytes: &[u64], cost: LinkCost, sizes: &[u32]) -> (Vec<u64>, Vec<PeId>) {
    let model = model(tree.len(), cost);
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let timing = Timing::of(&model, largest, Pacing::Scheduled);
    let timing = timing.in_packets(sizes.to_vec());
    let schedules = Algorithm::FARTHEST_FIRST.schedules(tree, bytes, &timing);
    let order = schedules[0].sends.iter().map(|message| message.pe());
    let predicted = predict(tree, &schedules, &model).expect("a schedule");
    (arrivals(&predicted), order.collect())
}

/// Returns the arrivals by the model, full packets first.
fn replayed(tree: &Tree, bytes: &[u64], cost: LinkCost, sizes: &[u32], order: &[PeId]) -> Vec<u64> {
    let mut timetable = Timetable::new(tree, cost);
    let mut arrivals = vec![0; tree.len()];
    for &pe in order {
        let mut left = bytes[pe.index()];
        while left > 0 {
            let packet = left.min(sizes[pe.index()].into());
            left -= packet;
            arrivals[pe.index()] = timetable.dispatch(&Run::new(pe, packet, 1)).whole[0] as u64;
        }
    }
    arrivals
}

#[test]
fn packets_arrive_at_the_times_of_the_model() {
    for (seed, mut random, pes, tree) in random_trees(300, &["path", "star", "random"], [2, 9]) {
        let bytes = lengths(pes, |_| random.below(30));
        let sizes: Vec<u32> = (0..pes).map(|_| 1 + random.below(12) as u32).collect();
        let cost = random_cost(&mut random, 0, 20);
        let (arrivals, order) = run(&tree, &bytes, cost, &sizes);
        let expected = replayed(&tree, &bytes, cost, &sizes, &order);
        assert_eq!(arrivals, expected, "seed {seed}");
    }
}

/// On the golden cases of paths, the machine takes the optimal time with the planned packets.
#[test]
fn paths_take_the_planned_time() {
    for (lengths, beta) in [
        (&[2, 3, 0, 2, 1][..], "2"),
        (&[9, 0, 1, 0, 12], "3"),
        (&[40, 7, 19, 3, 25, 0, 8], "5"),
        (&[2, 2, 0, 2], "1"),
        (&[0, 0, 0, 0, 3], "3"),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1000], "1/2"),
        (&[0, 2, 2], "1"),
        (&[0, 0, 12, 12, 12, 12], "2"),
    ] {
        let tree = tree(&format!("path:{}", lengths.len() + 1));
        let bytes = with_root(lengths);
        let cost: LinkCost = beta.parse().expect("a set-up cost");
        let planned = plan(&tree, &bytes, cost, 0).expect("it is small");
        let mut sizes = vec![1u32; tree.len()];
        for run in &planned.sequence {
            let size = &mut sizes[run.pe.index()];
            *size = (*size).max(run.flits as u32);
        }
        let (arrivals, order) = run(&tree, &bytes, cost, &sizes);
        let last = arrivals.into_iter().max().map(u128::from);
        let case = format!("{lengths:?} {beta} {sizes:?} {order:?}");
        assert_eq!(last, Some(planned.time), "{case}");
    }
}

/// A flit costs the maximum of its time on the wire and in the relay's process.
#[test]
fn a_set_up_on_the_wire_hides_that_of_a_process() {
    let tree = tree("path:2");
    let bytes = [0, 100];
    let took = |setup, flit_ns| {
        let cost = LinkCost { setup, flit: 1 };
        let model = Model {
            hosts: Hosts::one(Host {
                flit_ns,
                ..Host::NONE
            }),
            ..model(2, cost)
        };
        let timing = Timing::of(&model, 1, Pacing::Scheduled);
        predicted(Algorithm::FARTHEST_FIRST, &tree, &bytes, &model, &timing).round_ns()
    };
    assert_eq!(took(50, 0.0), 100 * 51);
    // The sender's first set-up, and the receiver's last.
    assert_eq!(took(50, 10.0), 100 * 51 + 2 * 10);
}

/// Returns when a gather by certification ends, in packets of at most `cap` flits, if P0 receives the
/// messages in this order, or each as early as it can come.
fn gathered(
    tree: &Arc<Tree>,
    bytes: &[u64],
    cost: LinkCost,
    cap: u64,
    pacing: Pacing,
    order: Option<&[PeId]>,
) -> u64 {
    let model = Model {
        control_bytes: 0,
        ..model(tree.len(), cost)
    };
    let sizes = bytes.iter().map(|&bytes| {
        let packets = bytes.div_ceil(cap).max(1);
        bytes.div_ceil(packets).max(1) as u32
    });
    let sizes: Vec<u32> = sizes.collect();
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let timing = Timing::of(&model, largest, pacing).in_packets(sizes);
    let operation = Algorithm::CERTIFICATION_PIPELINED;
    let mut schedules = operation.schedules(tree, bytes, &timing);
    if let Some(order) = order {
        set_order(tree, &mut schedules, order).expect("a walk of the tree");
    }
    let prediction = predict(tree, &schedules, &model);
    prediction.expect("a schedule").round_ns()
}

/// Returns the times under all caps.
fn by_cap(lengths: &[u64], time: impl Fn(u64) -> u64) -> Vec<u64> {
    let longest = lengths.iter().copied().max().unwrap_or(1);
    (1..=longest).map(time).collect()
}

/// A control item pays no set-up on links. If messages are alike, a plan that has it so takes the time of
/// the run under every cap, so that both have the same best one. In the golden case another cap is best
/// with the paper's control packets.
#[test]
fn a_gather_takes_the_planned_time_with_control_between_packets() {
    for (seed, mut random, pes, tree) in random_trees(60, &["random"], [3, 9]) {
        let each = 1 + random.below(16);
        let bytes = lengths(pes, |_| each);
        let cost = random_cost(&mut random, 1, 9);
        let free = by_cap(&bytes, |cap| {
            let plan = certification::plan(&tree, &bytes, cost, ControlCost::Free, cap);
            plan.expect("it is small").time as u64
        });
        for pacing in [Pacing::Eager, Pacing::Scheduled, Pacing::Turns] {
            let times = by_cap(&bytes, |cap| {
                gathered(&tree, &bytes, cost, cap, pacing, None)
            });
            assert_eq!(times, free, "seed {seed} {pacing:?} {bytes:?} {cost:?}");
        }
    }
    // The golden case of paper 003's algorithm.
    let (path, bytes) = (tree("path:6"), [0, 2, 3, 0, 2, 1]);
    let cost: LinkCost = "2".parse().expect("a set-up cost");
    let best = |control| certification::plan_best_cap(&path, &bytes, cost, control);
    let best = [ControlCost::Packet, ControlCost::Free].map(|it| best(it).expect("it is small"));
    assert_eq!(best.map(|best| (best.cap, best.time)), [(1, 63), (2, 19)]);
    let times = by_cap(&bytes, |cap| {
        gathered(&path, &bytes, cost, cap, Pacing::Scheduled, None)
    });
    assert_eq!(times, [24, 19, 20]);
}

/// A gather by the clock, or in the planned order of its streams if all orders go at once, takes the planned
/// time under every cap, whatever the lengths of its messages. So it has the same best cap.
#[test]
fn a_gather_of_uneven_messages_takes_the_planned_time() {
    for (seed, mut random, pes, tree) in random_trees(100, &["random"], [3, 9]) {
        let bytes = lengths(pes, |_| random.below(30));
        let cost = random_cost(&mut random, 1, 20);
        let total: u64 = bytes.iter().sum();
        for cap in (1..=30).step_by(3).filter(|_| total > 0) {
            let plan = certification::plan(&tree, &bytes, cost, ControlCost::Free, cap);
            let plan = plan.expect("it is small");
            let order = plan.order(&tree, &bytes);
            for (pacing, order) in [(Pacing::Scheduled, None), (Pacing::Eager, Some(&*order))] {
                let took = gathered(&tree, &bytes, cost, cap, pacing, order);
                let case = format!("seed {seed} {pacing:?} {cap} {bytes:?} {cost:?}");
                assert_eq!(u128::from(took), plan.time, "{case}");
            }
        }
    }
}

/// On edges of unlike set-up times and rates, relays that wait until they can send a stream without a gap
/// take little longer than a gather whose streams all wait in sockets.
#[test]
fn a_gather_over_unlike_edges_loses_little_by_the_clock() {
    let (mut sum, mut rounds) = (0.0, 0);
    for (_, mut random, pes, tree) in random_trees(100, &["random"], [3, 9]) {
        let bytes = lengths(pes, |_| 1 + random.below(30));
        let edges = (0..pes).map(|_| {
            let setup_ns = random.below(20) as f64;
            let up = link(0.0, setup_ns, (1 + random.below(4)) as f64);
            Edge { down: up, up }
        });
        let model = Model {
            control_bytes: 0,
            edges: edges.collect(),
            ..model(tree.len(), LinkCost { setup: 0, flit: 1 })
        };
        let took = |pacing, flit_bytes| {
            let timing = Timing::of(&model, flit_bytes, pacing);
            let operation = Algorithm::CERTIFICATION_PIPELINED;
            predicted(operation, &tree, &bytes, &model, &timing).round_ns() as f64
        };
        for flit_bytes in [1, 7, 30] {
            sum += took(Pacing::Scheduled, flit_bytes) / took(Pacing::Eager, flit_bytes);
            rounds += 1;
        }
    }
    let longer = sum / f64::from(rounds);
    assert!(longer < 1.06, "{longer}");
}

/// A packet with its ends: the flits of each message in it, by message and offset.
type SentPacket = (PeId, PeId, Vec<(u64, u64)>);

/// Returns the packets of each sender, in order, by the model.
fn packets_of(tree: &Tree, sequence: &[Run]) -> Vec<Vec<SentPacket>> {
    let mut packets = vec![Vec::new(); tree.len()];
    let mut offsets = vec![0; tree.len()];
    for run in sequence {
        for _ in 0..run.packets {
            let up = tree.up_from(run.pe);
            for (to, from) in up.filter_map(|to| Some((to, tree.parent(to)?))) {
                let parts = run.parts();
                let below = parts.filter(|part| tree.depth(part.pe) >= tree.depth(to));
                let flits = below.flat_map(|part| {
                    let offset = offsets[part.pe.index()];
                    (offset..offset + part.flits).map(move |flit| (part.pe.0.into(), flit))
                });
                packets[from.index()].push((from, to, flits.collect()));
            }
            for part in run.parts() {
                offsets[part.pe.index()] += part.flits;
            }
        }
    }
    packets
}

/// A round in packets that mix messages is its plan: each PE sends the planned packets in the planned
/// order, and no message is complete later than planned. The flits for the farthest PE are the first of a
/// packet, so a relay that has them need not wait for its own ones, as it does in the plan.
#[test]
fn mixed_packets_are_sent_and_arrive_as_planned() {
    let (mut mixed, mut sooner) = (0, 0);
    for (seed, mut random, pes, tree) in random_trees(200, &["path", "kary", "random"], [2, 11]) {
        let bytes = lengths(pes, |_| random.below(12));
        let cost = random_cost(&mut random, 0, 20);
        let plan = plan_mixed(&tree, &bytes, cost, 0).expect("it is small");
        let model = model(tree.len(), cost);
        let timing = Timing::of(&model, 1, Pacing::Eager);
        let mut schedules = Algorithm::LISTED_SCATTER.schedules(&tree, &bytes, &timing);
        set_packets(&tree, &mut schedules, &plan.sequence);
        let given_up = AtomicBool::new(false);
        let world = PredictionState::run_to_end(&given_up, &tree, &schedules, &model, 1);
        let world = world.expect("a schedule");
        let mut sent: Vec<Vec<SentPacket>> = vec![Vec::new(); tree.len()];
        for (from, out, packets) in &world.sent {
            let sent = &mut sent[from.index()];
            assert!(*packets <= 1, "seed {seed}");
            if *packets == 1 {
                sent.push((*from, out.to, Vec::new()));
            }
            let (_, _, flits) = sent.last_mut().expect("a packet begins");
            let offsets = out.piece.offset..out.piece.offset + out.piece.bytes;
            flits.extend(offsets.map(|offset| (out.piece.message.id.0, offset)));
        }
        assert_eq!(sent, packets_of(&tree, &plan.sequence), "seed {seed}");
        let mut timetable = Timetable::new(&tree, cost);
        let mut arrivals = vec![0; tree.len()];
        for run in &plan.sequence {
            for _ in 0..run.packets {
                for (part, whole) in run.parts().zip(timetable.dispatch(run).whole) {
                    arrivals[part.pe.index()] = whole as u64;
                }
            }
        }
        let prediction = world.prediction();
        let predicted = crate::tests::arrivals(&prediction);
        let mut late = predicted
            .iter()
            .zip(&arrivals)
            .filter(|(took, planned)| took > planned);
        let case = format!("seed {seed}: {bytes:?} {cost:?} {predicted:?} {arrivals:?}");
        assert!(late.next().is_none(), "{case}");
        let is_mixed = plan.sequence.iter().any(|run| !run.also.is_empty());
        assert!(is_mixed || predicted == arrivals, "{case}");
        mixed += u32::from(is_mixed);
        sooner += u32::from(predicted.iter().max() < arrivals.iter().max());
    }
    assert!(mixed > 50 && sooner < mixed / 2, "{mixed} {sooner}");
}
