//! What happens in a command that conducts rounds, said once (`tell`) for all who
//! show it.

use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Counts, Pong, Report};
use flitcast_proto::{PeId, RoundId};

use crate::job::request::Request;
use crate::observe::phase::Phase;

/// Something that happens.
#[cfg_attr(
    not(feature = "otel"),
    expect(dead_code, reason = "some of it is for traces alone")
)]
pub enum Event<'a> {
    /// A command begins to conduct.
    Begins {
        /// Its name.
        command: &'a str,
    },
    /// A cluster is being launched for a request.
    Launching(&'a Request),
    /// Its processes have registered.
    Launched {
        /// Each PE's process, as it said.
        pid: &'a dyn Fn(PeId) -> Option<u32>,
    },
    /// Something else is being done.
    Enters(Phase),
    /// What the rounds are to be like.
    Foreseen {
        /// Bytes of M_i, by PE index.
        bytes: &'a [u64],
        /// How orders are obeyed, where there are any.
        pacing: Option<Pacing>,
        /// What a round is expected to take.
        prediction: &'a Prediction,
    },
    /// A round is triggered.
    RoundBegins {
        /// Which.
        round: RoundId,
        /// Bytes of M_i, by PE index.
        bytes: &'a [u64],
        /// What it is expected to take.
        predicted_ns: u64,
    },
    /// P0 is done with the round that is under way.
    RoundDone,
    /// All PEs have told how it was.
    RoundReported {
        /// Their reports, by PE index.
        reports: &'a [Report],
        /// Their clocks, by PE index.
        clocks: &'a [ClockOffset],
    },
    /// A PE has answered a ping.
    Heard(PeId, &'a Pong),
    /// A PE has reported a round, with what it has counted.
    Reported(PeId, &'a Counts),
    /// What was being done has failed, and the run with it.
    Failed {
        /// What kind of trouble it was.
        kind: &'static str,
        /// With whom.
        pe: Option<PeId>,
        /// What failed first.
        cause: &'a str,
    },
    /// Ctrl-C.
    Interrupted,
    /// The cluster's processes are being stopped.
    Stopping,
    /// They are, and what an interrupted run was doing stays undone.
    Abandoned,
    /// A cluster is gone.
    RunEnds,
    /// The command has ended, and printed what it had to.
    Ends {
        /// Whether all went well.
        went_well: bool,
    },
}
