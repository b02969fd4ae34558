//! The possible trees of a request, rooted at the requested PE.

use anyhow::{anyhow, bail};
use flitcast_proto::PeId;

use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::pes::find_pe;
use crate::site::topology::Topology;

/// Returns the possible trees of a broadcast by this algorithm, rooted at the PE that an option names.
pub fn laid(
    algorithm: BroadcastAlgorithm,
    root: Option<&(&'static str, String)>,
    offered: Vec<Topology>,
) -> anyhow::Result<Vec<Topology>> {
    let given = offered[0].clone();
    let name = algorithm.name();
    let unfit = |why: String| anyhow!("--algorithm {name}: {why}");
    let mut trees = seen_from(root, offered)?;
    let from = trees[0].tree.root();
    let own = |one: BroadcastAlgorithm| {
        let shape = one.tree(given.tree.len())?;
        Some(given.with_shape(&shape, from).map_err(unfit))
    };
    match algorithm {
        _ if algorithm.is_for_trees() => {}
        BroadcastAlgorithm::Auto if given.reaches_all() => {
            for tree in BroadcastAlgorithm::among_all().filter_map(own) {
                let tree = tree?;
                if trees.iter().all(|other| other.tree != tree.tree) {
                    trees.push(tree);
                }
            }
        }
        BroadcastAlgorithm::Auto => {}
        _ if !given.reaches_all() => {
            bail!(
                "--algorithm {name}: it is for PEs that all reach each other: use --network complete:N"
            );
        }
        _ => match own(algorithm) {
            Some(tree) => trees = vec![tree?],
            None if !algorithm.operation().fits().holds(&given.tree) => {
                bail!(
                    "--algorithm {name}: it is for 2, 4, 8 and so on PEs: use auto, path or kary:K"
                );
            }
            None => {}
        },
    }
    Ok(trees)
}

/// Returns the trees, rooted at the PE that an option names.
pub fn seen_from(
    root: Option<&(&'static str, String)>,
    offered: Vec<Topology>,
) -> anyhow::Result<Vec<Topology>> {
    let Some((option, text)) = root else {
        return Ok(offered);
    };
    let first = &offered[0];
    let root = find_pe(option, text, &first.places().names(), &first.tree)?;
    if root == PeId::ROOT {
        return Ok(offered);
    }
    let seen = offered.into_iter().map(|topology| topology.rerooted(root));
    Ok(seen.collect())
}
