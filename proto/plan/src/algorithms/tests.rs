use std::collections::BTreeSet;
use std::sync::Arc;

use flitcast_proto::items::{
    Control, Message, MessageFault, Packing, Route, ScheduledHop, Transmit, Violation,
};
use flitcast_proto::ops::{Collective, Direction, PeMachine, PeSchedule};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::{DeliveryId, DeliveryName, MessageId, PeId, Time, Tree};

use super::plan::plan;
use super::{Algorithm, OnNetwork};
use crate::cost::{Model, Ports};
use crate::predict::predict;
use crate::sim;
use crate::tests::{arena, arrivals, flits_of, predicted, tree};
use crate::timing::Timing;
use crate::trace::Item;

/// Random trees and lengths, some of which are 0.
fn cases() -> impl Iterator<Item = (u64, Arc<Tree>, Vec<u64>)> {
    (0..200).map(|seed| {
        let mut random = SplitMix64::new(seed);
        let tree = tree(&format!("random:{}:{seed}", 1 + random.below(30)));
        let lengths = tree.ids().map(|pe| match pe {
            PeId::ROOT => 0,
            _ => random.below(7),
        });
        let lengths = lengths.collect();
        (seed, tree, lengths)
    })
}

/// The plan, every crossing of the simulation, and every arrival are equal, and so are predictions on unit
/// links. On other links a PE with a static schedule may be earlier, since it sends while it receives.
#[test]
fn a_scatter_by_a_list_takes_the_steps_of_the_one_that_is_not() {
    for (seed, tree, flits) in cases() {
        let model = Model::unit(tree.len());
        let timing = Timing::of(&model, 1, Pacing::Scheduled);
        let [fdf, listed] =
            [Algorithm::FARTHEST_FIRST, Algorithm::LISTED_SCATTER].map(|operation| {
                let plan = plan(&tree, operation, &flits);
                let run = sim::run(&tree, operation, &flits).unwrap();
                let free = predicted(operation, &tree, &flits, &model, &timing);
                let planned = (plan.messages, plan.time_steps, plan.lower_bound_steps);
                let simulated = (run.crossings, run.arrival_steps);
                (planned, simulated, free.arrivals_ns, free.visible_ns)
            });
        assert_eq!(listed, fdf, "seed {seed}");
    }
}

/// Returns P1 of a path of three PEs with this static schedule.
fn listed(hops: Vec<ScheduledHop>) -> PeMachine {
    let tree = tree("path:3");
    let schedules = Algorithm::LISTED_SCATTER.schedules(&tree, &[0, 1, 1], &Timing::LOCK_STEP);
    let schedule = PeSchedule {
        hops,
        ..schedules[1].clone()
    };
    PeMachine::new(tree, PeId(1), schedule)
}

fn hop(message: u64, from: u32, to: u32, first_step: u64) -> ScheduledHop {
    let ends = [PeId(from), PeId(to)];
    super::timetable::hop(MessageId(message), ends, [0, 1], first_step)
}

fn message_for(pe: u32) -> Message {
    Message::between(PeId::ROOT, PeId(pe), 1)
}

/// A message that is not forwarded in the next step is held until its own step.
#[test]
fn a_list_may_have_a_message_held() {
    let mut pe = listed(vec![hop(2, 0, 1, 1), hop(1, 0, 1, 2), hop(2, 1, 2, 4)]);
    let (own, passing) = (message_for(1), message_for(2));
    assert_eq!(pe.handle_head(PeId::ROOT, passing), Ok(Route::hold()));
    pe.handle_received(PeId::ROOT);
    assert_eq!(pe.poll_transmit(Time(1)), None, "its step is the fourth");
    assert_eq!(pe.poll_timeout(), Some(Time(3)));
    assert_eq!(pe.handle_head(PeId::ROOT, own), Ok(Route::deliver()));
    let sent = Transmit::Part {
        to: PeId(2),
        message: passing,
        bytes: [0, 1],
        later_from: u64::MAX,
        packing: Packing::Flits,
    };
    let now = pe.poll_transmit(Time(3));
    assert_eq!(now, Some(sent), "while another comes in");
}

