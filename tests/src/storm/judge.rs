//! What must hold of every run, whatever went wrong in it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use flitcast_proto::PeId;
use flitcast_proto::pe::Message;

use super::cause::Cause;
use super::driver::COMMITS_UNDER_WAY;
use super::scenario::{Fault, Kind, Scenario, Way};
use super::world::World;
use super::{Outcome, Player};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A living PE still waits after every bound has passed.
    Waits(PeId),
    /// A PE ended later than any fault allows.
    EndedLate {
        /// Which.
        pe: PeId,
        /// So much too late.
        by_ns: u64,
    },
    /// A fault that shows at once was noticed later than the silence limit allows.
    NoticedLate {
        /// By whom.
        pe: PeId,
        /// So much too late.
        by_ns: u64,
    },
    /// Nothing went wrong that a round may fail of.
    FailedForNothing(PeId, Cause),
    /// A message is not what its source sent.
    WrongBytes(Message),
    /// A message was delivered more than once in a round.
    DeliveredTwice(Message),
    /// Every PE finished the round, but a message is missing.
    Lost {
        /// Which round.
        round: u64,
        /// How many messages.
        messages: u64,
    },
    /// What a PE says was delivered is not what was.
    Unlisted(PeId),
    /// The first cause names neither a PE nor an edge at fault.
    Slander(PeId, Cause),
    /// A PE passes on a reason that nobody had.
    Rumour(PeId, Cause),
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
            Finding::EndedLate { pe, by_ns } => write!(f, "{pe} ended {by_ns} ns too late"),
            Finding::NoticedLate { pe, by_ns } => {
                write!(f, "{pe} noticed a fault {by_ns} ns too late")
            }
            Finding::FailedForNothing(pe, cause) => {
                write!(f, "{pe} gave up, but nothing was wrong: {cause}")
            }
            Finding::WrongBytes(message) => write!(f, "delivered with wrong bytes: {message:?}"),
            Finding::DeliveredTwice(message) => write!(f, "delivered twice: {message:?}"),
            Finding::Lost { round, messages } => {
                write!(f, "round {round} ended well without {messages} messages")
            }
            Finding::Unlisted(pe) => write!(f, "{pe} does not list what was delivered"),
            Finding::Slander(pe, cause) => {
                write!(
                    f,
                    "the first cause, by {pe}, names nobody at fault: {cause}"
                )
            }
            Finding::Rumour(pe, cause) => write!(f, "{pe} heard what nobody said: {cause}"),
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
pub(super) fn outcome(world: &World, players: &[Player]) -> Outcome {
    let scenario = &world.scenario;
    let mut findings = Vec::new();
    waiting(world, players, &mut findings);
    deliveries(world, players, &mut findings);
    causes(world, &mut findings);
    pace(world, &mut findings);
    let rounds = &world.rounds_ns[1..];
    let finished = rounds.iter().take(world.rounds_finished() as usize);
    Outcome {
        scenario: Arc::clone(scenario),
        virtual_ns: world.now,
        rounds_finished: world.rounds_finished(),
        rounds_ns: finished.map(|(began, over)| over - began).collect(),
        first_cause: world
            .causes
            .first()
            .map(|(_, pe, cause)| (*pe, cause.clone())),
        delivered: world.disk.len() as u64,
        late_frames: world.late_frames,
        doubled_frames: world.doubled_frames,
        repeated_frames: world.repeated_frames(),
        findings,
        trace: world.trace.digest(),
    }
}

/// Nobody waits for ever, and who gives up does so in time.
fn waiting(world: &World, players: &[Player], findings: &mut Vec<Finding>) {
    for pe in world.scenario.tree.pes() {
        if world.is_to_end(pe) && matches!(players[pe.index()], Player::Plays(_)) {
            findings.push(Finding::Waits(pe));
        }
    }
    let Some((first, ..)) = world.causes.first() else {
        return;
    };
    let by = first + world.scenario.bound_ns();
    for (at, pe, _) in &world.causes {
        if *at > by {
            let by_ns = at - by;
            findings.push(Finding::EndedLate { pe: *pe, by_ns });
        }
    }
}

