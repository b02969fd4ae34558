//! The trees that ways are compared on: the one that is given, or those that span a network.

use std::sync::Arc;

use flitcast_proto::Tree;

use super::CompareError;
use crate::options::tree::{SpanningArg, TreeArgs};

/// A tree by its name.
pub struct Named {
    /// `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    pub name: String,
    /// The tree.
    pub tree: Arc<Tree>,
}

/// What a bound is for that holds for each of these trees, and not for all that a network has.
pub fn over(trees: &[Named]) -> &'static str {
    match trees {
        [_] => " over this tree",
        _ => " over these trees",
    }
}

/// The tree; of a network, both kinds of spanning tree, unless one is named. At least one.
///
/// # Errors
///
/// All that is wrong.
pub fn spanning(args: &TreeArgs) -> Result<Vec<Named>, Vec<CompareError>> {
    let both = [SpanningArg::Bfs, SpanningArg::Broadcast];
    let topologies = args.topologies(&both);
    let topologies =
        topologies.map_err(|all| all.into_iter().map(CompareError::from).collect::<Vec<_>>())?;
    let mut trees: Vec<Named> = Vec::new();
    for topology in topologies {
        match trees.iter_mut().find(|named| *named.tree == topology.tree) {
            // The same tree by another name is not compared with itself.
            Some(named) => named.name.push_str(" (and broadcast)"),
            None => trees.push(Named {
                name: topology.name,
                tree: Arc::new(topology.tree),
            }),
        }
    }
    Ok(trees)
}
