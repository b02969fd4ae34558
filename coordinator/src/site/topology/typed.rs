//! The trees of `--tree` and `--network`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use flitcast_plan::network::{
    Network, NetworkSpec, SpanningError, bfs, broadcast, broadcast_lower_bound,
};
use flitcast_proto::tree::TreeSpec;

use super::error::TopologyError;
use super::found::Topology;
use crate::files::edge_file;
use crate::files::tree_file::{self, TreeFile};
use crate::options::link_spec::Links;
use crate::options::tree::SpanningArg;
use crate::site::reachability::Spanned;

/// Parses the value of an option.
pub fn value<T: FromStr<Err: fmt::Display>>(
    option: &'static str,
    text: &str,
) -> Result<T, TopologyError> {
    text.parse().map_err(|error: T::Err| TopologyError::Value {
        option,
        value: text.to_owned(),
        why: error.to_string(),
    })
}

/// Returns the tree of `--tree`.
pub fn tree_of(spec: &str) -> Result<Vec<Topology>, TopologyError> {
    let spec: TreeSpec = value("--tree", spec)?;
    let TreeFile { tree, links } = build_tree(&spec)?;
    let alone = Topology::new(spec.to_string(), tree);
    Ok(vec![Topology { links, ..alone }])
}

/// Builds a tree of any size, with the links that a file configures.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or all faults of the tree.
fn build_tree(spec: &TreeSpec) -> Result<TreeFile, TopologyError> {
    let named = match spec {
        TreeSpec::File(path) => {
            return tree_file::load(path).map_err(TopologyError::of_file("--tree"));
        }
        named => named.build(),
    };
    let links = Links::new();
    named
        .map(|tree| TreeFile { tree, links })
        .map_err(|faults| TopologyError::Tree {
            spec: spec.to_string(),
            faults,
        })
}

/// Builds the network of `--network`.
pub fn build_network(spec: &NetworkSpec) -> Result<Network, TopologyError> {
    match spec {
        NetworkSpec::Edges(path) => {
            edge_file::load(path).map_err(TopologyError::of_file("--network"))
        }
        named => named.build().map_err(|fault| TopologyError::Network {
            spec: spec.to_string(),
            fault,
        }),
    }
}

/// Returns the trees of these kinds that span the network of `--network`.
pub fn span(
    spec: &NetworkSpec,
    root: u32,
    kinds: &[SpanningArg],
) -> Result<Vec<Topology>, TopologyError> {
    let spanned = Arc::new(Spanned {
        spec: Some(spec.clone()),
        network: build_network(spec)?,
    });
    let name = format!("{spec} root {root}");
    spanning(&name, &spanned, root, kinds).map_err(|fault| TopologyError::Spanning {
        spec: spec.to_string(),
        fault,
    })
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
