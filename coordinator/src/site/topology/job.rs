//! Trees for `--cluster slurm`: the tasks of this Slurm job, on a star, which is the best tree for
//! a complete network, or on the `--tree` that was typed. `slurm` reads the environment of the job.

use super::error::TopologyError;
use super::found::Topology;
use super::typed::tree_of;
use crate::site::cluster_file::across_hosts;
use crate::site::slurm::{Slurm, environment};

/// Returns the tree over the tasks of this job.
///
/// # Errors
///
/// Returns an error if this is not a Slurm job or the tree is invalid.
pub fn of_job(slurm: Slurm, tree: Option<&str>) -> Result<Vec<Topology>, TopologyError> {
    let spec = match tree {
        Some(spec) => spec.to_owned(),
        None => format!("star:{}", slurm.pes(environment)?),
    };
    let mut trees = tree_of(&spec)?;
    for topology in &mut trees {
        let placement = slurm.placement(topology.tree.len(), environment)?;
        if let (false, Some(place)) = (topology.links.is_empty(), placement.away()) {
            return Err(TopologyError::Value {
                option: "--tree",
                value: spec,
                why: across_hosts(None, &place.address),
            });
        }
        topology.name = format!("{} in Slurm", topology.name);
        topology.placement = Some(placement);
    }
    Ok(trees)
}
