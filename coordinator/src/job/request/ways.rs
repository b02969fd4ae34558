//! What a request may be chosen from, where it is: the algorithms, pacings and flit sizes
//! that were left open. `choose.rs` chooses.

use flitcast_proto::schedule::pace::Pacing;

use super::Request;
use crate::options::args::{GatherAlgorithm, RoundArgs, SyncArg};
use crate::options::names::typed;
use crate::site::topology::Topology;
use crate::ways::candidates::Candidate;

/// What may be chosen from.
pub struct Ways {
    /// All that work.
    pub candidates: Vec<Candidate>,
    /// A pacing is asked for.
    pub any_pacing: bool,
}

impl Ways {
    /// Only those that are asked for.
    pub fn keep(
        mut self,
        algorithm: Option<GatherAlgorithm>,
        sync: Option<SyncArg>,
        pacing: Option<Pacing>,
    ) -> Ways {
        let algorithm = algorithm.map(|algorithm| typed(&algorithm));
        let is_named =
            |candidate: &Candidate| Some(candidate.operation.algorithm()) == algorithm.as_deref();
        // What names none of them leaves all open.
        let names_any = self.candidates.iter().any(is_named);
        let sync = sync.map(|sync| typed(&sync));
        self.candidates.retain(|candidate| {
            let has_sync = sync.is_none() || candidate.operation.sync() == sync.as_deref();
            let has_pacing = pacing.is_none() || candidate.pacing == pacing;
            (is_named(candidate) || !names_any) && has_sync && has_pacing
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
        let mut request = self.clone();
        request.way = candidate.way(self.way.flit_bytes);
        if let Some(baseline) = candidate.baseline {
            let own = baseline.lay(breadth_first.clone(), bytes);
            request.site = request.site.with_tree(own);
        }
        request
    }
}
