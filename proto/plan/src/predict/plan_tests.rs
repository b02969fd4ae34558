//! A run is its plan: on links with only a latency, only a rate or only a set-up time, the state
//! machines of real rounds send the planned flits over the planned arcs, in the planned order and in
//! as many packets, and take the plan's time.

mod cases;

use std::collections::{BTreeMap, BTreeSet};

use cases::{Case, cases};
use flitcast_proto::items::ScheduledHop;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::shape::RUN_AHEAD_NS;
use flitcast_proto::{MessageId, PeId};

use super::*;
use crate::algorithms::Algorithm;
use crate::cost::{Link, Ports};
use crate::on_links::{Load, Sent, course, of_hops};
use crate::tests::link;
use crate::timing::Timing;

const FLIT_BYTES: u32 = 4096;
/// Bytes of a control item: a hundredth of a flit, as on real links.
const CONTROL_BYTES: u64 = 40;
/// The latency, the set-up time or the time of a flit.
const UNIT_NS: f64 = 20e6;
/// Largest difference between the times of a run and its plan, as a fraction of the plan's.
const OFF: f64 = 0.05;

/// The receiver, the message and the flit.
type Flit = (PeId, u64, u64);
/// The flits of each send port, in order.
type OfPorts<T> = BTreeMap<(PeId, Option<PeId>), Vec<T>>;

/// Returns the planned flits of each port step by step.
fn planned_of(planned: &[Sent], multi: bool) -> OfPorts<Vec<Flit>> {
    let mut steps: BTreeMap<_, BTreeMap<u64, Vec<Flit>>> = BTreeMap::new();
    for sent in planned {
        let flits: Vec<Flit> = match &sent.load {
            Load::Control => continue,
            Load::Count(flits) => vec![(sent.to, 0, 0); *flits as usize],
            Load::Flits { flits, .. } => {
                let each = flits
                    .iter()
                    .flat_map(|it| (0..it.flits).map(move |at| (it, at)));
                each.map(|(it, at)| (sent.to, it.message.0, it.offset + at))
                    .collect()
            }
        };
        let port = (sent.from, multi.then_some(sent.to));
        let of_port: &mut BTreeMap<u64, Vec<Flit>> = steps.entry(port).or_default();
        of_port.entry(sent.step).or_default().extend(flits);
    }
    let ports = steps.into_iter();
    let ports = ports.map(|(port, steps)| (port, steps.into_values().collect()));
    ports.collect()
}

/// Returns whether some PE does not receive the flits of a message in order, as a real PE has to.
fn is_out_of_order(planned: &[Sent]) -> bool {
    let mut next: BTreeMap<(PeId, MessageId), u64> = BTreeMap::new();
    let mut planned: Vec<&Sent> = planned.iter().collect();
    planned.sort_by_key(|sent| sent.step);
    planned.into_iter().any(|sent| match &sent.load {
        Load::Flits { flits, .. } => flits.iter().any(|it| {
            let next = next.entry((sent.to, it.message)).or_default();
            let is_late = it.offset < *next;
            *next = it.offset + it.flits;
            is_late
        }),
        Load::Control | Load::Count(_) => false,
    })
}

/// Returns the flits that a run sends over each port, in order, and the number of its packets.
fn sent_of(case: &Case, world: &PredictionState, is_counted: bool) -> (OfPorts<Flit>, u64) {
    let (tree, operation) = (&case.tree, case.operation);
    let (mut sent, mut all): (OfPorts<Flit>, u64) = (BTreeMap::new(), 0);
    for (from, out, packets) in &world.sent {
        all += packets;
        let (whole, part) = operation.collective().whole(tree, out.piece.message.id);
        let address = operation.address(tree, whole).expect("a message");
        let length = operation.collective().length(tree, address, &case.flits);
        let first = out.piece.offset / u64::from(FLIT_BYTES);
        let flit = |at| match is_counted {
            true => (out.to, 0, 0),
            false => (
                out.to,
                whole.0,
                operation.flit_of_part(tree, length, part, at),
            ),
        };
        let port = (*from, case.multi.then_some(out.to));
        let flits = out.piece.bytes.div_ceil(FLIT_BYTES.into());
        let of_port = sent.entry(port).or_default();
        of_port.extend((first..first + flits).map(flit));
    }
    (sent, all)
}

/// Returns the differences between the flits of each port in a run and those that are planned.
fn differences_of(mut sent: OfPorts<Flit>, planned: OfPorts<Vec<Flit>>) -> Vec<String> {
    let mut differences = Vec::new();
    for (port, steps) in planned {
        let mut sent = sent.remove(&port).unwrap_or_default();
        let mut left = &mut sent[..];
        for mut step in steps {
            let (of_step, rest) = left.split_at_mut(step.len().min(left.len()));
            of_step.sort_unstable();
            step.sort_unstable();
            if of_step != step {
                differences.push(format!("{port:?} sends {of_step:?} for {step:?}"));
                break;
            }
            left = rest;
        }
    }
    if sent.values().any(|flits| !flits.is_empty()) {
        differences.push(format!("{sent:?} are not planned"));
    }
    differences
}

