//! A command line of any operation before it is checked, and the alternatives that it leaves open: algorithms,
//! pacings and flit sizes. `choose.rs` chooses.
//! Static schedules over the edges of a tree have a limit, since their size and prediction grow with the number of
//! crossings.

use std::ffi::OsString;

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Collective;
use flitcast_proto::schedule::pace::Pacing;

use super::input;
use crate::algorithms::candidates::{self, Candidate};
use crate::algorithms::plan_limits::MOST_PREDICTED_CROSSINGS;
use crate::options::args::RoundArgs;
use crate::options::baseline::Baseline;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::names::typed;
use crate::options::ports::Ports;
use crate::options::sync::TokenArg;
use crate::options::transfer::Division;
use crate::options::tree::SpanningArg;
use crate::site::topology::Topology;

/// The parts of a request that each command computes itself.
pub struct RequestSpec {
    /// The options that all operations have.
    pub round: RoundArgs,
    /// The option that names the root, and its value.
    pub root: Option<(&'static str, String)>,
    /// Whether all files are distributed over the PEs.
    pub spread: bool,
    /// The entries of the input that are distributed whole; empty if all files are.
    pub shards: Vec<OsString>,
    /// The division of one file; `None` if it is not divided.
    pub division: Option<Division>,
    /// The way to span a network.
    pub spanning: SpanningArg,
    /// The algorithm, if it may build its own tree.
    pub lays: Option<BroadcastAlgorithm>,
    /// The requested use of ports.
    pub ports: Option<Ports>,
    /// The baseline, if the algorithm is one.
    pub baseline: Option<Baseline>,
    /// The alternatives, if the command line leaves any open.
    pub ways: Option<OpenChoices>,
    /// The order of the messages as it was typed, or the error that there is none to choose.
    pub order: anyhow::Result<Option<String>>,
    /// An operation with messages of this kind, so that they can be checked without a valid
    /// operation.
    pub like: Algorithm,
}

impl RequestSpec {
    /// Creates a command line without any option, on a tree that is spanned in this way.
    pub fn new(round: RoundArgs, spanning: SpanningArg, like: Algorithm) -> RequestSpec {
        RequestSpec {
            round,
            root: None,
            spread: false,
            shards: Vec::new(),
            division: None,
            spanning,
            lays: None,
            ports: None,
            baseline: None,
            ways: None,
            order: Ok(None),
            like,
        }
    }

    /// Returns the option that distributes the input over the PEs, if there is one.
    pub fn dealt_by(&self) -> Option<&'static str> {
        let option = match self.division {
            Some(_) => "dividing a file (--lines, --blocks, --split)",
            None => "--spread",
        };
        self.spread.then_some(option)
    }

    /// Takes the number of PEs from the entries of the input where no option gives it, or else adds the
    /// reason why the input does not give it.
    pub fn count_by_input(&mut self) {
        let input = self.round.input.as_deref().filter(|_| !self.spread);
        let layout = self.like.collective().layout();
        let tree = &mut self.round.transfer.tree;
        input::count_by_input(tree, input, layout);
        if tree.pe_options().is_empty() {
            tree.uncounted = match (input, self.division, self.spread) {
                (_, Some(_), _) => Some(
                    "the number of parts is not given; add -n N, --split N or --hosts HOSTS"
                        .to_owned(),
                ),
                (_, None, true) => Some(
                    "--spread: the number of PEs is not given; add -n N or --hosts HOSTS"
                        .to_owned(),
                ),
                (Some(input), ..) => input::uncounted(input, layout),
                (None, ..) => None,
            };
        }
    }

    /// Returns an error with the options that fit the entries of the input, if these are too many.
    pub fn count_fault(&self, topology: &Topology) -> Option<anyhow::Error> {
        let input = self.round.input.as_deref().filter(|_| !self.spread)?;
        input::count_fault(input, self.like.collective().layout(), topology)
    }
}

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

/// The alternatives of a request.
pub struct OpenChoices {
    /// The parts that are to be chosen.
    pub open: Open,
    /// Whether the tree of the network is to be chosen, too.
    pub any_tree: bool,
    /// All algorithms that work.
    pub candidates: Vec<Candidate>,
    /// Whether the user requested a pacing: then no other is offered, and it need not be a safe one.
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
        let tree = &round.transfer.tree;
        // These are about one algorithm on one tree.
        let is_about_one = round.packets.is_some() || round.cover || tree.spanning.is_some();
        Some(OpenChoices {
            open: match () {
                () if auto => Open::Auto,
                () if tree.is_auto() => Open::Tree,
                () if unnamed && tree.tree.is_none() && !is_about_one => Open::Unnamed,
                () => return None,
            },
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

/// Checks that the static schedule of an operation can be planned. `spec` is the name of the tree, and
/// `bytes` is by delivery.
///
/// # Errors
///
/// Returns an error if the schedule has more than [`MOST_PREDICTED_CROSSINGS`] crossings.
pub fn check_crossings(
    operation: Algorithm,
    tree: &Tree,
    spec: &str,
    bytes: &[u64],
) -> anyhow::Result<()> {
    let crossings = operation.least_crossings(tree, bytes);
    match crossings > MOST_PREDICTED_CROSSINGS {
        true => {
            let (operation, pes) = (operation.collective(), tree.count());
            let instead = match operation {
                Collective::Exchange => format!("--network complete:{pes}, or fewer PEs"),
                _ => "fewer PEs".to_owned(),
            };
            let operation = operation.name();
            Err(anyhow!(
                "{operation} over the edges of {spec}: {crossings} crossings of edges are too many to \
                 plan, the maximum is {MOST_PREDICTED_CROSSINGS}; use {instead}"
            ))
        }
        false => Ok(()),
    }
}

/// Checks that the schedule of `operation` on the first tree can be planned, or, if the command line
/// leaves algorithms open, that of at least one of them on one of the trees. A missing argument has its
/// own error.
///
/// # Errors
///
/// Returns the error of the first schedule.
pub fn check_any(
    operation: Option<Algorithm>,
    ways: Option<&OpenChoices>,
    offered: Option<&[Topology]>,
    bytes: Option<&[u64]>,
) -> anyhow::Result<()> {
    let (Some(operation), Some(offered), Some(bytes)) = (operation, offered, bytes) else {
        return Ok(());
    };
    let check = |operation, on: &Topology| check_crossings(operation, &on.tree, &on.name, bytes);
    let Some(ways) = ways else {
        return offered.first().map_or(Ok(()), |on| check(operation, on));
    };
    let on_trees = offered.iter().flat_map(|on| {
        let candidates = ways.candidates.iter().map(move |candidate| (candidate, on));
        candidates.filter(|(candidate, on)| candidate.check(on, on).is_ok())
    });
    let mut first = None;
    for (candidate, on) in on_trees {
        match check(candidate.operation, on) {
            Ok(()) => return Ok(()),
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    first.map_or(Ok(()), Err)
}
