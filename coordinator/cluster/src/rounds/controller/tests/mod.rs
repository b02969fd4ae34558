//! Tests of the controller in virtual time.

mod any_order;
mod causes;
mod courses;

use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_plan::Algorithm;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::timing::Timing;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::{Arrival, Counts, Doing, FromPe, Pong, Report, ToPe};
use flitcast_proto::{DeliveryId, PeId, RoundId, Time};

use super::state::State;
use super::*;
use crate::job::test_tree::{self, tree};
use crate::observe::phase::Phase;

const P0: PeId = PeId(0);
const P1: PeId = PeId(1);
const P2: PeId = PeId(2);
const P3: PeId = PeId(3);
const BYTES: u64 = 1000;

fn at(seconds: f64) -> Time {
    Time(Duration::from_secs_f64(seconds).as_nanos() as u64)
}

/// Returns a fault, which is one of the input or of a closed connection.
fn fault_in(peer: Option<PeId>, reason: &str, [bad_input, hung_up]: [bool; 2]) -> FromPe {
    FromPe::Fault {
        round: RoundId(1),
        peer,
        reason: reason.to_owned(),
        bad_input,
        output_stands: false,
        hung_up,
        changed: Vec::new(),
    }
}

fn fault(peer: Option<PeId>, reason: &str) -> FromPe {
    fault_in(peer, reason, [false, false])
}

fn hung_up(peer: PeId, reason: &str) -> FromPe {
    fault_in(Some(peer), reason, [false, true])
}

fn bad_input(reason: &str) -> FromPe {
    fault_in(None, reason, [true, false])
}

fn killed() -> PeLoss {
    PeLoss::Exited {
        how: "was killed by signal 9 (SIGKILL)".to_owned(),
        last_words: Vec::new(),
    }
}

fn silent() -> PeLoss {
    PeLoss::Lifeless(IdleTimeout::Silent(Duration::from_secs(3)))
}

/// Returns an answer to a ping from a PE that is `doing` this and has moved nothing for `quiet`
/// seconds.
fn pong(quiet: f64, doing: Doing) -> FromPe {
    let ms = (quiet * 1000.0) as u64;
    FromPe::Pong(Pong {
        quiet_ms: ms,
        files_quiet_ms: ms,
        doing,
        unreached: Vec::new(),
        counts: Counts::default(),
    })
}

/// Returns the arrival of a PE's message of a scatter, with the bytes received.
fn arrival(pe: PeId, bytes_received: u64) -> Arrival {
    Arrival {
        bytes_received,
        bytes_total: BYTES,
        delivered: bytes_received == BYTES,
        ..test_tree::arrival(pe)
    }
}

/// Returns the report of a PE on a round of a scatter, with the bytes received.
fn report(round: u64, pe: PeId, bytes_received: u64) -> FromPe {
    let arrivals = match pe {
        P0 => Vec::new(),
        _ => vec![arrival(pe, bytes_received)],
    };
    FromPe::Report(Report::blank(RoundId(round), arrivals))
}

/// A scatter over P0, P1, P2 and P3, each the parent of the next, and its controller.
struct Scatter {
    controller: RoundController,
    updates: Vec<ControllerEvent>,
}

impl Scatter {
    fn new(rounds: u64, joined: &[PeId]) -> Scatter {
        Scatter::with(rounds, joined, |_| {})
    }

    fn with(rounds: u64, joined: &[PeId], change: fn(&mut [PeSchedule])) -> Scatter {
        let bytes = vec![0, BYTES, BYTES, BYTES];
        Scatter::of(Algorithm::FARTHEST_FIRST, bytes, rounds, joined, change)
    }

    /// Creates the same for any algorithm, from the lengths of its messages.
    fn of(
        algorithm: Algorithm,
        bytes: Vec<u64>,
        rounds: u64,
        joined: &[PeId],
        change: fn(&mut [PeSchedule]),
    ) -> Scatter {
        let tree = tree("path:4");
        let setting = ClusterInfo {
            tree: tree.clone(),
            operation: algorithm,
            timeouts: Timeouts::default(),
            joined: joined.iter().copied().collect(),
            addresses: vec![None, Some("10.0.0.1:7".to_owned())],
        };
        let mut controller = RoundController::new(at(0.0), setting);
        let mut schedules = algorithm.schedules(&tree, &bytes, &Timing::LOCK_STEP);
        change(&mut schedules);
        let plan = Plan {
            schedules,
            lanes: Vec::new(),
            bytes,
            prefixes: Vec::new(),
            rounds,
            clocks: vec![ClockOffset::SHARED; 4],
            predicted_ns: 1_000_000_000,
        };
        controller.run_rounds(at(0.0), plan);
        Scatter {
            controller,
            updates: Vec::new(),
        }
    }

    /// Creates a scatter whose first round began at second 1.
    fn begun(rounds: u64, joined: &[PeId]) -> Scatter {
        let mut scatter = Scatter::new(rounds, joined);
        for pe in [P3, P0, P2, P1] {
            assert_eq!(scatter.controller.round, RoundId(0));
            scatter.receives(1.0, pe, FromPe::Prepared);
        }
        // Four prepare, one is triggered.
        assert_eq!(scatter.commands().len(), 5);
        scatter
    }

    fn receives(&mut self, seconds: f64, pe: PeId, reply: FromPe) {
        self.controller.handle_reply(at(seconds), pe, reply);
    }

    fn loses(&mut self, seconds: f64, pe: PeId, lost: PeLoss) {
        self.controller.handle_lost(at(seconds), pe, lost);
    }

    fn waits(&mut self, until: f64) {
        while let Some(time) = self.controller.poll_timeout()
            && time <= at(until)
        {
            self.controller.handle_timeout(time);
        }
    }

    fn commands(&mut self) -> Vec<(PeId, ToPe)> {
        std::iter::from_fn(|| self.controller.poll_command()).collect()
    }

    fn updates(&mut self) -> &[ControllerEvent] {
        self.updates
            .extend(std::iter::from_fn(|| self.controller.poll_update()));
        &self.updates
    }

    /// Returns the result of rounds that were given up, after a check that all PEs got the reason.
    fn gave_up(&mut self) -> GaveUp {
        let gave_up = self.controller.gave_up().expect("it gave up");
        let cause = gave_up.trouble.to_string();
        let commands = self.commands();
        let aborts = commands.iter().filter_map(|(pe, command)| match command {
            ToPe::Abort { reason, .. } => Some((*pe, reason)),
            _ => None,
        });
        let all = [P0, P1, P2, P3].map(|pe| (pe, &cause));
        assert_eq!(aborts.collect::<Vec<_>>(), all);
        assert!(self.controller.is_idle());
        assert_eq!(self.controller.poll_timeout(), None);
        gave_up
    }

    /// Waits, and checks that the rounds were given up for this error.
    #[track_caller]
    fn fails(&mut self, until: f64, cause: &str) -> GaveUp {
        self.waits(until);
        let gave_up = self.gave_up();
        assert_eq!(gave_up.trouble.to_string(), cause);
        gave_up
    }
}

fn progress(round: u64, bytes: u64) -> FromPe {
    let round = RoundId(round);
    FromPe::Progress { round, bytes }
}

/// Returns a message that is not expected in any round.
fn odd() -> FromPe {
    FromPe::Line {
        text: "hello".to_owned(),
        shard: "a".into(),
    }
}
