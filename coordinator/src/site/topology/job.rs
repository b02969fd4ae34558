//! What `--cluster slurm` asks for: the tasks of this job of Slurm, on a star, which no tree
//! beats where all reach all, or on the `--tree` that is typed. What the environment says of
//! the job is `slurm`'s business.

use super::{Topology, TopologyError, tree_of};
use crate::site::cluster_file::across_hosts;
use crate::site::slurm::{Slurm, environment};

/// The tree over the tasks of this job.
///
/// # Errors
///
/// This is no job, or the tree is none.
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
