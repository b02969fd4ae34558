//! Trees for `--cluster slurm`: the tasks of this Slurm job, on a star, which is the best tree for
//! a complete network, or on the `--tree` that was typed. `slurm` reads the environment of the job.

use anyhow::bail;

use super::found::Topology;
use super::typed::{of_option, tree_of};
use crate::site::cluster_file::across_hosts;
use crate::site::slurm::{Slurm, environment};

/// Returns the tree over the tasks of this job.
///
/// # Errors
///
/// Returns an error if this is not a Slurm job or the tree is invalid.
pub fn of_job(slurm: Slurm, tree: Option<&str>) -> anyhow::Result<Vec<Topology>> {
    let in_job = of_option("--cluster slurm");
    let spec = match tree {
        Some(spec) => spec.to_owned(),
        None => format!("star:{}", slurm.pes(environment).map_err(&in_job)?),
    };
    let mut trees = tree_of(&spec)?;
    for topology in &mut trees {
        let placement = slurm.placement(topology.tree.len(), environment);
        let placement = placement.map_err(&in_job)?;
        if let (false, Some(place)) = (topology.links.is_empty(), placement.away()) {
            bail!("--tree {spec}: {}", across_hosts(None, &place.address));
        }
        topology.name = format!("{} in Slurm", topology.name);
        topology.placement = Some(placement);
    }
    Ok(trees)
}
