//! Plans of broadcasts in a complete network, by the algorithms that build their own trees.

use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{ListTask, NotPlanned};
use flitcast_plan::cost::Ports;
use flitcast_proto::{PeId, Tree};

use crate::options::broadcast::BroadcastAlgorithm;
use crate::site::topology::tree_of_shape;

/// Returns the plan of a message from one PE to all others, with one port for each PE, and the tree that
/// is rooted there: the algorithm's own, or `tree` if it has none or several.
///
/// # Errors
///
/// Returns an error if the algorithm does not support the PEs, or if the plan would be too large.
pub fn among_all(
    algorithm: BroadcastAlgorithm,
    tree: &Tree,
    from: PeId,
    flits: u64,
) -> Result<(Tree, Timetable), NotPlanned> {
    let own = algorithm
        .tree(tree.len())
        .map(|shape| tree_of_shape(&shape, from));
    let own = own.transpose().map_err(NotPlanned::Unfit)?;
    let tree = own.unwrap_or_else(|| tree.rerooted(from));
    let flits = [flits];
    let task = ListTask::new(&tree, from, &flits, Ports::Single);
    let plan = algorithm.operation().list(&task)?;
    Ok((tree, plan))
}