/// In dissemination among four PEs, P2 sends its message to P1, and then to P0 with that of P3.
#[test]
fn short_messages_to_one_neighbour_wait_for_each_other() {
    let tree = tree("star:4");
    let mut all = Algorithm::ALL.into_iter();
    let operation = all.find(|it| it.name() == "dissemination").unwrap();
    let model = Model {
        ports: Ports::PerEdge,
        ..Model::unit(4)
    };
    let timing = Timing::of(&model, 1 << 20, Pacing::Scheduled);
    for (bytes, waits) in [(1000, true), (100_000, false)] {
        let lengths = vec![bytes; operation.collective().deliveries(&tree)];
        let schedule = operation.schedules(&tree, &lengths, &timing)[2].clone();
        let (own, others) = (schedule.sends[0], schedule.receives[2]);
        let mut pe = PeMachine::new(tree.clone(), PeId(2), schedule);
        let sends = |pe: &mut PeMachine| match pe.poll_transmit(Time(0)) {
            Some(Transmit::Part { to, message, .. }) => {
                pe.handle_sent();
                Some((to, message))
            }
            _ => None,
        };
        pe.handle_trigger(Time(0));
        assert_eq!(sends(&mut pe), Some((PeId(1), own)));
        let at_once = Some((PeId(0), own));
        assert_eq!(sends(&mut pe), at_once.filter(|_| !waits));
        pe.handle_head(PeId(3), others).unwrap();
        pe.handle_received(PeId(3));
        let with_others = Some((PeId(0), others));
        assert_eq!(sends(&mut pe), at_once.filter(|_| waits).or(with_others));
        assert_eq!(sends(&mut pe), with_others.filter(|_| waits));
    }
}

#[test]
fn crossings_that_are_not_next_in_the_list_are_refused() {
    let mut pe = listed(vec![hop(2, 0, 1, 1), hop(2, 1, 2, 2), hop(1, 0, 1, 2)]);
    let (from, message) = (PeId::ROOT, message_for(1));
    let refused = Err(MessageFault::OutOfTurn.by(from, message));
    assert_eq!(pe.handle_head(from, message), refused);
}

/// Names are unique, and the role of each algorithm serves its collective.
#[test]
fn no_two_entries_are_alike() {
    let all = Algorithm::ALL;
    let names = all.map(|one| (one.collective().name(), one.name(), one.sync()));
    assert_eq!(BTreeSet::from(names).len(), all.len());
    for one in all {
        assert!(one.role().serves(one.collective()), "{one:?}");
    }
}

/// Returns all algorithms for gossip and exchange on trees that may lack PEs.
fn across() -> impl Iterator<Item = (u64, Arc<Tree>, Algorithm, Vec<u64>)> {
    let all = Algorithm::ALL.into_iter();
    let all = all.filter(|operation| operation.collective().direction() == Direction::Across);
    let all: Vec<Algorithm> = all.collect();
    let of_any_size = (0..60).map(move |seed| {
        let pes = 2 + SplitMix64::new(seed).below(9);
        case(seed, pes, all[seed as usize % all.len()], 5)
    });
    of_any_size.chain(on_networks())
}

/// Returns all algorithms for networks; with an absent PE they use a ring of the present PEs.
fn on_networks() -> impl Iterator<Item = (u64, Arc<Tree>, Algorithm, Vec<u64>)> {
    let ways = [
        ("ring:3", "approach1"),
        ("ring:8", "approach1"),
        ("ring:7", "halves"),
        ("ring:10", "approach2:3"),
        ("ring:12", "circgos:4,3,2"),
        ("ring:9", "cubgos"),
        ("array:7", "approach1"),
        ("array:10", "circgos:3,4,3"),
        ("mesh:2x3", "approach1"),
        ("mesh:3x4", "approach2:2"),
        ("mesh:2x2x3", "phases:2,2,1/1,2,1/1,3,2"),
        ("torus:3x4", "approach1"),
        ("torus:4x4", "torgos:2;2;1"),
        ("torus:3x3", "cubgos"),
        ("torus:3x3x3", "cubgos"),
        ("complete:5", "approach1"),
        ("complete:6", "neighbour"),
        ("complete:7", "dissemination:2"),
        ("complete:5", "circulate"),
        ("complete:4", "direct"),
    ];
    // Each algorithm with all PEs, and then with one absent.
    let seeds = (0..ways.len() as u64).flat_map(|way| [(way, 3 * way + 1), (way, 3 * way)]);
    seeds.map(move |(way, seed)| {
        let (network, algorithm) = ways[way as usize];
        let pes = arena(network).pes();
        case(seed, pes as u64, on_network(network, algorithm), 9)
    })
}