/// Whole and verified, or not at all; once; and listed.
fn deliveries(world: &World, players: &[Player], findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let mut seen = BTreeSet::new();
    for delivery in &world.disk {
        if !delivery.right {
            findings.push(Finding::WrongBytes(delivery.message));
        }
        if !seen.insert((delivery.round, delivery.message.pe())) {
            findings.push(Finding::DeliveredTwice(delivery.message));
        }
    }
    let messages = scenario.bytes.iter().filter(|&&bytes| bytes > 0).count();
    for round in 1..=world.rounds_finished() {
        let delivered = seen.iter().filter(|(of, _)| *of == round).count();
        if delivered < messages {
            let messages = (messages - delivered) as u64;
            findings.push(Finding::Lost { round, messages });
        }
    }
    for (pe, player) in scenario.tree.pes().zip(players) {
        let Player::Ended(ending) = player else {
            continue;
        };
        let listed = ending.arrivals.iter().filter(|arrival| arrival.delivered);
        let listed: BTreeSet<_> = listed.map(|a| (a.round, a.message.pe())).collect();
        let here = world.disk.iter().filter(|d| d.message.destination == pe);
        let there: BTreeSet<_> = here.map(|d| (d.round, d.message.pe())).collect();
        if listed != there {
            findings.push(Finding::Unlisted(pe));
        }
    }
}

/// The first cause names who was at fault, and all others what a neighbour told them,
/// or what they saw of it themselves.
fn causes(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let Some((at, pe, cause)) = world.causes.first() else {
        return;
    };
    if scenario.is_harmless() {
        findings.push(Finding::FailedForNothing(*pe, cause.clone()));
        return;
    }
    match blamed(scenario, *pe, cause)
        .map(|fault| latest_notice_ns(scenario, fault))
        .max()
    {
        None => findings.push(Finding::Slander(*pe, cause.clone())),
        Some(latest) if *at > latest => findings.push(Finding::NoticedLate {
            pe: *pe,
            by_ns: at - latest,
        }),
        Some(_) => {}
    }
    for (place, (_, pe, cause)) in world.causes.iter().enumerate().skip(1) {
        let before = &world.causes[..place];
        let told = |reason: &String| before.iter().any(|(_, pe, own)| own.reason(*pe) == *reason);
        let gave_up = |peer: &PeId| before.iter().any(|(_, pe, _)| pe == peer);
        let heard = match cause {
            Cause::Aborted { reason, .. } => told(reason),
            Cause::Closed { peer } | Cause::Truncated { peer, .. } | Cause::Silent { peer } => {
                gave_up(peer) || blamed(scenario, *pe, cause).next().is_some()
            }
            // Damage that has spread before it was found.
            _ => true,
        };
        if !heard {
            findings.push(Finding::Rumour(*pe, cause.clone()));
        }
    }
}

/// When a fault must have been noticed: at once or by silence, if it is not one that
/// waits for a frame to come by.
fn latest_notice_ns(scenario: &Scenario, fault: &Fault) -> u64 {
    match fault.kind {
        Kind::Corrupt { .. } => u64::MAX,
        _ => fault.at_ns + scenario.bound_ns(),
    }
}

/// The faults of the run that may be what `pe` blames.
fn blamed<'a>(
    scenario: &'a Scenario,
    pe: PeId,
    cause: &'a Cause,
) -> impl Iterator<Item = &'a Fault> {
    let is_meant = move |kind: &Kind| match (cause, cause.peer()) {
        // What comes twice or late is dropped, and nobody's fault.
        _ if matches!(kind, Kind::Duplicate { .. } | Kind::Late(_)) => false,
        // Who verifies a message knows its way, not where on it something happened.
        (Cause::Damaged { message }, _) => match kind {
            Kind::Corrupt { way, .. } => {
                let tree = &scenario.tree;
                let lower = match tree.parent(way.to) == Some(way.from) {
                    true => way.to,
                    false => way.from,
                };
                lower == message.pe() || tree.child_toward(lower, message.pe()).is_some()
            }
            _ => false,
        },
        (_, Some(peer)) => {
            let edge = [Way { from: peer, to: pe }, Way { from: pe, to: peer }];
            kind.pe() == Some(peer) || kind.way().is_some_and(|way| edge.contains(&way))
        }
        (_, None) => false,
    };
    let faults = scenario.faults.iter();
    faults.filter(move |fault| is_meant(&fault.kind))
}

/// A faultless run is never slower than predicted.
fn pace(world: &World, findings: &mut Vec<Finding>) {
    let scenario = &world.scenario;
    let predicted_ns = scenario.predicted_ns;
    // The prediction knows of none.
    let messages = scenario.bytes.iter().filter(|&&bytes| bytes > 0).count();
    let waits_for_disk = scenario.commit_ns > 0 && messages > COMMITS_UNDER_WAY;
    let rounds = &world.rounds_ns[1..=world.rounds_finished() as usize];
    for (round, (began, over)) in (1..).zip(rounds) {
        let took_ns = over - began;
        // A round that begins at another time may round its nanoseconds otherwise.
        if scenario.faults.is_empty() && !waits_for_disk && took_ns > predicted_ns + 1 {
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
