//! The possible trees of a request, rooted at the requested PE.

use flitcast_proto::PeId;

use crate::job::fault::RequestError;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::site::topology::Topology;

/// Returns the possible trees of a broadcast by this algorithm, rooted at the PE that an option names.
pub fn laid(
    algorithm: BroadcastAlgorithm,
    root: Option<(&'static str, PeId)>,
    offered: Vec<Topology>,
) -> Result<Vec<Topology>, RequestError> {
    let given = offered[0].clone();
    let unfit = |why: String| RequestError::UnfitWay {
        algorithm: algorithm.name(),
        why,
    };
    let mut trees = seen_from(root, offered)?;
    let from = root.map_or(PeId::ROOT, |(_, pe)| pe);
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
            let why = "it is for PEs that all reach each other: use --network complete:N";
            return Err(unfit(why.to_owned()));
        }
        _ => match own(algorithm) {
            Some(tree) => trees = vec![tree?],
            None if !algorithm.operation().fits().holds(&given.tree) => {
                let why = "it is for 2, 4, 8 and so on PEs: use auto, path or kary:K";
                return Err(unfit(why.to_owned()));
            }
            None => {}
        },
    }
    Ok(trees)
}

/// Returns the trees, rooted at the PE that an option names.
pub fn seen_from(
    root: Option<(&'static str, PeId)>,
    offered: Vec<Topology>,
) -> Result<Vec<Topology>, RequestError> {
    let Some((option, root)) = root.filter(|(_, root)| *root != PeId::ROOT) else {
        return Ok(offered);
    };
    let pes = offered[0].tree.len();
    if !offered[0].tree.contains(root) {
        return Err(RequestError::NoSuchPe { option, root, pes });
    }
    let seen = offered.into_iter().map(|topology| topology.rerooted(root));
    Ok(seen.collect())
}