fn on_network(network: &str, algorithm: &str) -> Algorithm {
    let one = OnNetwork::new(arena(network), algorithm.parse().unwrap()).unwrap();
    Algorithm::gossip_on(one)
}

/// Returns lengths below `longest`, some of them 0.
fn case(
    seed: u64,
    pes: u64,
    operation: Algorithm,
    longest: u64,
) -> (u64, Arc<Tree>, Algorithm, Vec<u64>) {
    let mut random = SplitMix64::new(seed);
    let mut tree = tree(&format!("random:{pes}:{seed}"));
    if seed.is_multiple_of(3) {
        let dead = PeId(1 + random.below(pes - 1) as u32);
        tree = Arc::new(tree.without(&[dead], |_, _| true).tree);
    }
    let mut flits = vec![0; operation.collective().deliveries(&tree)];
    for message in operation.collective().messages(&tree) {
        let length = random.below(longest).saturating_sub(1);
        for at in message.ends(&tree) {
            let is_there = tree.contains(message.source) && tree.contains(at);
            let delivery = operation.collective().delivery(&tree, message.id, at);
            flits[delivery.index()] = length * u64::from(is_there);
        }
    }
    (seed, tree, operation, flits)
}

/// If packets are whole blocks, no port idles: a port receives a block of each other PE.
#[test]
fn circulating_blocks_take_as_long_as_one_receive_port() {
    for (network, algorithm) in [
        ("ring:7", "approach1"),
        ("ring:8", "halves"),
        ("complete:6", "neighbour"),
        ("complete:9", "dissemination"),
    ] {
        let operation = on_network(network, algorithm);
        let pes = arena(network).pes();
        let tree = tree(&format!("star:{pes}"));
        let flits = operation.collective().by_delivery(&tree, &vec![24; pes]);
        let run = sim::run(&tree, operation, &flits).unwrap();
        let last = run.arrival_steps.iter().max().copied();
        assert_eq!(last, Some(24 * (pes as u64 - 1)), "{network}, {algorithm}");
    }
}

/// In lock step PEs follow the schedule as planned, and everything arrives.
#[test]
fn gossip_and_exchange_are_played_as_planned() {
    for (seed, tree, operation, flits) in across() {
        let hops = operation.hops(&tree, &flits, &Timing::LOCK_STEP);
        let planned = BTreeSet::from_iter(flits_of(&hops));
        let run = sim::run(&tree, operation, &flits).unwrap();
        let crossed = run.crossings.iter().filter_map(|it| match it.item {
            Item::Flit { message, index } => {
                Some((it.step, it.from, it.to, (message.id, index - 1)))
            }
            Item::Control(_) => None,
        });
        let crossed: BTreeSet<_> = crossed.collect();
        assert_eq!(crossed, planned, "seed {seed}: {operation:?} on {tree:?}");
        let arrived = run.arrival_steps.iter().map(|step| *step > 0);
        let expected = flits.iter().map(|flits| *flits > 0);
        assert!(arrived.eq(expected), "seed {seed}: {operation:?}");
    }
}

/// On unit links no PE is later than in lock step, where each port has its order.
#[test]
fn gossip_and_exchange_run_freely_as_fast_as_in_lock_step() {
    let at_once = Algorithm::EXCHANGE_AT_ONCE;
    for (seed, tree, operation, flits) in across().filter(|(_, _, it, _)| *it != at_once) {
        let lock_step = sim::run(&tree, operation, &flits).unwrap();
        let model = Model {
            control_bytes: 0,
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, 1, Pacing::Scheduled);
        let free = predicted(operation, &tree, &flits, &model, &timing);
        for (step, arrival) in lock_step.arrival_steps.iter().zip(arrivals(&free)) {
            let case = format!("seed {seed}: {operation:?}: {arrival} for {step}");
            assert!(arrival <= *step && (arrival > 0) == (*step > 0), "{case}");
        }
    }
}

