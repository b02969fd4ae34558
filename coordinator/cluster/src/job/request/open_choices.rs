//! The alternatives that a request leaves open: algorithms, pacings and flit sizes. `choose.rs`
//! chooses.

use flitcast_proto::schedule::pace::Pacing;

use crate::algorithms::candidates::{self, Candidate};
use crate::options::args::RoundArgs;
use crate::options::baseline::Baseline;
use crate::options::names::typed;
use crate::options::sync::TokenArg;

/// The extent to which a command line leaves its algorithm and its tree open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Neither is named: both are chosen where that is possible, and else they are the usual ones.
    Unnamed,
    /// `--algorithm auto`: both are chosen, or the tree is named.
    Auto,
    /// `--tree auto`: the tree is chosen, and the algorithm unless it is named.
    Tree,
}

impl Open {
    /// Returns what is to be chosen, or `None` for nothing: whether the algorithm is `unnamed` or
    /// `auto`.
    fn of(round: &RoundArgs, unnamed: bool, auto: bool) -> Option<Open> {
        let tree = &round.transfer.tree;
        // These are about one algorithm on one tree.
        let is_about_one = round.packets.is_some() || round.cover || tree.spanning.is_some();
        match () {
            () if auto => Some(Open::Auto),
            () if tree.is_auto() => Some(Open::Tree),
            () if unnamed && tree.tree.is_none() && !is_about_one => Some(Open::Unnamed),
            () => None,
        }
    }
}

/// The alternatives of a request.
pub struct OpenChoices {
    /// The parts that are to be chosen.
    pub open: Open,
    /// Whether the tree of the network is to be chosen, too.
    pub any_tree: bool,
    /// All algorithms that work.
    pub candidates: Vec<Candidate>,
    /// Whether the user requested a pacing.
    pub any_pacing: bool,
    /// Whether the user requested a baseline, or a comparison with all of them.
    pub any_baseline: bool,
}

impl OpenChoices {
    /// Returns all algorithms of an operation, if any are to be chosen from: whether the algorithm is
    /// `unnamed` or `auto`.
    pub fn of(
        round: &RoundArgs,
        unnamed: bool,
        auto: bool,
        operation: &str,
    ) -> Option<OpenChoices> {
        let open = Open::of(round, unnamed, auto)?;
        Some(OpenChoices {
            open,
            any_tree: false,
            candidates: candidates::all(operation),
            any_pacing: false,
            any_baseline: round.compares,
        })
    }

    /// Keeps only the requested alternatives.
    pub fn keep(
        mut self,
        algorithm: Option<&str>,
        token: Option<TokenArg>,
        pacing: Option<Pacing>,
    ) -> OpenChoices {
        let is_named = |candidate: &Candidate| Some(candidate.algorithm()) == algorithm;
        self.any_baseline |= algorithm.and_then(Baseline::named).is_some();
        // A name that matches none of them leaves all open.
        let names_any = self.candidates.iter().any(is_named);
        let sync = token.map(|token| typed(&token));
        self.candidates.retain(|candidate| {
            let has_sync = sync.is_none() || candidate.operation.sync() == sync.as_deref();
            let has_pacing = pacing.is_none() || candidate.pacing == pacing;
            (is_named(candidate) || !names_any) && has_sync && has_pacing
        });
        self
    }
}
