//! The algorithms of a broadcast, as they are typed.

use std::str::FromStr;

use flitcast_proto::ops::{Broadcast, Operation};

/// How to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastAlgorithm {
    /// Whichever takes the fewest steps.
    Auto,
    /// Flit after flit as the token goes, on the given tree.
    Rounds,
    /// The most urgent child first, on the given tree.
    Urgent,
    /// The whole message to one child after the other, on the given tree.
    ChildByChild,
    /// Along all PEs, where all reach each other.
    Path,
    /// Over a tree of so many children for each PE, where all reach each other.
    Kary(u32),
    /// Over the trees of a hypercube, where all reach each other.
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
    /// As it is typed.
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

    /// Whether it goes over the tree that is given.
    pub fn is_for_trees(self) -> bool {
        use BroadcastAlgorithm::{ChildByChild, Rounds, Urgent};
        matches!(self, Rounds | Urgent | ChildByChild)
    }

    /// What PEs do, where it is run: over the given tree, or one that it lays.
    pub fn operation(self) -> Operation {
        Operation::Broadcast(match self {
            BroadcastAlgorithm::Urgent => Broadcast::Urgent,
            BroadcastAlgorithm::ChildByChild => Broadcast::ChildByChild,
            BroadcastAlgorithm::Hypercube => Broadcast::Hypercube,
            _ => Broadcast::Rounds,
        })
    }

    /// The tree that it lays over so many PEs that all reach each other, if it lays one.
    pub fn tree(self, pes: usize) -> Option<String> {
        match self {
            BroadcastAlgorithm::Path => Some(format!("path:{pes}")),
            BroadcastAlgorithm::Kary(arity) => Some(format!("kary:{arity}:{pes}")),
            _ => None,
        }
    }
}
