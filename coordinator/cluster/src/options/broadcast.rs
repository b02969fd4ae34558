//! The algorithms of a broadcast, as values of `--algorithm`.

use std::str::FromStr;

use flitcast_plan::Algorithm;
use flitcast_proto::ops::Collective;

use crate::options::values::{AUTO, is_for_trees, joined};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastAlgorithm {
    /// The algorithm with the fewest steps.
    Auto,
    /// An algorithm of the registry, on the given tree or, in a complete network, over its own edges.
    Listed(Algorithm),
    /// Along a path of all PEs, in a complete network.
    Path,
    /// Over a tree in which each PE has at most this number of children, in a complete network.
    Kary(u32),
}

impl FromStr for BroadcastAlgorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<BroadcastAlgorithm, String> {
        let arity = text.strip_prefix("kary:").map(str::parse);
        let mut listed = Algorithm::offered(Collective::Broadcast);
        let listed = listed.find(|one| one.name() == text);
        Ok(match (text, arity, listed) {
            (AUTO, ..) => BroadcastAlgorithm::Auto,
            ("path", ..) => BroadcastAlgorithm::Path,
            (_, Some(Ok(arity)), _) if arity > 0 => BroadcastAlgorithm::Kary(arity),
            (.., Some(listed)) => BroadcastAlgorithm::Listed(listed),
            _ => {
                let forms = BroadcastAlgorithm::forms("kary:K (K at least 1)");
                return Err(format!("`{text}` is no way to broadcast: {forms}"));
            }
        })
    }
}

impl BroadcastAlgorithm {
    /// Returns all names, with this form of those of trees with a number of children.
    pub fn forms(kary: &'static str) -> String {
        let names = |on_trees| {
            let all = Algorithm::offered(Collective::Broadcast);
            let all = all.filter(move |one| is_for_trees(*one) == on_trees);
            all.map(Algorithm::name)
        };
        let over_tree = [AUTO].into_iter().chain(names(true));
        let among_all = [AUTO, "path", kary].into_iter().chain(names(false));
        format!(
            "{} on a tree; {} with --network complete:N",
            joined(over_tree, "or"),
            joined(among_all, "or"),
        )
    }

    /// Returns the algorithms that build their own trees in a complete network and are worth comparing.
    pub fn among_all() -> impl Iterator<Item = BroadcastAlgorithm> {
        let arities = (2..=4).map(BroadcastAlgorithm::Kary);
        let listed = Algorithm::offered(Collective::Broadcast).filter(|one| !is_for_trees(*one));
        let trees = [BroadcastAlgorithm::Path].into_iter().chain(arities);
        trees.chain(listed.map(BroadcastAlgorithm::Listed))
    }

    /// Returns the algorithm as `--algorithm` accepts it.
    pub fn name(self) -> String {
        match self {
            BroadcastAlgorithm::Auto => AUTO.to_owned(),
            BroadcastAlgorithm::Listed(one) => one.name().to_owned(),
            BroadcastAlgorithm::Path => "path".to_owned(),
            BroadcastAlgorithm::Kary(arity) => format!("kary:{arity}"),
        }
    }

    /// Returns whether the algorithm uses the given tree.
    pub fn is_for_trees(self) -> bool {
        matches!(self, BroadcastAlgorithm::Listed(one) if is_for_trees(one))
    }

    /// Returns the operation that PEs run, over the given tree or over one that the algorithm builds.
    pub fn operation(self) -> Algorithm {
        match self {
            BroadcastAlgorithm::Listed(one) => one,
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
