//! What must hold of every run, whatever went wrong in it.

use std::collections::BTreeSet;
use std::fmt;

use flitcast_coordinator::machines::{Lacking, Trouble};
use flitcast_proto::items::Message;
use flitcast_proto::ops::Brief;
use flitcast_proto::{DeliveryId, PeId};

use super::Player;
use super::io::COMMITS_UNDER_WAY;
use super::scenario::{Fault, Kind, Scenario};
use super::world::World;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A living PE still waits after every bound has passed.
    Waits(PeId),
    /// The coordinator does.
    CoordinatorWaits,
    /// The coordinator gave up later than any fault allows.
    GaveUpLate {
        /// So much too late.
        by_ns: u64,
    },
    /// Nothing went wrong that a round may fail of.
    FailedForNothing(String),
    /// A message is not what its source sent.
    WrongBytes(Message),
    /// A message was delivered more than once.
    DeliveredTwice(Message),
    /// Every PE finished the round, but a message is missing.
    Lost {
        /// Which round.
        round: u64,
        /// How many messages.
        messages: u64,
    },
    /// Whether this PE's message was delivered is told wrongly.
    Unlisted(DeliveryId),
    /// Nobody was asked what came of this PE's message, though its destination lives.
    Unasked(DeliveryId),
    /// The cause that is told names neither a PE nor an edge at fault.
    Slander(String),
    /// The last run ended well, and these messages of living PEs are still missing.
    StillMissing(Vec<DeliveryId>),
    /// A faultless round took longer than predicted.
    SlowerThanPlanned {
        /// Which round.
        round: u64,
        /// What it took.
        took_ns: u64,
        /// What was predicted.
        predicted_ns: u64,
    },
    /// A frame of an earlier round was dropped that nobody had sent.
    LateForNothing,
    /// A frame was dropped as one that had come before, and had not.
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

/// When a run must be over, whatever goes wrong in it.
pub(super) fn limit_ns(scenario: &Scenario) -> u64 {
    let rounds = scenario.rounds * (scenario.predicted_ns * 4 + scenario.bound_ns());
    let last = scenario.faults.iter().map(|fault| fault.at_ns).max();
    2 * (rounds + last.unwrap_or(0) + scenario.bound_ns())
}

/// Judges a run that is over.
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
        let end = |it: &Lacking| operation.delivered(tree, it.delivery).map(|(_, at)| at);
        let unasked = untold.filter(|it| end(it).is_some_and(lives));
        findings.extend(unasked.map(|it| Finding::Unasked(it.delivery)));
        cause(world, *at, &gave_up.trouble, &mut findings);
    }
    pace(world, &mut findings);
    findings
}

/// Nobody waits for ever.
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

/// Whole and verified, or not at all; once; and all of them where a round ended well.
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
                let delivery = scenario.operation.delivery(&scenario.tree, message, at);
                findings.push(Finding::Unlisted(delivery));
            }
        }
    }
}

/// What the coordinator tells of the messages of a round that it gave up is so.
fn told(world: &World, delivered: &[DeliveryId], lacking: &[Lacking], findings: &mut Vec<Finding>) {
    let round = world.office.reports.len() as u64 + 1;
    let of_round = world.disk.iter().filter(|it| it.round == round);
    let there: BTreeSet<DeliveryId> = of_round.map(|it| it.of).collect();
    let invented = delivered.iter().filter(|it| !there.contains(it));
    // Of a message whose destination was not heard any more, nobody can tell.
    let denied = lacking.iter().filter(|it| it.received.is_some());
    let denied = denied.map(|it| &it.delivery);
    let denied = denied.filter(|it| there.contains(it));
    findings.extend(invented.chain(denied).map(|it| Finding::Unlisted(*it)));
}

/// The cause names who was at fault, and in time.
fn cause(world: &World, at: u64, trouble: &Trouble, findings: &mut Vec<Finding>) {
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

/// When a fault must have been noticed, if it is not one that waits for a frame to come by.
fn latest_notice_ns(scenario: &Scenario, fault: &Fault) -> u64 {
    match fault.kind {
        Kind::Corrupt { .. } => u64::MAX,
        _ => fault.at_ns + scenario.bound_ns() + scenario.rounds * 2 * scenario.predicted_ns,
    }
}

/// Whether a fault may be the one that is told.
fn is_meant(fault: &Fault, trouble: &Trouble) -> bool {
    let kind = &fault.kind;
    if kind.is_harmless() {
        return false;
    }
    let (witness, blamed) = match trouble {
        Trouble::Fault {
            witness, blamed, ..
        } => (Some(*witness), *blamed),
        other => (None, other.pe()),
    };
    let ends = kind.way().map(|way| [way.from, way.to]);
    match blamed {
        Some(pe) => kind.pe() == Some(pe) || ends.is_some_and(|ends| ends.contains(&pe)),
        // Who verifies a message knows its way, not where on it something happened; and where
        // everybody waits for another, nobody stands out.
        None => match trouble {
            Trouble::Stalled(..) => true,
            _ => witness.is_some() && matches!(kind, Kind::Corrupt { .. }),
        },
    }
}

/// A faultless run is never slower than predicted.
fn pace(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let predicted_ns = scenario.predicted_ns;
    // The prediction knows of none.
    let messages = scenario.bytes.iter().filter(|&&bytes| bytes > 0).count();
    let waits_for_disk = scenario.commit_ns > 0 && messages > COMMITS_UNDER_WAY;
    // Frames come whole here, and receivers call for more behind a whole one.
    let calls_later = scenario.briefs.iter().any(Brief::is_in_turns);
    let knows_all = !waits_for_disk && !calls_later;
    let rounds = &world.rounds_ns[1..=world.rounds_finished() as usize];
    for (round, (began, over)) in (1..).zip(rounds) {
        let took_ns = over - began;
        // A round that begins at another time may round its nanoseconds otherwise.
        if scenario.faults.is_empty() && knows_all && took_ns > predicted_ns + 1 {
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
