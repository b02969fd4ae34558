use flitcast_proto::PeId;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::algorithms::cover_plan::steps_of_gather_on_a_tree;
use crate::algorithms::plan::plan_scatter_by_branch;
use crate::algorithms::{Algorithm, OnNetwork};
use crate::cost::{Edge, HELD_BYTE_COST, Host, Hosts, Link, Ports};
use crate::sim;
use crate::tests::{arena, arrivals, lengths, link, predicted, random_trees, shaped, tree};
use crate::timing::Timing;

/// Adds the gather that only paths have.
fn and_of_paths(tree: &Tree, all: &[Algorithm]) -> Vec<Algorithm> {
    let of_path = tree.is_path().then_some(Algorithm::SHOULDER_TAP);
    all.iter().copied().chain(of_path).collect()
}

/// Asserts that messages arrive in the steps of the lock-step simulator, each of `tick` nanoseconds.
fn assert_steps(
    tree: &Arc<Tree>,
    flits: &[u64],
    operations: &[Algorithm],
    (model, timing): (&Model, &Timing),
    tick: u64,
) {
    for operation in and_of_paths(tree, operations) {
        let predicted = predicted(operation, tree, flits, model, timing);
        let steps = sim::run(tree, operation, flits).unwrap().arrival_steps;
        let ticks: Vec<u64> = steps.iter().map(|step| step * tick).collect();
        assert_eq!(arrivals(&predicted), ticks, "{operation:?}, {flits:?}");
    }
}

/// On links of one tick a flit and with software that costs nothing, every message arrives in the step of
/// the lock-step simulator. A longer tick multiplies its times.
#[test]
fn equal_links_give_the_steps_of_the_simulator() {
    for (seed, tick) in (0..60u64).zip([2u64, 3, 250, 1000].into_iter().cycle()) {
        let n = 2 + seed % 19;
        let tree = shaped(&["path", "random", "random"], n, seed);
        let flits = lengths(n, |i| (i * 7 + seed * 13) % 9);
        let operations = [
            Algorithm::FARTHEST_FIRST,
            Algorithm::CERTIFICATION_SERIAL,
            Algorithm::CERTIFICATION_PIPELINED,
        ];
        let unit = (&Model::unit(tree.len()), &Timing::LOCK_STEP);
        assert_steps(&tree, &flits, &operations, unit, 1);
        let model = Model::alike(tree.len(), link(0.0, 0.0, tick as f64));
        let timing = Timing::of(&model, 1, Pacing::Scheduled);
        assert_steps(&tree, &flits, &operations[..2], (&model, &timing), tick);
    }
}

/// Returns the steps of a scatter or a gather over unit links if P0 has a port for each child.
fn steps_by_all_ports(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) -> u64 {
    let mut timing = Timing::LOCK_STEP;
    timing.all_ports = true;
    let model = Model {
        ports: Ports::PerEdge,
        own_links: true,
        ..Model::unit(tree.len())
    };
    let schedules = operation.schedules(tree, flits, &timing);
    let only_root = tree.pes().filter(|pe| schedules[pe.index()].all_ports);
    assert_eq!(only_root.collect::<Vec<_>>(), [tree.root()]);
    let predicted = predict(tree, &schedules, &model).unwrap();
    let arrived = predicted.arrivals_ns.iter().map(Option::is_some);
    let expected = flits.iter().map(|flits| *flits > 0);
    assert!(arrived.eq(expected), "{flits:?}");
    predicted.round_ns()
}

/// On unit links, a round with a port of P0 for each child takes as many steps as the plan: of a
/// scatter the time of its slowest branch, of a gather that of spec-exchange, section 7.
#[test]
fn rounds_by_all_ports_take_the_steps_of_their_plans() {
    let gather = Algorithm::CERTIFICATION_MULTI_PORT;
    let golden: [(&str, &[u64], u64); 3] = [
        ("path:6", &[0, 2, 3, 0, 2, 1], 20),
        ("star:9", &lengths(9, |_| 4), 7),
        ("kary:2:15", &lengths(15, |_| 3), 28),
    ];
    for (spec, flits, steps) in golden {
        let tree = tree(spec);
        assert_eq!(steps_of_gather_on_a_tree(&tree, flits), steps, "{spec}");
        assert_eq!(steps_by_all_ports(&tree, gather, flits), steps, "{spec}");
    }
    let mut sooner = 0;
    for (seed, mut random, n, tree) in random_trees(80, &["random"], [2, 20]) {
        let flits = lengths(n, |_| random.below(9));
        let planned = plan_scatter_by_branch(&tree, &flits);
        let planned = planned.iter().map(|message| message.arrival_step).max();
        let scatter = steps_by_all_ports(&tree, Algorithm::FARTHEST_FIRST, &flits);
        assert_eq!(scatter, planned.unwrap_or(0), "seed {seed}");
        let one_port = sim::run(&tree, Algorithm::FARTHEST_FIRST, &flits).unwrap();
        sooner += usize::from(scatter < one_port.time_steps());
        let planned = steps_of_gather_on_a_tree(&tree, &flits);
        let took = steps_by_all_ports(&tree, gather, &flits);
        assert_eq!(took, planned, "seed {seed}: {flits:?}");
    }
    assert!(sooner > 20, "{sooner}");
}

