//! The trees of a comparison: the given one, or those that span a network.

use std::sync::Arc;

use flitcast_proto::Tree;

use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::text::faults::Faults;

/// A tree by its name.
pub struct Named {
    /// `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    pub name: String,
    pub tree: Arc<Tree>,
    /// Names of the PEs, by index; empty if they have none.
    pub names: Vec<String>,
}

/// Returns the text that limits a bound to these trees, because it does not hold for all trees of the
/// network.
pub fn over(trees: &[Named]) -> &'static str {
    match trees {
        [_] => " over this tree",
        _ => " over these trees",
    }
}

/// Returns the tree, or both kinds of spanning tree of a network, unless one is named. The list is not
/// empty.
pub fn spanning(args: &TreeArgs) -> Result<Vec<Named>, Faults> {
    let both = [SpanningArg::Bfs, SpanningArg::Broadcast];
    let topologies = args.topologies(&both)?;
    let mut trees: Vec<Named> = Vec::new();
    for topology in topologies {
        match trees.iter_mut().find(|named| *named.tree == topology.tree) {
            // A tree is not compared with itself under another name.
            Some(named) => named.name.push_str(" (and broadcast)"),
            None => trees.push(Named {
                names: topology.places().names(),
                name: topology.name,
                tree: Arc::new(topology.tree),
            }),
        }
    }
    Ok(trees)
}
