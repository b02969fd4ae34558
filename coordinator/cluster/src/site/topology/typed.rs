//! The trees of `--tree`, `--network`, `--cluster slurm` and `--cluster srun`.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use flitcast_plan::network::{
    Network, NetworkSpec, SpanningError, bfs, broadcast, broadcast_lower_bound,
};
use flitcast_proto::tree::TreeSpec;

use super::found::Topology;
use crate::files::edge_file;
use crate::files::tree_file::{self, TreeFile};
use crate::options::link_spec::Links;
use crate::options::tree::SpanningArg;
use crate::site::cluster_file::across_hosts;
use crate::site::reachability::Spanned;
use crate::site::slurm::{Slurm, environment};

/// Returns a function that puts an option before an error.
pub fn of_option<E: Display>(option: &str) -> impl Fn(E) -> anyhow::Error {
    move |error| anyhow!("{option}: {error}")
}

pub fn value<T: FromStr<Err: Display>>(option: &str, text: &str) -> anyhow::Result<T> {
    text.parse::<T>()
        .map_err(|error| anyhow!("{option} {text}: {error}"))
}

pub fn tree_of(spec: &str) -> anyhow::Result<Vec<Topology>> {
    let spec: TreeSpec = value("--tree", spec)?;
    let TreeFile { tree, links } = build_tree(&spec)?;
    let alone = Topology::new(spec.to_string(), tree);
    Ok(vec![Topology { links, ..alone }])
}

/// Builds a tree of any size, with the links that a file configures; returns all faults.
fn build_tree(spec: &TreeSpec) -> anyhow::Result<TreeFile> {
    if let TreeSpec::File(path) = spec {
        return tree_file::load(path).map_err(of_option("--tree"));
    }
    let tree = spec.build();
    let tree = tree.map_err(|faults| anyhow!("--tree {spec}: {faults}"))?;
    let links = Links::new();
    Ok(TreeFile { tree, links })
}

pub fn build_network(spec: &NetworkSpec) -> anyhow::Result<Network> {
    match spec {
        NetworkSpec::Edges(path) => edge_file::load(path).map_err(of_option("--network")),
        named => named
            .build()
            .map_err(|fault| anyhow!("--network {spec}: {fault}")),
    }
}

/// Returns the trees of these kinds that span the network of `--network`.
pub fn span(spec: &NetworkSpec, root: u32, kinds: &[SpanningArg]) -> anyhow::Result<Vec<Topology>> {
    let spanned = Arc::new(Spanned {
        spec: Some(spec.clone()),
        network: build_network(spec)?,
    });
    let name = format!("{spec} root {root}");
    spanning(&name, &spanned, root, kinds).map_err(|fault| anyhow!("--network {spec}: {fault}"))
}

/// Names trees that were chosen for a number of PEs by what they are.
pub fn plainly_named(mut trees: Vec<Topology>) -> Vec<Topology> {
    for topology in &mut trees {
        let (tree, pes) = (&topology.tree, topology.tree.len());
        topology.name = match tree.children(tree.root()).len() + 1 == pes {
            true => format!("star:{pes}"),
            false => "a broadcast tree".to_owned(),
        };
    }
    trees
}

/// Returns the trees of these kinds that span a network from one of its nodes, without links and
/// places.
pub fn spanning(
    name: &str,
    spanned: &Arc<Spanned>,
    root: u32,
    kinds: &[SpanningArg],
) -> Result<Vec<Topology>, SpanningError> {
    let network = &spanned.network;
    let broadcast_bound = broadcast_lower_bound(network, root)?;
    let span = |kind: &SpanningArg| {
        let spanning = match kind {
            SpanningArg::Bfs => bfs(network, root),
            SpanningArg::Broadcast => broadcast(network, root),
        }?;
        Ok(Topology {
            nodes: Some(spanning.nodes),
            network: Some(spanned.clone()),
            broadcast_bound: Some(broadcast_bound),
            ..Topology::new(format!("{name} {kind}"), spanning.tree)
        })
    };
    kinds.iter().map(span).collect()
}

/// Returns the tree over the tasks of this Slurm job: the typed one, or else a star, which is the best
/// tree for a complete network.
pub fn of_job(slurm: Slurm, tree: Option<&str>) -> anyhow::Result<Vec<Topology>> {
    let in_job = of_option(slurm.option());
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
