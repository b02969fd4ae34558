//! What a request may be chosen from, where it is: the algorithms, pacings and flit sizes
//! that were left open. `choose.rs` chooses.

use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;

use crate::options::args::{GatherAlgorithm, RoundArgs, SyncArg};
use crate::ways::candidates::Candidate;

/// What may be chosen from.
pub struct Ways {
    /// All that work.
    pub candidates: Vec<Candidate>,
    /// A pacing is asked for.
    pub any_pacing: bool,
    /// Where no flit size is asked for, it is chosen as well.
    pub any_flit: bool,
}

impl Ways {
    /// Only those that are asked for.
    pub fn keep(
        mut self,
        algorithm: Option<GatherAlgorithm>,
        sync: Option<SyncArg>,
        pacing: Option<Pacing>,
    ) -> Ways {
        self.candidates.retain(|candidate| {
            let algorithm = match (algorithm, candidate.operation) {
                (Some(GatherAlgorithm::ShoulderTap), it) => it == Operation::ShoulderTap,
                (Some(GatherAlgorithm::Certification), it) => it != Operation::ShoulderTap,
                _ => true,
            };
            let sync = match (sync, candidate.operation) {
                (Some(SyncArg::Serial), it) => it == Operation::Certification(Sync::Serial),
                (Some(SyncArg::Pipelined), it) => it == Operation::Certification(Sync::Pipelined),
                (None, _) => true,
            };
            let pacing = pacing.is_none() || candidate.pacing == pacing;
            algorithm && sync && pacing
        });
        self
    }
}

/// What is not there to compare with.
pub fn ours(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|candidate| candidate.baseline.is_none());
    candidates
}

/// Whether anything is to be chosen.
pub fn choosing(round: &RoundArgs, algorithm: bool) -> bool {
    algorithm || round.transfer.tree.is_auto()
}
