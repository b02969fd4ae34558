//! The trees of a command line, of a size that one machine can run, rooted at the requested PE.

use anyhow::{anyhow, bail, ensure};
use flitcast_node::system::descriptors;
use flitcast_proto::PeId;

use super::spec::{Open, OpenChoices};
use crate::job::fault::UNKNOWN_LINKS;
use crate::options::args::RoundArgs;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::pes::{MAX_LOCAL_PES, find_pe, needed_descriptors};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::topology::Topology;
use crate::text::faults::Faults;

/// Returns the trees of a command line, and what is to be chosen on them. A choice needs links whose
/// values are known before they are measured; where nothing is named, it also needs a network, and
/// otherwise nothing is chosen.
///
/// # Errors
///
/// Returns an error if there is no such tree, or if a choice is requested between hosts without a profile.
pub fn described(
    args: &RoundArgs,
    spanning: SpanningArg,
    ways: Option<OpenChoices>,
) -> Result<(Vec<Topology>, Option<OpenChoices>), Faults> {
    let mut tree = args.transfer.tree.clone();
    let Some(mut ways) = ways else {
        return Ok((local(tree.offered(spanning))?, None));
    };
    let has_profile = args.transfer.profile.is_some();
    let are_known = |one: &Topology| has_profile || !one.places().is_spread();
    if ways.open == Open::Unnamed {
        let usual = local(tree.offered(spanning))?;
        let has_lengths = !usual[0].places().is_elsewhere() || args.input.is_none();
        if usual[0].network.is_none() || !are_known(&usual[0]) || !has_lengths {
            return Ok((usual, None));
        }
    }
    if ways.open != Open::Tree {
        tree.leave_open();
    }
    ways.any_tree = tree.is_auto();
    let offered = local(tree.offered(spanning))?;
    match are_known(&offered[0]) {
        true => Ok((offered, Some(ways))),
        false => Err(anyhow!(UNKNOWN_LINKS).into()),
    }
}

/// Returns a tree whose PEs can all be processes on this machine.
pub fn local_topology(args: &TreeArgs, spanning: SpanningArg) -> Result<Topology, Faults> {
    let topology = args.topology(spanning)?;
    check_size(&topology)?;
    Ok(topology)
}

/// Checks that the PEs of trees, all of one size, can all be processes on this machine.
fn local(offered: Result<Vec<Topology>, Faults>) -> Result<Vec<Topology>, Faults> {
    let offered = offered?;
    check_size(&offered[0])?;
    Ok(offered)
}

/// Checks that one machine may run this number of processes.
pub fn check_size(topology: &Topology) -> anyhow::Result<()> {
    let pes = topology.tree.len();
    let (option, spec) = (topology.option(), &topology.name);
    ensure!(
        pes <= MAX_LOCAL_PES,
        "{option} {spec} has {pes} PEs: at most {MAX_LOCAL_PES} processes are started on one machine"
    );
    let needed = needed_descriptors(pes);
    let have = descriptors::raised_to(needed);
    ensure!(
        have >= needed,
        "{needed} file descriptors are needed for {pes} PEs, the limit is {have}: raise it with \
         `ulimit -n {needed}`"
    );
    Ok(())
}

/// Returns whether the links of a cover are emulated on this machine, where each edge of the network has
/// a separate one.
pub fn emulates_own_links(args: &RoundArgs) -> bool {
    args.cover && args.transfer.link.is_some() && args.transfer.tree.cluster_file().is_none()
}

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
