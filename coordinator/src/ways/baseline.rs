//! What users know, run for real, to measure the schedules against. A baseline lays a
//! tree of its own over PEs that can all reach each other.

use flitcast_proto::baseline::{adaptive_tree, binomial_tree};
use flitcast_proto::ops::Operation;
use flitcast_proto::{PeId, Tree};

use crate::site::topology::Topology;
use crate::ways::candidates::Unfit;

/// Requests that the windowed gather keeps under way.
pub const WINDOW: usize = 4;

/// A baseline of a real run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// One PE after the other.
    Linear,
    /// [`WINDOW`] PEs under way at once.
    Window,
    /// A binomial tree of PEs that combine.
    Binomial,
    /// Träff's tree of PEs that combine.
    Adaptive,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Baseline; 4] = [
        Baseline::Linear,
        Baseline::Window,
        Baseline::Binomial,
        Baseline::Adaptive,
    ];

    /// The baseline of this name.
    pub fn named(name: &str) -> Option<Baseline> {
        let mut all = Baseline::ALL.into_iter();
        all.find(|baseline| baseline.name() == name)
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Linear => "linear",
            Baseline::Window => "window",
            Baseline::Binomial => "binomial",
            Baseline::Adaptive => "adaptive",
        }
    }

    /// What its PEs do in the operation of this name, if it does that.
    pub fn operation(self, name: &str) -> Option<Operation> {
        let operations: &[Operation] = match self {
            // On a star every order is farthest first, and this one is by index.
            Baseline::Linear => &[Operation::Scatter, Operation::LinearGather { window: 1 }],
            Baseline::Window => &[Operation::LinearGather {
                window: WINDOW as u32,
            }],
            Baseline::Binomial | Baseline::Adaptive => {
                &[Operation::CombiningScatter, Operation::CombiningGather]
            }
        };
        let mut operations = operations.iter().copied();
        operations.find(|operation| operation.name() == name)
    }

    /// That every PE can be another's neighbour: the tree over them is a star, and no
    /// address of theirs is good for one of its edges only.
    pub fn check(self, topology: &Topology) -> Result<(), Unfit> {
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
            false => Err(Unfit::NotComplete {
                spec: topology.name.clone(),
            }),
        }
    }

    /// Its own tree, `bytes[i]` being the length of M_i.
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
