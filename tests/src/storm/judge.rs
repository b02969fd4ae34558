//! The guarantees that every run must meet, with any faults.

use std::collections::BTreeSet;

use flitcast_cluster::machines::{FailureCause, MissingDelivery};
use flitcast_proto::items::Message;
use flitcast_proto::{DeliveryId, PeId};
use thiserror::Error;

use super::Player;
use super::io::COMMITS_UNDER_WAY;
use super::scenario::{Fault, Kind, Scenario};
use super::world::World;

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Finding {
    /// A living PE still waits after every bound has passed.
    #[error("{0} still waits at the end")]
    Waits(PeId),
    /// The coordinator still waits after every bound has passed.
    #[error("the coordinator still waits at the end")]
    CoordinatorWaits,
    /// The coordinator gave up later than any fault allows.
    #[error("the coordinator gave up {by_ns} ns too late")]
    GaveUpLate { by_ns: u64 },
    /// A round failed, although no fault may have this effect.
    #[error("a round failed, but nothing was wrong: {0}")]
    FailedForNothing(String),
    /// A delivered message differs from its source's.
    #[error("delivered with wrong bytes: {0:?}")]
    WrongBytes(Message),
    /// A message was delivered more than once.
    #[error("delivered twice: {0:?}")]
    DeliveredTwice(Message),
    /// Every PE finished the round, but a message is missing.
    #[error("round {round} ended well without {messages} messages")]
    Lost { round: u64, messages: u64 },
    /// The reported state of a delivery is wrong.
    #[error("the reported state of {0:?} is wrong")]
    Unlisted(DeliveryId),
    /// The state of a delivery is unknown, although its destination is alive.
    #[error("the state of {0:?} is unknown")]
    Unasked(DeliveryId),
    /// The reported cause names neither a PE nor an edge at fault.
    #[error("the cause names no PE or edge at fault: {0}")]
    WrongCause(String),
    /// The last run was successful, but these messages of living PEs are still missing.
    #[error("still missing at the end: {0:?}")]
    StillMissing(Vec<DeliveryId>),
    /// A round without faults took longer than predicted.
    #[error("round {round} took {took_ns} ns, predicted were {predicted_ns} ns")]
    SlowerThanPlanned {
        round: u64,
        took_ns: u64,
        predicted_ns: u64,
    },
    /// A frame was dropped as one of an earlier round, but no such frame was sent.
    #[error("a frame was dropped as late, but none was")]
    LateForNothing,
    /// A frame was dropped as a duplicate, but it was not one.
    #[error("more frames were dropped than doubled")]
    RepeatedForNothing,
}

/// Returns the time limit of a run, with any faults.
pub(super) fn limit_ns(scenario: &Scenario) -> u64 {
    let rounds = scenario.rounds * (scenario.predicted_ns * 4 + scenario.bound_ns());
    let last = scenario.faults.iter().map(|fault| fault.at_ns).max();
    2 * (rounds + last.unwrap_or(0) + scenario.bound_ns())
}

/// Checks a run that is over.
pub(super) fn judge(world: &World, players: &[Player]) -> Vec<Finding> {
    let mut findings = Vec::new();
    waiting(world, players, &mut findings);
    deliveries(world, &mut findings);
    if let Some((at, gave_up)) = &world.office.gave_up {
        reported_deliveries(world, &gave_up.delivered, &gave_up.lacking, &mut findings);
        let suspect = gave_up.trouble.pe();
        let lacking = gave_up.lacking.iter();
        let unknown = lacking.filter(|it| gave_up.round.is_some() && it.received.is_none());
        let is_alive = |pe: PeId| suspect != Some(pe) && world.is_sound(pe);
        let (operation, tree) = (world.scenario.operation, &world.scenario.tree);
        let end = |it: &MissingDelivery| operation.collective().delivered(tree, it.delivery);
        let unreported = unknown.filter(|it| end(it).is_some_and(|(_, at)| is_alive(at)));
        findings.extend(unreported.map(|it| Finding::Unasked(it.delivery)));
        cause(world, *at, &gave_up.trouble, &mut findings);
    }
    pace(world, &mut findings);
    findings
}

/// Checks that no process waits forever.
fn waiting(world: &World, players: &[Player], findings: &mut Vec<Finding>) {
    if !world.office.is_over() {
        findings.push(Finding::CoordinatorWaits);
    }
    for pe in world.scenario.tree.pes() {
        if world.is_to_end(pe) && players[pe.index()].is_some() {
            findings.push(Finding::Waits(pe));
        }
    }
}

