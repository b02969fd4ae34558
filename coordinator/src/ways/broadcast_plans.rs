//! Plans of broadcasts where all PEs reach each other, by the algorithms that lay trees of their own
//! there, and what keeps a broadcast from being planned. Who asks for which is not said here.

use flitcast_proto::ops::broadcast_plan::{self, Broadcast};
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::options::broadcast::BroadcastAlgorithm;
use crate::site::topology::tree_of_shape;

/// Crossings that a plan may have which are worked out flit by flit.
pub const MOST_CROSSINGS: u64 = 20_000_000;

/// A plan that is worked out flit by flit, of too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("--size: {crossings} flits to plan one by one are too many, at most {most} are planned so")]
pub struct TooManyCrossings {
    /// How many.
    pub crossings: u64,
    /// How many there may be.
    pub most: u64,
}

/// Why there is no plan by an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlanned {
    /// It is not for so many PEs.
    Unfit(String),
    /// It would take too long.
    TooLong(TooManyCrossings),
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

/// That so many flits to so many PEs can be planned one by one.
///
/// # Errors
///
/// That they are too many.
pub fn check_crossings(flits: u64, pes: usize) -> Result<(), TooManyCrossings> {
    let (crossings, most) = (flits.saturating_mul(pes as u64), MOST_CROSSINGS);
    match crossings > most {
        true => Err(TooManyCrossings { crossings, most }),
        false => Ok(()),
    }
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
    check_crossings(flits, pes).map_err(NotPlanned::TooLong)?;
    let tree = tree_of_shape(&format!("path:{pes}"), from).map_err(NotPlanned::Unfit)?;
    let mut plan = broadcast_plan::hypercube(pes.ilog2(), flits);
    // The plan is one from P0.
    for leg in &mut plan.legs {
        let seen = |pe: PeId| PeId(pe.0 ^ from.0);
        (leg.from, leg.to) = (seen(leg.from), seen(leg.to));
    }
    Ok(Laid { tree, plan })
}
