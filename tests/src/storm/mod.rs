//! Deterministic simulation: clusters of PEs in virtual time, on a network that delays,
//! doubles, damages and loses what is sent, among processes that stop and die. A seed is
//! a run, bit for bit.
//!
//! `scenario` says what a seed stands for, `world` lets it happen, `wire` is a TCP
//! connection's one direction, `driver` plays a PE on it (through `net`), and `judge` says afterwards
//! which promises were broken. The state machines and the frames are the real ones. Not
//! here: sockets, threads, clocks.
//!
//! Connections carry heartbeats apart from their data, as TCP's own keepalives do: a PE
//! notices the life, the silence and the end of a neighbour that it does not read from.

mod cause;
mod driver;
mod judge;
mod net;
mod payload;
mod scenario;
mod tally;
mod trace;
mod wire;
mod world;

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use flitcast_proto::PeId;

pub use cause::Cause;
pub use judge::Finding;
pub use scenario::{Fault, HEARTBEAT_NS, Kind, SILENCE_NS, Scenario, Way};
pub use tally::Tally;

use driver::Ending;
use net::Net;
use trace::Trace;
use world::World;

/// A mistake that is made on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A PE that gives up tells nobody, and keeps its connections.
    ForgetsToAbort,
    /// A silent neighbour is waited for.
    TrustsSilence,
    /// A message is delivered whatever its digest says.
    TrustsBytes,
    /// What became durable after the round was given up is not listed.
    ForgetsDeliveries,
    /// A frame of an earlier round is taken for one of this.
    TakesLateFrames,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 5] = [
        Plant::ForgetsToAbort,
        Plant::TrustsSilence,
        Plant::TrustsBytes,
        Plant::ForgetsDeliveries,
        Plant::TakesLateFrames,
    ];
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What was run.
    pub scenario: Arc<Scenario>,
    /// How long it took, in virtual time.
    pub virtual_ns: u64,
    /// Rounds that every PE finished.
    pub rounds_finished: u64,
    /// Of each of these, from P0's trigger to the last arrival.
    pub rounds_ns: Vec<u64>,
    /// What went wrong first, as the PE saw it that gave up first.
    pub first_cause: Option<(PeId, Cause)>,
    /// Messages delivered, in all rounds.
    pub delivered: u64,
    /// Frames of earlier rounds that were dropped.
    pub late_frames: u64,
    /// Frames that were sent twice by the network.
    pub doubled_frames: u64,
    /// Frames that came again and were dropped.
    pub repeated_frames: u64,
    /// Promises that were broken.
    pub findings: Vec<Finding>,
    /// A hash of all that happened, in order.
    pub trace: u128,
}

/// Runs the scenario that `seed` stands for, printing what happens if asked to.
pub fn run(seed: u64, plant: Option<Plant>, print: bool) -> Outcome {
    let scenario = Arc::new(Scenario::of(seed));
    play(&scenario, plant, print)
}

/// Runs a scenario.
pub fn play(scenario: &Arc<Scenario>, plant: Option<Plant>, print: bool) -> Outcome {
    let world = World::new(scenario.clone(), Trace::new(print));
    let world = Rc::new(RefCell::new(world));
    let mut players: Vec<Player> = scenario
        .tree
        .pes()
        .map(|pe| {
            let net = Net {
                world: world.clone(),
                pe,
                frame_limit: driver::frame_limit(scenario),
                plant,
            };
            Player::Plays(Box::pin(driver::live(net, scenario.clone())))
        })
        .collect();
    let limit_ns = judge::limit_ns(scenario);
    loop {
        while let Some(pe) = { world.borrow_mut().next_ready() } {
            players[pe.index()].poll();
        }
        let world = &mut world.borrow_mut();
        let waits = scenario.tree.pes().any(|pe| {
            let plays = matches!(players[pe.index()], Player::Plays(_));
            plays && world.is_to_end(pe)
        });
        if !waits || world.now > limit_ns {
            break;
        }
        world.advance();
    }
    judge::outcome(&world.borrow(), &players)
}

/// A PE's process.
enum Player {
    Plays(Pin<Box<dyn Future<Output = Ending>>>),
    Ended(Ending),
}

impl Player {
    fn poll(&mut self) {
        if let Player::Plays(life) = self {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(ending) = life.as_mut().poll(&mut context) {
                *self = Player::Ended(ending);
            }
        }
    }
}
