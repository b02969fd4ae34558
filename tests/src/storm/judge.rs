//! The guarantees that every run must meet, with any faults.

use std::collections::BTreeSet;
use std::fmt;

use flitcast_cluster::machines::{FailureCause, MissingDelivery};
use flitcast_proto::items::Message;
use flitcast_proto::{DeliveryId, PeId};

use super::Player;
use super::io::COMMITS_UNDER_WAY;
use super::scenario::{Fault, Kind, Scenario};
use super::world::World;

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A living PE still waits after every bound has passed.
    Waits(PeId),
    /// The coordinator still waits after every bound has passed.
    CoordinatorWaits,
    /// The coordinator gave up later than any fault allows.
    GaveUpLate {
        /// The delay beyond the bound.
        by_ns: u64,
    },
    /// A round failed, although no fault may have this effect.
    FailedForNothing(String),
    /// A delivered message differs from its source's.
    WrongBytes(Message),
    /// A message was delivered more than once.
    DeliveredTwice(Message),
    /// Every PE finished the round, but a message is missing.
    Lost {
        /// The round.
        round: u64,
        /// The number of messages.
        messages: u64,
    },
    /// The reported state of a delivery is wrong.
    Unlisted(DeliveryId),
    /// The state of a delivery is unknown, although its destination lives.
    Unasked(DeliveryId),
    /// The reported cause names neither a PE nor an edge at fault.
    Slander(String),
    /// The last run was successful, but these messages of living PEs are still missing.
    StillMissing(Vec<DeliveryId>),
    /// A round without faults took longer than predicted.
    SlowerThanPlanned {
        /// The round.
        round: u64,
        /// The measured time.
        took_ns: u64,
        /// The predicted time.
        predicted_ns: u64,
    },
    /// A frame was dropped as one of an earlier round, but no such frame was sent.
    LateForNothing,
    /// A frame was dropped as a duplicate, but it was not one.
    RepeatedForNothing,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Waits(pe) => write!(f, "{pe} waits for ever"),
            Finding::CoordinatorWaits => write!(f, "the coordinator waits for ever"),
            Finding::GaveUpLate { by_ns } => {
                write!(f, "the coordinator gave up {by_ns} ns too late")
            }
            Finding::FailedForNothing(cause) => {
                write!(f, "a round failed, but nothing was wrong: {cause}")
            }
            Finding::WrongBytes(message) => write!(f, "delivered with wrong bytes: {message:?}"),
            Finding::DeliveredTwice(message) => write!(f, "delivered twice: {message:?}"),
            Finding::Lost { round, messages } => {
                write!(f, "round {round} ended well without {messages} messages")
            }
            Finding::Unlisted(it) => write!(f, "what is told of {it:?} is not so"),
            Finding::Unasked(it) => write!(f, "nobody was asked about {it:?}"),
            Finding::Slander(cause) => write!(f, "the cause names nobody at fault: {cause}"),
            Finding::StillMissing(all) => write!(f, "still missing at the end: {all:?}"),
            Finding::SlowerThanPlanned {
                round,
                took_ns,
                predicted_ns,
            } => write!(
                f,
                "round {round} took {took_ns} ns, predicted were {predicted_ns} ns"
            ),
            Finding::LateForNothing => write!(f, "a frame was dropped as late, but none was"),
            Finding::RepeatedForNothing => write!(f, "more frames were dropped than doubled"),
        }
    }
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
        told(world, &gave_up.delivered, &gave_up.lacking, &mut findings);
        let suspect = gave_up.trouble.pe();
        let lacking = gave_up.lacking.iter();
        let untold = lacking.filter(|it| gave_up.round.is_some() && it.received.is_none());
        let lives = |pe: PeId| suspect != Some(pe) && world.is_sound(pe);
        let (operation, tree) = (world.scenario.operation, &world.scenario.tree);
        let end = |it: &MissingDelivery| {
            operation
                .collective()
                .delivered(tree, it.delivery)
                .map(|(_, at)| at)
        };
        let unasked = untold.filter(|it| end(it).is_some_and(lives));
        findings.extend(unasked.map(|it| Finding::Unasked(it.delivery)));
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
        if world.is_to_end(pe) && matches!(players[pe.index()], Player::Plays(_)) {
            findings.push(Finding::Waits(pe));
        }
    }
}

/// Checks that messages are delivered completely or not at all, once, and all of them in a
/// successful round.
fn deliveries(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
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
                let delivery =
                    scenario
                        .operation
                        .collective()
                        .delivery(&scenario.tree, message, at);
                findings.push(Finding::Unlisted(delivery));
            }
        }
    }
}

/// Checks the coordinator's report on the deliveries of a round that it gave up.
fn told(
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
        findings.push(Finding::FailedForNothing(trouble.to_string()));
        return;
    }
    let faults = scenario.faults.iter();
    let meant = faults.filter(|fault| is_meant(fault, trouble));
    match meant.map(|fault| latest_notice_ns(scenario, fault)).max() {
        None => findings.push(Finding::Slander(trouble.to_string())),
        Some(latest) if at > latest => {
            let by_ns = at - latest;
            findings.push(Finding::GaveUpLate { by_ns });
        }
        Some(_) => {}
    }
}

/// Returns when a fault must have been noticed; no limit for faults that wait for a frame.
fn latest_notice_ns(scenario: &Scenario, fault: &Fault) -> u64 {
    match fault.kind {
        _ if fault.kind.is_damage() => u64::MAX,
        _ => fault.at_ns + scenario.bound_ns() + scenario.rounds * 2 * scenario.predicted_ns,
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
        // The PE that verifies a message knows its path, but not the position of the fault on it;
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
    let knows_all = !waits_for_disk && !calls_later;
    let rounds = &world.rounds_ns[1..=world.rounds_finished() as usize];
    for (round, (began, over)) in (1..).zip(rounds) {
        let took_ns = over - began;
        // A round that begins at another time may round nanoseconds differently. The prediction
        // begins with free ports.
        let most_ns = predicted_ns + 1 + world.left_ns[round as usize];
        if scenario.faults.is_empty() && knows_all && took_ns > most_ns {
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
