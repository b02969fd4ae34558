use std::collections::BTreeSet;
use std::sync::Arc;

use super::listed::legs_in_order;
use super::plan::{plan, plan_scatter};
use super::{Brief, Operation, Pe};
use crate::cost::Model;
use crate::items::{Leg, Message, Route, Transmit, Violation};
use crate::predict::predict;
use crate::schedule::pace::{Pacing, Timing};
use crate::seeded::SplitMix64;
use crate::tree::TreeSpec;
use crate::{MessageId, PeId, Time, Tree, sim};

fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().unwrap();
    Arc::new(spec.build().unwrap())
}

/// Random trees, and lengths of which some are 0.
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

/// The plan, every crossing of the simulation, and every step of arrival.
#[test]
fn a_scatter_by_a_list_takes_the_steps_of_the_one_that_is_not() {
    for (seed, tree, flits) in cases() {
        let [fdf, listed] = [Operation::Scatter, Operation::ListedScatter].map(|operation| {
            let run = sim::run(&tree, operation, &flits).unwrap();
            (plan(&tree, operation, &flits), run)
        });
        assert_eq!(listed.1.crossings, fdf.1.crossings, "seed {seed}");
        assert_eq!(listed.1.arrival_steps, fdf.1.arrival_steps, "seed {seed}");
        assert_eq!(listed.0.messages, fdf.0.messages, "seed {seed}");
        assert_eq!(listed.0.crossings(), fdf.0.crossings(), "seed {seed}");
        assert_eq!(listed.0.time_steps, fdf.0.time_steps, "seed {seed}");
        assert_eq!(listed.0.lower_bound_steps, fdf.0.lower_bound_steps);
    }
}

/// Who plays a list sends while it takes, so on other links than these it may well be earlier.
#[test]
fn a_scatter_by_a_list_is_predicted_as_the_one_that_is_not_on_unit_links() {
    for (seed, tree, flits) in cases() {
        let model = Model::unit(tree.len());
        let timing = Timing::of(&model, 1, Pacing::Scheduled);
        let [fdf, listed] = [Operation::Scatter, Operation::ListedScatter].map(|operation| {
            let briefs = Brief::all(&tree, operation, &flits, &timing);
            predict(&tree, &briefs, &model).unwrap()
        });
        assert_eq!(listed.arrivals_ns, fdf.arrivals_ns, "seed {seed}");
        assert_eq!(listed.visible_ns, fdf.visible_ns, "seed {seed}");
    }
}

/// It is the list that is played: in another order, as the planner has that one.
#[test]
fn a_list_is_played_in_its_order() {
    for (seed, tree, flits) in cases() {
        let mut order: Vec<PeId> = tree.pes().filter(|pe| flits[pe.index()] > 0).collect();
        let mut random = SplitMix64::new(seed);
        order.sort_by_cached_key(|_| random.below(1000));
        let planned = plan_scatter(&tree, &flits, &order);
        let legs = legs_in_order(&tree, &flits, &order);
        let operation = Operation::ListedScatter;
        let mut briefs = Brief::all(&tree, operation, &flits, &Timing::LOCK_STEP);
        for (pe, brief) in tree.ids().zip(&mut briefs) {
            let own = legs.iter().filter(|leg| leg.from == pe || leg.to == pe);
            brief.legs = own.copied().collect();
        }
        let mut crossings = sim::run_briefs(&tree, briefs).unwrap().crossings;
        crossings.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
        assert_eq!(planned.crossings(), crossings, "seed {seed}");
    }
}

/// P1 of a path of three, with this list.
fn listed(legs: Vec<Leg>) -> Pe {
    let tree = tree("path:3");
    let briefs = Brief::all(
        &tree,
        Operation::ListedScatter,
        &[0, 1, 1],
        &Timing::LOCK_STEP,
    );
    let brief = Brief {
        legs,
        ..briefs[1].clone()
    };
    Pe::new(tree, PeId(1), brief)
}

fn leg(message: u64, from: u32, to: u32, first_step: u64) -> Leg {
    Leg {
        offset: 0,
        every: 1,
        message: MessageId(message),
        flits: 1,
        from: PeId(from),
        to: PeId(to),
        first_step,
    }
}

fn message_for(pe: u32) -> Message {
    Message::between(PeId::ROOT, PeId(pe), 1)
}

/// What does not go on in the next step is held, and goes in its own.
#[test]
fn a_list_may_have_a_message_held() {
    let mut pe = listed(vec![leg(2, 0, 1, 1), leg(1, 0, 1, 2), leg(2, 1, 2, 4)]);
    let (own, passing) = (message_for(1), message_for(2));
    assert_eq!(pe.handle_head(PeId::ROOT, passing), Ok(Route::hold()));
    pe.handle_received();
    assert_eq!(pe.poll_transmit(Time(1)), None, "its step is the fourth");
    assert_eq!(pe.poll_timeout(), Some(Time(3)));
    assert_eq!(pe.handle_head(PeId::ROOT, own), Ok(Route::deliver()));
    let sent = Transmit::Part {
        to: PeId(2),
        message: passing,
        bytes: [0, 1],
        is_last: true,
    };
    assert_eq!(
        pe.poll_transmit(Time(3)),
        Some(sent),
        "while another comes in"
    );
}

#[test]
fn what_the_list_does_not_have_next_is_refused() {
    let mut pe = listed(vec![leg(2, 0, 1, 1), leg(2, 1, 2, 2), leg(1, 0, 1, 2)]);
    let (from, message) = (PeId::ROOT, message_for(1));
    let refused = Err(Violation::OutOfTurn { from, message });
    assert_eq!(pe.handle_head(from, message), refused);
}

/// Numbers on the wire and names are each one operation's, and lead back to it.
#[test]
fn no_two_entries_are_alike() {
    let all = Operation::ALL;
    let codes: BTreeSet<i32> = all.into_iter().map(Operation::code).collect();
    assert_eq!(codes.len(), all.len());
    assert!(!codes.contains(&0), "0 is what nobody has said");
    let names: BTreeSet<_> = all
        .into_iter()
        .map(|one| (one.name(), one.algorithm(), one.sync()))
        .collect();
    assert_eq!(names.len(), all.len());
    for operation in all {
        let window = operation.window().unwrap_or(0);
        assert_eq!(
            Operation::from_code(operation.code(), window),
            Some(operation)
        );
    }
    assert_eq!(Operation::from_code(0, 1), None);
}