/// Edges of all kinds, whose every flit of 64 bytes takes a whole number of ticks.
fn edges(pes: usize, seed: u64) -> Vec<Edge> {
    let mut random = SplitMix64::new(seed);
    let mut next = || {
        let [latency, setup] = [500, 200].map(|most| random.below(most) as f64);
        link(latency, setup, (1 + random.below(12)) as f64 / 4.0)
    };
    let edge = |_| Edge {
        down: next(),
        up: next(),
    };
    (0..pes).map(edge).collect()
}

/// Simulates the flits of a scatter one by one over links of any rate and latency, from the rules
/// of the model alone. A PE forwards flits in the order of arrival and receives the next when the
/// last has departed; a port sends one at a time.
fn scatter_flit_by_flit(tree: &Tree, order: &[PeId], bytes: &[u64], edges: &[Edge]) -> Vec<f64> {
    let mut send_free = vec![0f64; tree.len()];
    let mut receive_free = vec![0f64; tree.len()];
    let mut handed_over = vec![0f64; tree.len()];
    let mut arrivals = vec![0f64; tree.len()];
    for &pe in order {
        let way = tree.way_to(pe);
        let mut left = bytes[pe.index()];
        while left > 0 {
            let flit = left.min(64);
            left -= flit;
            let mut here = 0f64;
            for hop in way.windows(2) {
                let (from, to) = (hop[0].index(), hop[1].index());
                let link = edges[to].down;
                let takes = link.setup_ns + link.ns_per_byte * flit as f64;
                handed_over[from] = here.max(send_free[from]);
                send_free[from] = handed_over[from] + takes;
                let there = send_free[from] + link.latency_ns;
                receive_free[to] = there.max(receive_free[to] + takes);
                here = receive_free[to].max(handed_over[to]);
            }
            arrivals[pe.index()] = here;
        }
    }
    arrivals
}

#[test]
fn real_links_give_the_times_of_a_flit_by_flit_simulation() {
    for seed in 0..200u64 {
        let n = 2 + seed % 15;
        let tree = shaped(&["random"], n, seed);
        let bytes = lengths(n, |i| 16 * ((i * 31 + seed * 17) % 40));
        let model = Model {
            edges: edges(tree.len(), seed),
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, 64, Pacing::Scheduled);
        let schedules = Algorithm::FARTHEST_FIRST.schedules(&tree, &bytes, &timing);
        let predicted = predict(&tree, &schedules, &model).unwrap();
        let order: Vec<PeId> = schedules[0].sends.iter().map(|m| m.pe()).collect();
        let simulated = scatter_flit_by_flit(&tree, &order, &bytes, &model.edges);
        let arrivals: Vec<f64> = arrivals(&predicted).iter().map(|ns| *ns as f64).collect();
        assert_eq!(arrivals, simulated, "seed {seed}");
    }
}

#[test]
fn every_pacing_of_every_gather_brings_every_message() {
    for seed in 0..40u64 {
        let n = 2 + seed % 11;
        let tree = shaped(&["random"], n, seed);
        let bytes = lengths(n, |i| 100 * ((i * 31 + seed * 17) % 60));
        let own_links = seed % 2 == 0;
        let model = Model {
            edges: edges(tree.len(), seed),
            ahead_ns: 100.0,
            own_links,
            ports: [Ports::Single, Ports::PerEdge][usize::from(own_links)],
            ..Model::unit(tree.len())
        };
        let operations = [
            Algorithm::CERTIFICATION_SERIAL,
            Algorithm::CERTIFICATION_PIPELINED,
            Algorithm::CERTIFICATION_MULTI_PORT,
        ];
        for operation in and_of_paths(&tree, &operations) {
            for pacing in [Pacing::Scheduled, Pacing::Turns, Pacing::Eager] {
                let timing = Timing::of(&model, 64, pacing);
                let run = predicted(operation, &tree, &bytes, &model, &timing);
                for (arrival, bytes) in run.arrivals_ns.iter().zip(&bytes) {
                    assert_eq!(arrival.is_some(), *bytes > 0, "{operation:?} {pacing:?}");
                }
            }
        }
    }
}

