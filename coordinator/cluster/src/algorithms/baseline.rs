//! The trees of baselines. A baseline builds its own tree over PEs that form a complete network.

use flitcast_plan::baseline::{adaptive_tree, binomial_tree};
use flitcast_proto::{PeId, Tree};

use crate::algorithms::unfit::NotApplicable;
use crate::options::baseline::Baseline;
use crate::site::topology::Topology;

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