/// With a port for each neighbour everything arrives, on unit links no later than planned, and more
/// ports are faster.
#[test]
fn all_ports_are_used_at_once() {
    let mut sooner = 0;
    for (seed, tree, operation, flits) in across().filter(|(_, _, it, _)| it.has_all_ports()) {
        let model = |own_links| Model {
            control_bytes: 0,
            ports: Ports::PerEdge,
            own_links,
            ..Model::unit(tree.len())
        };
        let ends = [true, false].map(|own_links| {
            let model = model(own_links);
            let timing = Timing::of(&model, 1, Pacing::Scheduled);
            let schedules = operation.schedules(&tree, &flits, &timing);
            assert!(schedules.iter().all(|it| it.all_ports == own_links));
            let run = predict(&tree, &schedules, &model).unwrap();
            let arrived = run.arrivals_ns.iter().map(Option::is_some);
            let expected = flits.iter().map(|flits| *flits > 0);
            assert!(arrived.eq(expected), "seed {seed}: {operation:?}");
            let planned = flits_of(&operation.hops(&tree, &flits, &timing));
            (run.round_ns(), planned.last().map_or(0, |last| last.0))
        });
        let [(at_once, planned), (one_by_one, _)] = ends;
        let case = format!("seed {seed}: {operation:?}: {at_once} for {planned}");
        assert!(at_once <= planned, "{case}");
        sooner += usize::from(at_once < one_by_one);
    }
    assert!(sooner > 10, "{sooner}");
}

/// For any lengths, crossings are only between connected PEs.
#[test]
fn lists_name_none_but_neighbours() {
    for (seed, tree, operation, flits) in across() {
        for own_links in [true, false] {
            let model = Model {
                own_links,
                ..Model::unit(tree.len())
            };
            let timing = Timing::of(&model, 1, Pacing::Scheduled);
            for hop in operation.hops(&tree, &flits, &timing) {
                for [one, other] in [[hop.from, hop.to], [hop.to, hop.from]] {
                    let neighbours = operation.neighbours(&tree, one);
                    assert!(neighbours.contains(&other), "{seed} {operation:?}: {hop:?}");
                }
            }
        }
    }
}

/// Delivery numbers lead back to message and PE, names to the numbers, and every end of every
/// message has its own number.
#[test]
fn deliveries_have_numbers_and_names() {
    let parents = [Some(PeId(1)), Some(PeId(2)), None, None, Some(PeId(2))];
    let tree = Tree::with_absent(PeId(2), parents.to_vec()).unwrap();
    for collective in Collective::ALL {
        let mut met = BTreeSet::new();
        for message in collective.messages(&tree) {
            for at in message.ends(&tree) {
                let delivery = collective.delivery(&tree, message.id, at);
                assert!(delivery.index() < collective.deliveries(&tree));
                let delivered = collective.delivered(&tree, delivery);
                assert_eq!(delivered, Some((message, at)));
                let name = collective.delivery_name(&tree, delivery);
                assert_eq!(collective.delivery_named(&tree, name), Some(delivery));
                let is_there = tree.contains(message.source) && tree.contains(at);
                assert_eq!(collective.can_deliver(&tree, delivery), is_there);
                assert!(met.insert(delivery), "{collective:?}: {delivery:?}");
            }
        }
        for none in [collective.deliveries(&tree) as u32, u32::MAX] {
            assert_eq!(collective.delivered(&tree, DeliveryId(none)), None);
        }
    }
}

#[test]
fn a_delivery_is_called_by_its_ends() {
    let tree = tree("star:8");
    let name = |collective: Collective, delivery| {
        let delivery = DeliveryId(delivery);
        let name = collective.delivery_name(&tree, delivery).to_string();
        (name, collective.row(&tree, delivery).0)
    };
    for one in [
        Collective::Scatter,
        Collective::Gather,
        Collective::Broadcast,
    ] {
        assert_eq!(name(one, 3), ("P3".to_owned(), 3));
    }
    let named = |row, source: Option<u32>| DeliveryName {
        row: PeId(row),
        source: source.map(PeId),
    };
    for one in [Collective::Gossip, Collective::Exchange] {
        assert_eq!(name(one, 2 * 8 + 5), ("P2's at P5".to_owned(), 5));
        assert_eq!(one.delivered(&tree, DeliveryId(2 * 8 + 2)), None);
        assert_eq!(one.delivery_named(&tree, named(2, Some(2))), None);
    }
    let alone = Collective::Gossip.delivery_named(&tree, named(5, None));
    assert_eq!(alone, None);
}