/// A machine whose only cost is a nanosecond for each byte that is sent or received.
fn machine(cores: u32, wake_ns: f64) -> Host {
    Host {
        shared_cores: Some(cores),
        wake_ns,
        send_ns_per_byte: 1.0,
        receive_ns_per_byte: 1.0,
        ..Host::NONE
    }
}

/// Returns the duration of a gather on a star whose wires take no time.
fn gathered_on(hosts: impl Fn(&Tree) -> Hosts) -> u64 {
    let tree = tree("star:8");
    let bytes = lengths(8, |_| 64_000);
    let model = Model {
        hosts: hosts(&tree),
        ports: Ports::PerEdge,
        ahead_ns: f64::INFINITY,
        ..Model::alike(tree.len(), Link::default())
    };
    let timing = Timing::of(&model, 1_000, Pacing::Eager);
    let operation = Algorithm::CERTIFICATION_PIPELINED;
    predicted(operation, &tree, &bytes, &model, &timing).round_ns()
}

#[test]
fn a_busy_program_takes_its_share_of_the_cores() {
    let beside = |busy_threads, cores| {
        gathered_on(|_| {
            Hosts::one(Host {
                busy_threads,
                send_ns_per_byte: 100.0,
                receive_ns_per_byte: 100.0,
                ..machine(cores, 0.0)
            })
        }) as f64
    };
    let alone = beside(0, 1);
    // 45 ms of work of all PEs on one core, of which another program has a small share, and 45 ms of P0
    // alone, which it shares evenly.
    let share = beside(1, 1) / alone;
    assert!((1.3..1.6).contains(&share), "{share}");
    // On two cores, it takes at most as much as P0, and nothing where P0 alone has work.
    let share = beside(1, 2) / beside(0, 2);
    assert!((1.02..1.5).contains(&share), "{share}");
    assert_eq!(beside(1, 64), beside(0, 64), "there are cores for all");
}

#[test]
fn one_core_does_all_of_the_work_one_after_the_other() {
    let one_core = |_: &Tree| Hosts::one(machine(1, 0.0));
    assert_eq!(gathered_on(one_core), 2 * 7 * 64_000);
}

/// A process that stores bytes until it sends them moves them to memory and back once more.
#[test]
fn held_bytes_cost_a_core_unless_they_stay_in_a_cache() {
    let tree = tree("star:8");
    let took = |algorithm: &str, bytes: u64, first_ns: f64| {
        let model = Model {
            hosts: Hosts::one(Host {
                first_ns,
                ..machine(1, 0.0)
            }),
            ports: Ports::PerEdge,
            ahead_ns: f64::INFINITY,
            ..Model::alike(tree.len(), Link::default())
        };
        let algorithm = algorithm.parse().expect("an algorithm");
        let one = OnNetwork::new(arena("complete:8"), algorithm).expect("it suits");
        let operation = Algorithm::gossip_on(one);
        let bytes = vec![bytes; operation.collective().deliveries(&tree)];
        let timing = Timing::of(&model, 128 << 10, Pacing::Eager);
        predicted(operation, &tree, &bytes, &model, &timing).round_ns() as f64
    };
    let ratio =
        |bytes, first_ns| took("circulate", bytes, first_ns) / took("direct", bytes, first_ns);
    let (later, first) = (|bytes| ratio(bytes, 0.0), |bytes| ratio(bytes, 1.0));
    assert_eq!(later(128 << 10), 1.0);
    // Six of seven copies are stored.
    let stored = later(8 << 20);
    assert!((1.3..1.0 + HELD_BYTE_COST).contains(&stored), "{stored}");
    assert!(later(32 << 20) > stored, "some of it is in a file");
    // A first round gets its memory from the kernel, except for a little.
    assert!(first(8 << 20) > 1.2 * stored);
    assert!(first(256 << 10) > 1.2 * later(256 << 10));
    let little = first(8 << 10);
    assert!((0.99..1.01).contains(&little), "{little}");
}

/// P0 receives from seven machines, which are all faster, or one of them much slower.
#[test]
fn machines_share_no_cores_and_cost_each_their_own() {
    let apart = |slow: f64| {
        gathered_on(|tree| {
            let machines = tree.ids().map(|pe| Host {
                send_ns_per_byte: if pe.0 == 7 { slow } else { 0.1 },
                ..machine(1, 0.0)
            });
            Hosts::new(machines.collect(), (0..tree.len()).collect(), tree)
        })
    };
    let took = apart(0.1);
    assert!((7 * 64_000..7 * 64_000 + 200).contains(&took), "{took}");
    let took = apart(20.0);
    assert!((20 * 64_000..21 * 64_000).contains(&took), "{took}");
}

/// Each PE wakes up at least for its order and for its transmission; P0 does not wake up for each
/// message.
#[test]
fn waking_up_takes_a_core() {
    let [more, less] = [1_000.0, 0.0].map(|wake| gathered_on(|_| Hosts::one(machine(1, wake))));
    let more = more - less;
    assert!((14_000..40_000).contains(&more), "{more}");
}

