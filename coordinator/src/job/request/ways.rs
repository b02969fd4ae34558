//! What a request may be chosen from, where it is: the algorithms, pacings and flit sizes
//! that were left open. `choose.rs` chooses.

use std::sync::Arc;

use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;

use super::Request;
use crate::options::args::{GatherAlgorithm, RoundArgs, SyncArg};
use crate::options::names::algorithm_name;
use crate::site::topology::Topology;
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

impl Request {
    /// The same request, done in a way that works, as [`Candidate::check`] says. `bytes[i]` is the
    /// length of M_i.
    pub fn done_by(
        &self,
        candidate: &Candidate,
        bytes: &[u64],
        breadth_first: &Topology,
    ) -> Request {
        let (algorithm, sync) = algorithm_name(candidate.operation);
        let request = Request {
            operation: candidate.operation,
            pacing: candidate.pacing,
            algorithm,
            sync,
            ..self.clone()
        };
        let Some(baseline) = candidate.baseline else {
            return request;
        };
        let own = baseline.lay(breadth_first.clone(), bytes);
        Request {
            algorithm: baseline.name(),
            tree_name: own.name,
            nodes: own.nodes,
            tree: Arc::new(own.tree),
            ..request
        }
    }
}
