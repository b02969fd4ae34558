//! Compares the real state machine in virtual time with the model of packets (`crate::packets`),
//! which shares no code with it.

use super::*;
use crate::cost::{Edge, Host, Hosts};
use crate::packets::model::{LinkCost, Timetable};
use crate::packets::plan;
use crate::schedule::pace::{Pacing, Timing};
use crate::seeded::SplitMix64;
use crate::tree::TreeSpec;

fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().expect("a tree");
    Arc::new(spec.build().expect("a tree"))
}

/// A model of flits of one byte, with no costs except those of the links.
fn model(pes: usize, cost: LinkCost) -> Model {
    let link = Link {
        setup_ns: cost.setup as f64,
        ns_per_byte: cost.flit as f64,
        ..Link::default()
    };
    Model {
        edges: vec![
            Edge {
                down: link,
                up: link
            };
            pes
        ],
        // A socket accepts all that it has room for, so no PE waits for a relay's port with a
        // packet in hand.
        ahead_ns: f64::INFINITY,
        ..Model::unit(pes)
    }
}

/// Returns when each message is complete at its PE, in packets of these sizes, and the order of
/// sending.
fn run(tree: &Arc<Tree>, bytes: &[u64], cost: LinkCost, sizes: &[u32]) -> (Vec<u64>, Vec<PeId>) {
    let model = model(tree.len(), cost);
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let timing = Timing::of(&model, largest, Pacing::Scheduled);
    let timing = timing.in_packets(sizes.to_vec());
    let briefs = Brief::all(tree, Operation::Scatter, bytes, &timing);
    let order = briefs[0].sends.iter().map(|message| message.pe());
    let predicted = predict(tree, &briefs, &model).expect("a schedule");
    let arrivals = predicted.arrivals_ns.iter();
    let arrivals = arrivals.map(|arrival| arrival.unwrap_or(0));
    (arrivals.collect(), order.collect())
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
            arrivals[pe.index()] = timetable.dispatch(pe, packet).whole as u64;
        }
    }
    arrivals
}

#[test]
fn packets_arrive_when_the_model_says() {
    for seed in 0..300u64 {
        let mut random = SplitMix64::new(seed);
        let pes = 2 + random.below(9);
        let tree = tree(&match seed % 3 {
            0 => format!("path:{pes}"),
            1 => format!("star:{pes}"),
            _ => format!("random:{pes}:{seed}"),
        });
        let mut bytes: Vec<u64> = (0..pes).map(|_| random.below(30)).collect();
        bytes[0] = 0;
        let sizes: Vec<u32> = (0..pes).map(|_| 1 + random.below(12) as u32).collect();
        let cost = LinkCost {
            setup: random.below(20).into(),
            flit: (1 + random.below(3)).into(),
        };
        let (arrivals, order) = run(&tree, &bytes, cost, &sizes);
        let expected = replayed(&tree, &bytes, cost, &sizes, &order);
        assert_eq!(arrivals, expected, "seed {seed}");
    }
}

/// On the golden cases of paths, the machine takes the optimal time with the planned packets.
#[test]
fn paths_take_what_is_planned() {
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
        let bytes: Vec<u64> = [0].iter().chain(lengths).copied().collect();
        let cost: LinkCost = beta.parse().expect("a set-up cost");
        let planned = plan(&tree, &bytes, cost, 0).expect("it is small");
        let mut sizes = vec![1u32; tree.len()];
        for run in &planned.sequence {
            let size = &mut sizes[run.pe.index()];
            *size = (*size).max(run.flits as u32);
        }
        let (arrivals, order) = run(&tree, &bytes, cost, &sizes);
        let last = arrivals.into_iter().max().unwrap_or(0);
        assert_eq!(
            u128::from(last),
            planned.time,
            "{lengths:?} {beta} {sizes:?} {order:?}"
        );
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
        let briefs = Brief::all(&tree, Operation::Scatter, &bytes, &timing);
        predict(&tree, &briefs, &model)
            .expect("a schedule")
            .round_ns()
    };
    assert_eq!(took(50, 0.0), 100 * 51);
    // The sender's first set-up, and the receiver's last.
    assert_eq!(took(50, 10.0), 100 * 51 + 2 * 10);
}
