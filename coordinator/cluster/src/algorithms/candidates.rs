//! The algorithms of each operation for real runs: one list for commands that run all or choose
//! among them, and a check of the trees that each supports.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{OfferKind, TreeRequirement};
use flitcast_plan::baseline::{adaptive_tree, binomial_tree};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::algorithms::method::Method;
use crate::options::baseline::Baseline;
use crate::site::placement::Placement;
use crate::site::topology::Topology;

/// An algorithm with its pacing, as an entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name in comparisons.
    pub name: &'static str,
    pub operation: Algorithm,
    pub pacing: Option<Pacing>,
    pub baseline: Option<Baseline>,
}

pub fn check_fits(operation: Algorithm, tree: &Tree, name: &str) -> Result<(), NotApplicable> {
    let fork = tree.pes().find(|&pe| tree.children(pe).len() > 1);
    let (why, instead) = match (operation.fits(), fork) {
        (fits, _) if fits.holds(tree) => return Ok(()),
        (TreeRequirement::Paths, None) => return Ok(()),
        (TreeRequirement::Paths, Some(pe)) => {
            let children = tree.children(pe).len();
            let why = format!("for paths only, and in {name} {pe} has {children} children");
            (why, "--algorithm certification")
        }
        (TreeRequirement::Stars, _) => {
            let far = tree.pes().find(|&pe| tree.depth(pe) > 1);
            let pe = far.unwrap_or(tree.root());
            let why = format!("for stars only, and in {name} {pe} is not a child of the root");
            (why, "--algorithm certification")
        }
        (TreeRequirement::Cubes, _) => {
            let pes = tree.count();
            let why = format!("for 2, 4, 8 and so on PEs, and there are {pes}");
            (why, "--algorithm path")
        }
        _ => return Err(NotApplicable::incomplete(name)),
    };
    Err(NotApplicable { why, instead })
}

/// Checks that an operation supports a tree and the links between its PEs beside the tree.
pub fn check_reach(operation: Algorithm, topology: &Topology) -> Result<(), NotApplicable> {
    let reaches_all = match operation.network() {
        // Packets go directly from end to end, independent of the lines of the network.
        Some(network) => {
            let has_links = |places: &Placement, pe| {
                let partners = network.partners(pe);
                partners.iter().all(|other| places.has_link_for(pe, *other))
            };
            let have_links = |places| topology.tree.pes().all(|pe| has_links(places, pe));
            let placement = topology.placement.as_ref();
            placement.is_none_or(|it| it.has_any_edge() || have_links(it))
        }
        None => topology.reaches_all(),
    };
    if !operation.fits().stays_in_tree() && !reaches_all {
        return Err(NotApplicable::incomplete(&topology.name));
    }
    check_fits(operation, &topology.tree, &topology.name)
}

/// Returns the entries of an algorithm, one for each pacing.
fn entries(operation: Algorithm) -> impl Iterator<Item = Candidate> {
    let ways = operation.offer().ways.iter();
    ways.map(move |&(name, pacing)| Candidate::new(name, operation, pacing))
}

/// Returns the algorithms of the operation of this name that use all links of a PE at once.
pub fn of_all_ports(name: &str) -> Vec<Candidate> {
    let have_all = Algorithm::named(name).filter(|one| one.has_all_ports());
    have_all.flat_map(entries).collect()
}

/// Returns all algorithms of the operation of this name that need no separate links: baselines last,
/// and before them the algorithms for any tree first.
pub fn all(name: &str) -> Vec<Candidate> {
    let mut candidates = in_order(name);
    candidates.sort_by_key(|candidate| candidate.operation.fits() != TreeRequirement::Trees);
    candidates.extend(baselines(name));
    candidates
}

/// Returns the algorithms of the operation of this name that need no separate links, without baselines,
/// in the order of the registry.
pub fn in_order(name: &str) -> Vec<Candidate> {
    let needs_links = |one: &Algorithm| *one == Algorithm::CERTIFICATION_MULTI_PORT;
    let ours = Algorithm::named(name).filter(|one| !needs_links(one));
    ours.flat_map(entries).collect()
}

