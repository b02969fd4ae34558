//! The algorithms of a broadcast, as values of `--algorithm`.

use std::str::FromStr;

use flitcast_plan::Algorithm;

/// How to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastAlgorithm {
    /// The algorithm with the fewest steps.
    Auto,
    /// Flit after flit along the token's path, on the given tree.
    Rounds,
    /// The most urgent child first, on the given tree.
    Urgent,
    /// The whole message to one child after the other, on the given tree.
    ChildByChild,
    /// Along a path of all PEs, in a complete network.
    Path,
    /// Over a tree in which each PE has at most this number of children, in a complete network.
    Kary(u32),
    /// Over the trees of a hypercube, in a complete network.
    Hypercube,
}

impl FromStr for BroadcastAlgorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<BroadcastAlgorithm, String> {
        let arity = text.strip_prefix("kary:").map(str::parse);
        Ok(match (text, arity) {
            ("auto", _) => BroadcastAlgorithm::Auto,
            ("rounds", _) => BroadcastAlgorithm::Rounds,
            ("urgent", _) => BroadcastAlgorithm::Urgent,
            ("child-by-child", _) => BroadcastAlgorithm::ChildByChild,
            ("path", _) => BroadcastAlgorithm::Path,
            ("hypercube", _) => BroadcastAlgorithm::Hypercube,
            (_, Some(Ok(arity))) if arity > 0 => BroadcastAlgorithm::Kary(arity),
            _ => {
                return Err(format!(
                    "`{text}` is no way to broadcast: auto, rounds, urgent or child-by-child on a \
                     tree; auto, path, kary:K (K at least 1) or hypercube with --network complete:N"
                ));
            }
        })
    }
}

impl BroadcastAlgorithm {
    /// Returns the algorithm as `--algorithm` accepts it.
    pub fn name(self) -> String {
        match self {
            BroadcastAlgorithm::Auto => "auto".to_owned(),
            BroadcastAlgorithm::Rounds => "rounds".to_owned(),
            BroadcastAlgorithm::Urgent => "urgent".to_owned(),
            BroadcastAlgorithm::ChildByChild => "child-by-child".to_owned(),
            BroadcastAlgorithm::Path => "path".to_owned(),
            BroadcastAlgorithm::Kary(arity) => format!("kary:{arity}"),
            BroadcastAlgorithm::Hypercube => "hypercube".to_owned(),
        }
    }

    /// Returns whether the algorithm uses the given tree.
    pub fn is_for_trees(self) -> bool {
        use BroadcastAlgorithm::{ChildByChild, Rounds, Urgent};
        matches!(self, Rounds | Urgent | ChildByChild)
    }

    /// Returns the operation that PEs run, over the given tree or over one that the algorithm builds.
    pub fn operation(self) -> Algorithm {
        match self {
            BroadcastAlgorithm::Urgent => Algorithm::BROADCAST_URGENT,
            BroadcastAlgorithm::ChildByChild => Algorithm::BROADCAST_CHILD_BY_CHILD,
            BroadcastAlgorithm::Hypercube => Algorithm::BROADCAST_HYPERCUBE,
            _ => Algorithm::BROADCAST_ROUNDS,
        }
    }

    /// Returns the specification of the tree that the algorithm builds in a complete network of `pes`
    /// PEs, if it builds one.
    pub fn tree(self, pes: usize) -> Option<String> {
        match self {
            BroadcastAlgorithm::Path => Some(format!("path:{pes}")),
            BroadcastAlgorithm::Kary(arity) => Some(format!("kary:{arity}:{pes}")),
            _ => None,
        }
    }
}