/// Checks that messages are delivered completely or not at all, once, and all of them in a
/// successful round.
fn deliveries(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let collective = scenario.operation.collective();
    let mut seen = BTreeSet::new();
    for delivery in &world.disk {
        if !delivery.right {
            findings.push(Finding::WrongBytes(delivery.message));
        }
        if !seen.insert((delivery.round, delivery.of)) {
            findings.push(Finding::DeliveredTwice(delivery.message));
        }
    }
    let messages = scenario.bytes.iter().filter(|&&bytes| bytes > 0).count();
    for (round, reports) in (1..).zip(&world.office.reports) {
        let delivered = seen.iter().filter(|(of, _)| *of == round).count();
        if delivered < messages {
            let messages = (messages - delivered) as u64;
            findings.push(Finding::Lost { round, messages });
        }
        for arrival in reports.iter().flat_map(|report| &report.arrivals) {
            if !arrival.delivered {
                let (message, at) = (arrival.message, arrival.destination);
                let delivery = collective.delivery(&scenario.tree, message, at);
                findings.push(Finding::Unlisted(delivery));
            }
        }
    }
}

/// Checks the coordinator's report on the deliveries of a round that it gave up.
fn reported_deliveries(
    world: &World,
    delivered: &[DeliveryId],
    lacking: &[MissingDelivery],
    findings: &mut Vec<Finding>,
) {
    let round = world.office.reports.len() as u64 + 1;
    let of_round = world.disk.iter().filter(|it| it.round == round);
    let there: BTreeSet<DeliveryId> = of_round.map(|it| it.of).collect();
    let invented = delivered.iter().filter(|it| !there.contains(it));
    // The state of a delivery is unknown if its destination was unreachable.
    let denied = lacking.iter().filter(|it| it.received.is_some());
    let denied = denied.map(|it| &it.delivery);
    let denied = denied.filter(|it| there.contains(it));
    findings.extend(invented.chain(denied).map(|it| Finding::Unlisted(*it)));
}

/// Checks that the cause is the PE or edge at fault, and that it was found in time.
fn cause(world: &World, at: u64, trouble: &FailureCause, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    if scenario.is_harmless() {
        return findings.push(Finding::FailedForNothing(trouble.to_string()));
    }
    let faults = scenario.faults.iter();
    let meant = faults.filter(|fault| is_meant(fault, trouble));
    let Some(latest) = meant.map(|fault| latest_notice_ns(scenario, fault)).max() else {
        return findings.push(Finding::WrongCause(trouble.to_string()));
    };
    if at > latest {
        let by_ns = at - latest;
        findings.push(Finding::GaveUpLate { by_ns });
    }
}

/// Returns when a fault must have been noticed; no limit for faults that wait for a frame.
fn latest_notice_ns(scenario: &Scenario, fault: &Fault) -> u64 {
    match fault.kind.is_damage() {
        true => u64::MAX,
        false => fault.at_ns + scenario.bound_ns() + scenario.rounds * 2 * scenario.predicted_ns,
    }
}

/// Returns whether a fault may be the reported cause.
fn is_meant(fault: &Fault, trouble: &FailureCause) -> bool {
    let kind = &fault.kind;
    if kind.is_harmless() {
        return false;
    }
    let (witness, blamed) = match trouble {
        FailureCause::Fault {
            witness, blamed, ..
        } => (Some(*witness), *blamed),
        other => (None, other.pe()),
    };
    let ends = kind.way().map(|way| [way.from, way.to]);
    match blamed {
        Some(pe) => kind.pe() == Some(pe) || ends.is_some_and(|ends| ends.contains(&pe)),
        // A PE that verifies a message has its path, but not the position of the fault on it;
        // and if every PE waits for another, none can be identified.
        None => match trouble {
            FailureCause::Stalled(..) => true,
            _ => witness.is_some() && kind.is_damage(),
        },
    }
}

/// Checks that a run without faults is never slower than predicted.
fn pace(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let predicted_ns = scenario.predicted_ns;
    // The prediction does not contain waits for the disk.
    let messages = scenario.bytes.iter().filter(|&&bytes| bytes > 0).count();
    let waits_for_disk = scenario.commit_ns > 0 && messages > COMMITS_UNDER_WAY;
    // Frames arrive completely here, so receivers call the next sender only after a whole frame.
    let mut schedules = scenario.lanes.iter().flat_map(|lane| &lane.schedules);
    let calls_later = schedules.any(|schedule| schedule.in_turns);
    let is_exact = !waits_for_disk && !calls_later;
    let rounds = &world.rounds_ns[1..=world.rounds_finished() as usize];
    for (round, (began, over)) in (1..).zip(rounds) {
        let took_ns = over - began;
        // A round that begins at another time may round nanoseconds differently. The prediction
        // begins with free ports.
        let most_ns = predicted_ns + 1 + world.left_ns[round as usize];
        if scenario.faults.is_empty() && is_exact && took_ns > most_ns {
            findings.push(Finding::SlowerThanPlanned {
                round,
                took_ns,
                predicted_ns,
            });
        }
    }
    let has = |is_it: fn(&Kind) -> bool| scenario.faults.iter().any(|fault| is_it(&fault.kind));
    if world.late_frames > 0 && !has(|kind| matches!(kind, Kind::Late(_))) {
        findings.push(Finding::LateForNothing);
    }
    if world.repeated_frames() > world.doubled_frames {
        findings.push(Finding::RepeatedForNothing);
    }
}
