//! Plans of broadcasts in a complete network, by the algorithms that build their own trees.

use flitcast_plan::algorithms::broadcast_plan::{self, Broadcast};
use flitcast_proto::{PeId, Tree};

use crate::algorithms::plan_limits::{PlanTooLarge, check_size};
use crate::options::broadcast::BroadcastAlgorithm;
use crate::site::topology::tree_of_shape;

/// The reason why an algorithm has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlanned {
    /// The algorithm does not support this number of PEs.
    Unfit(String),
    /// The plan exceeds a limit.
    TooMuch(PlanTooLarge),
}

/// A plan over a tree that the algorithm has built.
#[derive(Clone, Debug)]
pub struct PlannedTree {
    /// A tree that is rooted at the source; of several trees, any one that contains all PEs.
    pub tree: Tree,
    /// The plan of all crossings.
    pub plan: Broadcast,
}

/// Returns the algorithms that build their own trees over `pes` PEs and are worth comparing.
pub fn laying(pes: usize) -> impl Iterator<Item = BroadcastAlgorithm> {
    let arities = (2..=4).map(BroadcastAlgorithm::Kary);
    let cube = pes
        .is_power_of_two()
        .then_some(BroadcastAlgorithm::Hypercube);
    let path = [BroadcastAlgorithm::Path].into_iter();
    path.chain(arities).chain(cube)
}

/// Returns the plan by an algorithm that builds its own trees, with `from` as source.
///
/// # Errors
///
/// Returns an error if the algorithm does not support `pes` PEs, or if the plan would be too large.
pub fn among_all(
    algorithm: BroadcastAlgorithm,
    pes: usize,
    from: PeId,
    flits: u64,
) -> Result<PlannedTree, NotPlanned> {
    if let Some(shape) = algorithm.tree(pes) {
        let tree = tree_of_shape(&shape, from).map_err(NotPlanned::Unfit)?;
        let plan = broadcast_plan::rounds(&tree, flits);
        return Ok(PlannedTree { tree, plan });
    }
    if !pes.is_power_of_two() {
        return Err(NotPlanned::Unfit(format!("{pes} is not a power of 2")));
    }
    check_size(flits, pes).map_err(NotPlanned::TooMuch)?;
    let tree = tree_of_shape(&format!("path:{pes}"), from).map_err(NotPlanned::Unfit)?;
    let mut plan = broadcast_plan::hypercube(pes.ilog2(), flits);
    // The plan has P0 as source; XOR renames the PEs.
    for hop in &mut plan.hops {
        let seen = |pe: PeId| PeId(pe.0 ^ from.0);
        (hop.from, hop.to) = (seen(hop.from), seen(hop.to));
    }
    Ok(PlannedTree { tree, plan })
}
