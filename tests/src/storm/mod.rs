//! Deterministic simulation: clusters of PEs and their coordinator in virtual time, on a network
//! that delays, duplicates, damages and loses data, with processes that stop and die. A seed
//! determines a run, bit for bit.
//!
//! The simulation runs the real code: the rounds and their driver from the node
//! (`flitcast_node::rounds`, on the storm's `io`), its frame reader, and the coordinator's
//! controller (`office`) with its rules for retries. Only the network (`wire`, `world`) and the
//! runs (`scenario`) are made up; `judge` checks guarantees afterwards. Sockets, threads, clocks,
//! and the steps before rounds (launch, connections, measurements) are not covered.

mod cause;
mod io;
mod judge;
mod office;
mod payload;
mod plant;
mod scenario;
mod tally;
mod trace;
mod wire;
mod world;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use flitcast_cluster::machines::DeliveryProgress;
use flitcast_proto::DeliveryId;

pub use judge::Finding;
pub use plant::Plant;
pub use scenario::{Fault, HEARTBEAT_NS, Kind, Lane, SILENCE_NS, Scenario, Way};
pub use tally::{Figures, Tally};

use cause::Cause;
use io::Process;
use trace::Trace;
use world::World;

/// The result of a seed: a run and its retries.
#[derive(Debug)]
pub struct Outcome {
    pub scenario: Arc<Scenario>,
    /// The figures of all runs.
    pub figures: Figures,
    /// Durations of the first run's finished rounds, from P0's trigger to the last arrival.
    pub rounds_ns: Vec<u64>,
    /// The causes of rounds that were given up.
    pub given_up: Vec<String>,
    pub findings: Vec<Finding>,
    /// A hash of all events, in order.
    pub trace: u128,
}

/// Runs the scenario of a seed, and prints the events if `print` is set.
pub fn run(seed: u64, plant: Option<Plant>, print: bool) -> Outcome {
    let scenario = Arc::new(Scenario::of(seed));
    play(&scenario, plant, print)
}

/// Runs a scenario with its retries.
pub fn play(scenario: &Arc<Scenario>, plant: Option<Plant>, print: bool) -> Outcome {
    let mut outcome = Outcome {
        scenario: scenario.clone(),
        figures: Figures::default(),
        rounds_ns: Vec::new(),
        given_up: Vec::new(),
        findings: Vec::new(),
        trace: 0,
    };
    let mut progress = DeliveryProgress::new(
        scenario.tree.clone(),
        scenario.operation,
        scenario.bytes.clone(),
    );
    let mut left = scenario.retries;
    let mut there: BTreeSet<DeliveryId> = BTreeSet::new();
    let mut next = scenario.clone();
    let mut trace = Trace::new(print);
    loop {
        let (world, findings) = play_once(&next, plant, trace);
        outcome.add(&world, findings);
        for delivery in world.disk.iter().filter(|_| scenario.rounds == 1) {
            if !there.insert(delivery.of) {
                let finding = Finding::DeliveredTwice(delivery.message);
                outcome.findings.push(finding);
            }
        }
        // The PEs of the next run find the deliveries with receipts.
        progress.learn_delivered(there.iter().copied());
        let Some((_, gave_up)) = &world.office.gave_up else {
            let missing = progress.missing().into_iter();
            let can_deliver =
                |it: &DeliveryId| next.operation.collective().can_deliver(&next.tree, *it);
            let missing: Vec<DeliveryId> = missing.filter(can_deliver).collect();
            if scenario.rounds == 1 && world.office.is_over() && !missing.is_empty() {
                outcome.findings.push(Finding::StillMissing(missing));
            }
            break;
        };
        progress.learn_delivered(gave_up.delivered.iter().copied());
        let failed_pes = gave_up.trouble.failed_pes();
        for pe in &failed_pes {
            progress.learn_dead(*pe, gave_up.trouble.to_string());
        }
        let runs = [left, scenario.retries];
        if progress
            .check_can_continue(&failed_pes, runs, |_, _| true)
            .is_err()
        {
            break;
        }
        left -= 1;
        let plan = progress.next(next.operation, |_, _| true);
        next = Arc::new(scenario.after(plan, outcome.figures.runs));
        trace = world.trace;
    }
    outcome
}

impl Outcome {
    fn add(&mut self, world: &World, findings: Vec<Finding>) {
        let finished = world.rounds_finished();
        if self.figures.runs == 0 {
            let rounds = world.rounds_ns[1..].iter().take(finished as usize);
            self.rounds_ns = rounds.map(|(began, over)| over - began).collect();
        }
        let gave_up = world.office.gave_up.iter();
        self.given_up
            .extend(gave_up.map(|(_, gave_up)| gave_up.trouble.to_string()));
        self.figures.add(&Figures {
            runs: 1,
            virtual_ns: world.now.into(),
            rounds_finished: finished,
            delivered: world.disk.len() as u64,
            late_frames: world.late_frames,
            doubled_frames: world.doubled_frames,
            repeated_frames: world.repeated_frames(),
            damaged_payloads: world.damaged_payloads(),
        });
        self.findings.extend(findings);
        self.trace = world.trace.digest();
    }
}

/// Runs a scenario once, to its end.
fn play_once(
    scenario: &Arc<Scenario>,
    plant: Option<Plant>,
    trace: Trace,
) -> (World, Vec<Finding>) {
    let world = World::new(scenario.clone(), trace, plant);
    let world = Rc::new(RefCell::new(world));
    let player = |pe| -> Player {
        let process = Process {
            world: world.clone(),
            scenario: scenario.clone(),
            pe,
            lane: 0,
            plant,
        };
        Some(Box::pin(io::run_pe(process)))
    };
    let mut players: Vec<Player> = scenario.tree.ids().map(player).collect();
    let limit_ns = judge::limit_ns(scenario);
    loop {
        while let Some(pe) = { world.borrow_mut().next_ready() } {
            if has_ended(&mut players[pe.index()]) {
                world.borrow_mut().exit(pe);
            }
        }
        let world = &mut world.borrow_mut();
        let mut pes = scenario.tree.pes();
        let waits = pes.any(|pe| players[pe.index()].is_some() && world.is_to_end(pe));
        if (!waits && world.office.is_over()) || world.now > limit_ns {
            break;
        }
        world.advance();
    }
    let findings = judge::judge(&world.borrow(), &players);
    drop(players);
    let world = Rc::into_inner(world).expect("nobody else has it");
    (world.into_inner(), findings)
}

/// A PE's process, until it ends.
type Player = Option<Pin<Box<dyn Future<Output = Result<(), Cause>>>>>;

/// Polls a process; returns whether it ends.
fn has_ended(player: &mut Player) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let ended = player.take_if(|future| future.as_mut().poll(&mut context).is_ready());
    ended.is_some()
}
