//! The limit of static schedules over the edges of a tree, whose size and prediction grow with the
//! number of crossings.

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Collective;

use super::spec::OpenChoices;
use crate::algorithms::plan_limits::MOST_PREDICTED_CROSSINGS;
use crate::site::topology::Topology;

/// Checks that the static schedule of an operation can be planned. `spec` is the name of the tree, and
/// `bytes` is by delivery.
///
/// # Errors
///
/// Returns an error if the schedule has more than [`MOST_PREDICTED_CROSSINGS`] crossings.
pub fn check_crossings(
    operation: Algorithm,
    tree: &Tree,
    spec: &str,
    bytes: &[u64],
) -> anyhow::Result<()> {
    let crossings = operation.least_crossings(tree, bytes);
    match crossings > MOST_PREDICTED_CROSSINGS {
        true => {
            let (operation, pes) = (operation.collective(), tree.count());
            let instead = match operation {
                Collective::Exchange => format!("--network complete:{pes}, or fewer PEs"),
                _ => "fewer PEs".to_owned(),
            };
            let operation = operation.name();
            Err(anyhow!(
                "{operation} over the edges of {spec}: {crossings} crossings of edges are too many to \
                 plan, the maximum is {MOST_PREDICTED_CROSSINGS}; use {instead}"
            ))
        }
        false => Ok(()),
    }
}

/// Checks that the schedule of `operation` on the first tree can be planned, or, if the command line
/// leaves algorithms open, that of at least one of them on one of the trees. A missing argument has its
/// own error.
///
/// # Errors
///
/// Returns the error of the first schedule.
pub fn check_any(
    operation: Option<Algorithm>,
    ways: Option<&OpenChoices>,
    offered: Option<&[Topology]>,
    bytes: Option<&[u64]>,
) -> anyhow::Result<()> {
    let (Some(operation), Some(offered), Some(bytes)) = (operation, offered, bytes) else {
        return Ok(());
    };
    let check = |operation, on: &Topology| check_crossings(operation, &on.tree, &on.name, bytes);
    let Some(ways) = ways else {
        return offered.first().map_or(Ok(()), |on| check(operation, on));
    };
    let on_trees = offered.iter().flat_map(|on| {
        let candidates = ways.candidates.iter().map(move |candidate| (candidate, on));
        candidates.filter(|(candidate, on)| candidate.check(on, on).is_ok())
    });
    let mut first = None;
    for (candidate, on) in on_trees {
        match check(candidate.operation, on) {
            Ok(()) => return Ok(()),
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    first.map_or(Ok(()), Err)
}
