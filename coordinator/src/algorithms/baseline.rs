//! Baselines: well-known algorithms that are run for comparison with the schedules. A baseline
//! builds its own tree over PEs that form a complete network.

use flitcast_plan::Algorithm;
use flitcast_plan::baseline::{adaptive_tree, binomial_tree};
use flitcast_proto::{PeId, Tree};

use crate::algorithms::unfit::NotApplicable;
use crate::site::topology::Topology;

/// Number of requests that the windowed gather keeps under way.
pub const WINDOW: usize = 4;

/// A baseline algorithm of a real run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// One PE after the other.
    Linear,
    /// [`WINDOW`] PEs under way at once.
    Window,
    /// A binomial tree whose PEs combine messages.
    Binomial,
    /// Träff's tree whose PEs combine messages.
    Adaptive,
}

impl Baseline {
    /// All baselines.
    pub const ALL: [Baseline; 4] = [
        Baseline::Linear,
        Baseline::Window,
        Baseline::Binomial,
        Baseline::Adaptive,
    ];

    /// Returns the baseline of this name.
    pub fn named(name: &str) -> Option<Baseline> {
        let mut all = Baseline::ALL.into_iter();
        all.find(|baseline| baseline.name() == name)
    }

    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Linear => "linear",
            Baseline::Window => "window",
            Baseline::Binomial => "binomial",
            Baseline::Adaptive => "adaptive",
        }
    }

    /// Returns the help of the value on the command line.
    pub fn help(self) -> &'static str {
        match self {
            Baseline::Linear => "Baseline on complete:N: one PE after the other",
            Baseline::Window => "Baseline on complete:N: four PEs at a time",
            Baseline::Binomial => {
                "Baseline on complete:N: a binomial tree of PEs that hold a message before they send it on"
            }
            Baseline::Adaptive => {
                "Baseline on complete:N: a binomial tree that spares long messages detours (Träff, arXiv \
                 1702.05967)"
            }
        }
    }

    /// Returns the operation that the PEs run for the operation named `name`, if the baseline
    /// supports it.
    pub fn operation(self, name: &str) -> Option<Algorithm> {
        let operations: &[Algorithm] = match self {
            // On a star every order is farthest first, and this one is by index.
            Baseline::Linear => &[Algorithm::FARTHEST_FIRST, Algorithm::linear_gather(1)],
            Baseline::Window => &[Algorithm::linear_gather(WINDOW as u32)],
            Baseline::Binomial | Baseline::Adaptive => {
                &[Algorithm::COMBINING_SCATTER, Algorithm::COMBINING_GATHER]
            }
        };
        let mut operations = operations.iter().copied();
        operations.find(|operation| operation.collective().name() == name)
    }

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
            false => Err(NotApplicable::NotComplete {
                spec: topology.name.clone(),
            }),
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
