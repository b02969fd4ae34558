//! Plans of broadcasts where all PEs reach each other, by the algorithms that lay trees of their own
//! there. Who asks for which is not said here.

use flitcast_proto::ops::broadcast_plan::{self, Broadcast};
use flitcast_proto::{PeId, Tree};

use crate::options::broadcast::BroadcastAlgorithm;
use crate::site::topology::tree_of_shape;
use crate::ways::plan_limits::{TooMuch, check_size};

/// Why there is no plan by an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlanned {
    /// It is not for so many PEs.
    Unfit(String),
    /// It is more than can be planned.
    TooMuch(TooMuch),
}

/// A plan over a tree that its algorithm has laid.
#[derive(Clone, Debug)]
pub struct Laid {
    /// Rooted at the source; of several trees, any of all PEs.
    pub tree: Tree,
    /// What crosses when.
    pub plan: Broadcast,
}

/// The algorithms that lay trees of their own over so many PEs and are worth a try.
pub fn laying(pes: usize) -> impl Iterator<Item = BroadcastAlgorithm> {
    let arities = (2..=4).map(BroadcastAlgorithm::Kary);
    let cube = pes
        .is_power_of_two()
        .then_some(BroadcastAlgorithm::Hypercube);
    let path = [BroadcastAlgorithm::Path].into_iter();
    path.chain(arities).chain(cube)
}

/// The plan by an algorithm that lays its own trees, from this PE.
///
/// # Errors
///
/// Why there is none.
pub fn among_all(
    algorithm: BroadcastAlgorithm,
    pes: usize,
    from: PeId,
    flits: u64,
) -> Result<Laid, NotPlanned> {
    if let Some(shape) = algorithm.tree(pes) {
        let tree = tree_of_shape(&shape, from).map_err(NotPlanned::Unfit)?;
        let plan = broadcast_plan::rounds(&tree, flits);
        return Ok(Laid { tree, plan });
    }
    if !pes.is_power_of_two() {
        return Err(NotPlanned::Unfit(format!("{pes} is no power of 2")));
    }
    check_size(flits, pes).map_err(NotPlanned::TooMuch)?;
    let tree = tree_of_shape(&format!("path:{pes}"), from).map_err(NotPlanned::Unfit)?;
    let mut plan = broadcast_plan::hypercube(pes.ilog2(), flits);
    // The plan is one from P0.
    for leg in &mut plan.legs {
        let seen = |pe: PeId| PeId(pe.0 ^ from.0);
        (leg.from, leg.to) = (seen(leg.from), seen(leg.to));
    }
    Ok(Laid { tree, plan })
}