/// Conversion between lengths by message and lengths by delivery works in both directions.
#[test]
fn lengths_are_given_by_message_and_kept_by_delivery() {
    let tree = tree("star:3");
    let gossip = Collective::Gossip;
    let bytes = gossip.by_delivery(&tree, &[7, 0, 9]);
    assert_eq!(bytes, [0, 7, 7, 0, 0, 0, 9, 9, 0]);
    assert_eq!(gossip.by_message(&tree, &bytes), [7, 0, 9]);
    assert_eq!(gossip.total(&tree, &bytes), 16);
    assert_eq!(gossip.moved_by_pe(&tree, &bytes), [16, 16, 16]);
    let exchange = Collective::Exchange;
    let given = [0, 1, 2, 3, 0, 4, 5, 6, 0];
    let bytes = exchange.by_delivery(&tree, &given);
    assert_eq!(bytes, given);
    assert_eq!(exchange.by_message(&tree, &bytes), given);
    assert_eq!(exchange.moved_by_pe(&tree, &bytes), [11, 14, 17]);
    let gather = Collective::Gather;
    let bytes = gather.by_delivery(&tree, &[4, 5]);
    assert_eq!(bytes, [0, 4, 5]);
    assert_eq!(gather.by_message(&tree, &bytes), [4, 5]);
    assert_eq!(gather.moved_by_pe(&tree, &bytes), [9, 4, 5]);
}

/// Short messages of a scatter leave no faster than the link of one network card carries them; long ones
/// are limited by the buffers of sockets, and processes of one machine by nothing.
#[test]
fn a_scatter_of_short_messages_is_paced_on_a_network_card() {
    let tree = tree("star:4");
    let paced = |bytes: u64, ports: Ports| {
        let model = Model {
            ports,
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, 1000, Pacing::Eager);
        let schedules = Algorithm::FARTHEST_FIRST.schedules(&tree, &[bytes; 4], &timing);
        schedules[0].in_turns
    };
    assert!(paced(64 << 10, Ports::Single));
    assert!(!paced(1 << 20, Ports::Single));
    assert!(!paced(64 << 10, Ports::PerEdge));
}

/// In turns a PE sends only after a call, and the next sender is called when little is left of the
/// called streams, so that two streams may arrive at once.
#[test]
fn in_turns_a_list_is_played_by_calls() {
    let tree = tree("star:4");
    let operation = Algorithm::EXCHANGE_SHIFTS;
    let model = Model::unit(tree.len());
    let timing = Timing::of(&model, 10, Pacing::Turns);
    let mut schedule = operation
        .schedules(&tree, &[100; 16], &timing)
        .swap_remove(0);
    schedule.pace.ahead_bytes = 10;
    let mut pe = PeMachine::new(tree.clone(), PeId(0), schedule);
    let now = Time(0);
    let call = Control::Wakeup { after: 1 };
    pe.handle_trigger(Time(5));
    assert_eq!(pe.poll_interjection(now), None, "it is not time yet");
    assert_eq!(pe.poll_timeout(), Some(Time(5)));
    let now = Time(5);
    assert_eq!(pe.poll_interjection(now), Some((PeId(3), call)));
    assert_eq!(pe.poll_interjection(now), None);
    assert_eq!(pe.poll_transmit(now), None, "nobody has called");
    pe.handle_control(now, PeId(1), call).unwrap();
    let sent = pe.poll_transmit(now);
    let is_sent = matches!(sent, Some(Transmit::Part { to: PeId(1), .. }));
    assert!(is_sent, "{sent:?}");
    let again = pe.handle_control(now, PeId(1), call);
    assert!(matches!(again, Err(Violation::UnexpectedControl { .. })));

    let message = |from| {
        let id = super::exchange_plan::message(PeId(from), PeId(0), tree.len());
        Message {
            id,
            ..Message::between(PeId(from), PeId(0), 100)
        }
    };
    let uncalled = pe.handle_head(PeId(2), message(2));
    let fault = MessageFault::OutOfTurn;
    assert!(matches!(uncalled, Err(Violation::Message { fault: found, .. }) if found == fault));
    assert_eq!(pe.handle_head(PeId(3), message(3)), Ok(Route::deliver()));
    pe.handle_taken(PeId(3), 80);
    assert_eq!(pe.poll_interjection(now), None);
    assert_eq!(pe.awaits_bytes(), Some(10));
    pe.handle_arriving(10);
    assert_eq!(pe.poll_interjection(now), Some((PeId(2), call)));
    assert_eq!(pe.handle_head(PeId(2), message(2)), Ok(Route::deliver()));
    assert!(pe.listens_to(PeId(3)));
}