/// Returns the PEs whose schedules name other senders than those from which they receive flits.
fn wrong_senders(case: &Case, schedules: &[PeSchedule], world: &PredictionState) -> Vec<String> {
    let mut found: BTreeMap<PeId, BTreeSet<PeId>> = BTreeMap::new();
    for (from, out, _) in &world.sent {
        found.entry(out.to).or_default().insert(*from);
    }
    let named = case.tree.pes().map(|pe| {
        let senders = schedules[pe.index()].senders(&case.tree, pe);
        (pe, senders, found.remove(&pe).unwrap_or_default())
    });
    let wrong = named.filter(|(_, named, found)| named != found);
    let wrong = wrong.map(|(pe, named, found)| format!("{pe}: {named:?} for {found:?}"));
    wrong.collect()
}

/// Returns the static schedule of a round.
fn hops_of(schedules: &[PeSchedule]) -> Vec<ScheduledHop> {
    let of_sender = |(pe, schedule): (u32, &PeSchedule)| {
        let hops = schedule.hops.clone().into_iter();
        hops.filter(move |hop| hop.from == PeId(pe))
    };
    let mut hops: Vec<ScheduledHop> = (0..).zip(schedules).flat_map(of_sender).collect();
    hops.sort_by_key(|hop| hop.first_step);
    hops
}

/// Returns the differences between a run and its plan on one kind of links.
fn differences(case: &Case, kind: &str, link: Link) -> Vec<String> {
    let model = Model {
        ports: [Ports::Single, Ports::PerEdge][usize::from(case.multi)],
        own_links: case.multi,
        prefix_bytes: 0,
        control_bytes: CONTROL_BYTES,
        ahead_ns: RUN_AHEAD_NS as f64,
        ..Model::alike(case.tree.len(), link)
    };
    let timing = Timing::of(&model, FLIT_BYTES, Pacing::Eager);
    let bytes = case.flits.iter().map(|flits| flits * u64::from(FLIT_BYTES));
    let bytes: Vec<u64> = bytes.collect();
    let schedules = case.operation.schedules(&case.tree, &bytes, &timing);
    let given_up = AtomicBool::new(false);
    let world = PredictionState::run_to_end(&given_up, &case.tree, &schedules, &model, 1);
    let world = world.expect("a schedule");
    let planned = &(case.planned)(&timing);
    let is_count = |sent: &Sent| matches!(sent.load, Load::Count(_));
    let is_counted = planned.iter().any(is_count);
    let (mut sent, packets) = sent_of(case, &world, is_counted);
    let mut of_ports = planned_of(planned, case.multi);
    // The network orders what is sent at once.
    let is_at_once = case.operation == Algorithm::EXCHANGE_AT_ONCE;
    if is_at_once || is_out_of_order(planned) {
        sent.values_mut().for_each(|flits| flits.sort_unstable());
        for steps in of_ports.values_mut() {
            *steps = vec![steps.concat()];
        }
    }
    let mut differences = differences_of(sent, of_ports);
    differences.extend(wrong_senders(case, &schedules, &world));
    let timed = match is_out_of_order(planned) {
        true => &of_hops(&hops_of(&schedules), true),
        false => planned,
    };
    let planned = course(timed, &case.tree, &model, FLIT_BYTES);
    if packets != planned.packets {
        differences.push(format!("{packets} packets for {}", planned.packets));
    }
    let took = world.prediction().round_ns() as f64;
    let off = took / planned.time_ns - 1.0;
    if off < -OFF || off > OFF && !is_at_once {
        let [took, planned] = [took, planned.time_ns].map(|ns| ns / UNIT_NS);
        differences.push(format!("{took:.2} units for {planned:.2}"));
    }
    let named = differences
        .iter()
        .map(|it| format!("{}, {kind}: {it}", case.name));
    named.collect()
}

#[test]
fn a_run_is_its_plan() {
    let links = [
        ("latency", link(UNIT_NS, 0.0, 0.0)),
        ("rate", link(0.0, 0.0, UNIT_NS / f64::from(FLIT_BYTES))),
        ("set-up", link(0.0, UNIT_NS, 0.0)),
    ];
    let mut all = Vec::new();
    for operation in Algorithm::ALL {
        let cases = cases(operation);
        // The plan of a gather over all links has steps, and no crossings: `tests` compares them.
        let has_steps_alone = operation == Algorithm::CERTIFICATION_MULTI_PORT;
        assert_eq!(cases.is_empty(), has_steps_alone, "{operation:?}");
        for (case, (kind, link)) in cases.iter().flat_map(|case| links.map(|it| (case, it))) {
            all.extend(differences(case, kind, link));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