/// A relay acknowledges received data through the port by which it forwards the data; with separate
/// ports, the link down carries no acknowledgements.
#[test]
fn acknowledgements_share_the_port_of_data_in_their_direction() {
    let tree = tree("path:3");
    let took = |ports, acknowledged| {
        let model = Model {
            ports,
            acknowledged,
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, 100, Pacing::Eager);
        let operation = Algorithm::BROADCAST_ROUNDS;
        let bytes = [0, 10_000, 10_000];
        predicted(operation, &tree, &bytes, &model, &timing).round_ns()
    };
    for ports in [Ports::Single, Ports::PerEdge] {
        assert_eq!(took(ports, 0.0), 10_100);
    }
    // The acknowledgements of all flits but the last, which arrives before the last one departs,
    // delay the forwarded flits.
    assert_eq!(took(Ports::Single, 0.1), 10_100 + 100 * 10);
    assert_eq!(took(Ports::PerEdge, 0.1), 10_100);
}

/// Both PEs are woken to begin, and then wait for each other's message.
#[test]
fn a_pe_polls_for_a_short_message_before_it_sleeps() {
    let tree = tree("path:2");
    let took = |wake_ns, latency_ns, bytes| {
        let host = Host {
            shared_cores: Some(2),
            wake_ns,
            ..Host::NONE
        };
        let model = Model {
            ports: Ports::PerEdge,
            hosts: Hosts::one(host),
            ..Model::alike(tree.len(), link(latency_ns, 0.0, 0.0))
        };
        let operation = Algorithm::GOSSIP_FLOOD;
        let timing = Timing::of(&model, 1 << 20, Pacing::Eager);
        let bytes = vec![bytes; operation.collective().deliveries(&tree)];
        predicted(operation, &tree, &bytes, &model, &timing).round_ns()
    };
    let (short, long) = (1 << 10, 1 << 20);
    assert_eq!(took(20_000.0, 25_000.0, short), 45_000 + 1_200);
    let quick = took(1_000.0, 25_000.0, short);
    assert_eq!(quick, 26_000 + 1_000, "to be woken takes less");
    let late = took(20_000.0, 90_000.0, short);
    assert_eq!(late, 110_000 + 20_000, "it has given up looking");
    assert_eq!(took(20_000.0, 25_000.0, long), 45_000 + 20_000);
}

/// Flits that cross an edge together wait for each other at each edge of their way, and in a static
/// schedule before each earlier message; this bounds the error of a prediction in pieces.
#[test]
fn pieces_of_several_flits_are_predicted_as_their_flits_within_a_bound() {
    for seed in 0..18u64 {
        let n = 2 + seed % 9;
        let tree = shaped(&["random"], n, seed);
        let mut random = SplitMix64::new(seed);
        let model = Model {
            edges: edges(tree.len(), seed),
            ..Model::unit(tree.len())
        };
        let flit_ns = |link: &Link| link.occupied_ns(1, 64) + link.latency_ns;
        let links = model.edges.iter().flat_map(|edge| [&edge.down, &edge.up]);
        let slowest = links.map(flit_ns).fold(0.0, f64::max);
        let timing = Timing::of(&model, 64, Pacing::Eager);
        for operation in [
            Algorithm::FARTHEST_FIRST,
            Algorithm::CERTIFICATION_PIPELINED,
            Algorithm::BROADCAST_ROUNDS,
            Algorithm::BROADCAST_URGENT,
            Algorithm::GOSSIP_FLOOD,
            Algorithm::EXCHANGE_TREE,
        ] {
            let flits: Vec<u64> = (0..n).map(|_| 20 + random.below(30)).collect();
            let bytes = (0..operation.collective().deliveries(&tree) as u64).map(|delivery| {
                let (from, to) = (delivery / n, delivery % n);
                64 * flits[from as usize] * u64::from(from != to)
            });
            let bytes: Vec<u64> = bytes.collect();
            let schedules = operation.schedules(&tree, &bytes, &timing);
            let in_pieces = |flits| {
                let given_up = AtomicBool::new(false);
                let state =
                    PredictionState::run_to_end(&given_up, &tree, &schedules, &model, flits);
                state.unwrap().prediction().round_ns() as f64
            };
            let exact = in_pieces(1);
            let waits = if operation.is_static() { n * n } else { n };
            for flits in [2, 5, 11] {
                let off = (in_pieces(flits) - exact).abs();
                let case = format!("{operation:?}, {flits}, seed {seed}: {off} of {exact}");
                assert!(off <= (flits * waits) as f64 * slowest, "{case}");
            }
        }
    }
}
