//! The events of a command that conducts rounds. `emit` reports each event once to all observers.

use std::collections::BTreeMap;
use std::fmt;

use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Counts, Pong, Report};
use flitcast_proto::{PeId, RoundId};
use serde::{Deserialize, Serialize};

use crate::job::request::Request;
use crate::observe::phase::Phase;

/// Numbers of shards of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCounts {
    /// Shards on which no command has begun, or on which it will begin again.
    pub waiting: usize,
    /// Shards on which a command runs.
    pub running: usize,
    /// Shards on which a command has succeeded.
    pub done: usize,
    /// Shards on which the command has failed for good.
    pub failed: usize,
}

impl fmt::Display for ShardCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardCounts {
            waiting,
            running,
            done,
            failed,
        } = self;
        let all = waiting + running + done + failed;
        write!(
            f,
            "{done} of {all} shards done, {running} running, {waiting} waiting, {failed} failed"
        )
    }
}

pub enum MapEvent<'a> {
    /// A PE begins to run the command on a shard.
    Begins(PeId, &'a str),
    /// A PE has ended the command on a shard.
    Ended(PeId, &'a str),
    /// A PE has answered a ping.
    Pong(PeId, &'a Pong),
    /// The numbers of shards have changed.
    Shards(ShardCounts),
}

/// An event of a command that conducts rounds.
pub enum Event<'a> {
    /// A command starts.
    Begins {
        command: &'a str,
    },
    Launching(&'a Request),
    /// The processes of the cluster have registered.
    Launched {
        /// Process id of each PE, as the PE reported it.
        pid: &'a dyn Fn(PeId) -> Option<u32>,
        /// The host that each PE has joined from, if it has.
        hosts: &'a BTreeMap<PeId, String>,
    },
    Enters(Phase),
    /// The rounds are planned and predicted.
    Predicted {
        /// The algorithm, which may have been chosen after the links were measured.
        algorithm: &'static str,
        /// Bytes of M_i, by PE index.
        bytes: &'a [u64],
        /// Pacing of TRANSMIT AFTER orders; `None` if the operation has none.
        pacing: Option<Pacing>,
        /// Prediction for one round.
        prediction: &'a Prediction,
    },
    /// A round is triggered.
    RoundBegins {
        round: RoundId,
        bytes: &'a [u64],
        /// Predicted duration of the round.
        predicted_ns: u64,
    },
    /// P0 has completed the round under way.
    RoundDone,
    /// All PEs have reported the round.
    RoundReported {
        /// Reports by PE index.
        reports: &'a [Report],
        /// Clock offsets by PE index.
        clocks: &'a [ClockOffset],
    },
    /// A map runs commands; the clusters that move shards meanwhile are others.
    Map(MapEvent<'a>),
    /// A PE has answered a ping.
    Pong(PeId, &'a Pong),
    /// A PE has reported a round, with its counters.
    Reported(PeId, &'a Counts),
    /// The current step has failed, and the run with it.
    Failed {
        kind: &'static str,
        /// PE that the failure concerns, if any.
        pe: Option<PeId>,
        /// Cause of the first failure.
        cause: &'a str,
    },
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The cluster's processes are being stopped.
    Stopping,
    /// The processes are stopped, and the round of the interrupted run is given up.
    Abandoned,
    /// The run on a cluster is over.
    RunEnds,
    /// The command has ended and printed its result.
    Ends {
        succeeded: bool,
    },
}