/// Returns the baselines of the operation of this name.
pub fn baselines(name: &str) -> impl Iterator<Item = Candidate> {
    Baseline::all().filter_map(move |baseline| {
        Some(Candidate {
            baseline: Some(baseline),
            ..Candidate::new(baseline.name(), baseline.operation(name)?, None)
        })
    })
}

/// Returns the algorithms that serve as baselines only: they are never the best choice.
pub fn to_measure_against(name: &str) -> impl Iterator<Item = Candidate> {
    let all = Algorithm::named(name).filter(|one| one.offer().kind == OfferKind::Baseline);
    all.map(|operation| Candidate::new(operation.name(), operation, None))
}

impl Candidate {
    /// Creates an entry that is not a baseline.
    pub fn new(name: &'static str, operation: Algorithm, pacing: Option<Pacing>) -> Candidate {
        Candidate {
            name,
            operation,
            pacing,
            baseline: None,
        }
    }

    /// Returns the name of its algorithm on the command line.
    pub fn algorithm(&self) -> &'static str {
        let operation = || self.operation.name();
        self.baseline.map_or_else(operation, Baseline::name)
    }

    /// Returns the method with this flit size; `None` chooses the best one.
    pub fn way(&self, flit_bytes: Option<u32>) -> Method {
        Method {
            baseline: self.baseline,
            pacing: self.pacing,
            flit_bytes,
            ..Method::of(self.operation)
        }
    }

    /// Checks that the algorithm supports a topology. A baseline is checked on the breadth-first
    /// tree of a network, which is a star if P0 is adjacent to all PEs. With `--tree`, both
    /// topologies are the same.
    pub fn check(
        &self,
        topology: &Topology,
        breadth_first: &Topology,
    ) -> Result<(), NotApplicable> {
        match self.baseline {
            Some(baseline) => baseline.check(breadth_first),
            None => check_reach(self.operation, topology),
        }
    }
}

#[derive(Clone, Debug, Error)]
#[error("{why}")]
pub struct NotApplicable {
    /// The reason, a phrase that follows "is".
    pub why: String,
    /// The option to use instead.
    pub instead: &'static str,
}

impl NotApplicable {
    /// Returns the error of an algorithm that builds its own tree in a complete network.
    pub fn incomplete(tree: &str) -> NotApplicable {
        NotApplicable {
            why: format!("for PEs that can all reach each other, which {tree} does not guarantee"),
            instead: "--network complete:N",
        }
    }
}

impl Baseline {
    /// Checks that P0 can be a neighbour of all PEs: the tree is a star. A baseline that builds
    /// another tree also needs that any two PEs can be neighbours.
    pub fn check(self, topology: &Topology) -> Result<(), NotApplicable> {
        let tree = &topology.tree;
        let is_star = tree.children(PeId::ROOT).len() + 1 == tree.len();
        let stays = matches!(self, Baseline::Linear | Baseline::Window);
        let placement = topology.placement.as_ref();
        let network = topology.network.as_ref();
        let any_edge = placement.is_none_or(|placement| {
            placement.has_any_edge() && network.is_none_or(|spanned| spanned.network.is_complete())
        });
        match is_star && (stays || any_edge) {
            true => Ok(()),
            false => Err(NotApplicable::incomplete(&topology.name)),
        }
    }

    /// Replaces the tree by the baseline's own tree; `bytes[i]` is the length of M_i.
    pub fn lay(self, topology: Topology, bytes: &[u64]) -> Topology {
        let (kind, tree): (_, Tree) = match self {
            Baseline::Linear | Baseline::Window => return topology,
            Baseline::Binomial => ("binomial", binomial_tree(bytes.len())),
            Baseline::Adaptive => ("adaptive", adaptive_tree(bytes)),
        };
        Topology {
            name: format!("{}, {kind} tree", topology.name),
            tree,
            ..topology
        }
    }
}
