//! The tree that a command works on: `--tree`, `--cluster`, or `--network` with `--root` and
//! `--spanning`. The module converts the typed arguments to a [`Topology`] or to all their faults.
//! It does not check how many processes a machine can start. `flitcast_proto::network` computes
//! spanning trees.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use flitcast_proto::network::{
    Network, NetworkFault, NetworkSpec, SpanningError, bfs, broadcast, broadcast_lower_bound,
};
use flitcast_proto::tree::{TreeFaults, TreeSpec};
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::files::edge_file;
use crate::files::tree_file::{self, TreeFile};
use crate::files::user_file::FileError;
use crate::options::link_spec::{EdgeSpec, Links};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::placement::Placement;
use crate::site::reach::{Reach, Spanned};
use crate::site::settings::Settings;
use crate::site::slurm::{Slurm, SlurmFault};
use job::of_job;

mod cluster_file;
mod job;

/// A tree to work on.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Name of the tree: `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    pub name: String,
    /// The tree.
    pub tree: Tree,
    /// The network node of each PE, if the tree spans a network.
    pub nodes: Option<Vec<u32>>,
    /// The network that the tree spans.
    pub network: Option<Arc<Spanned>>,
    /// Minimum number of steps of a broadcast over the network.
    pub broadcast_bound: Option<u64>,
    /// Links that a tree file or a cluster file configures.
    pub links: Links,
    /// Places of the PEs, if a cluster file defines them.
    pub placement: Option<Placement>,
    /// Other settings of a cluster file.
    pub settings: Settings,
}

impl Topology {
    /// Returns the possible neighbours of PEs.
    pub fn reach(&self) -> Reach {
        match (&self.network, &self.placement) {
            (Some(spanned), _) => Reach::Network(spanned.clone()),
            (None, Some(placement)) if !placement.has_any_edge() => Reach::NamedEdges,
            _ => Reach::Anybody,
        }
    }

    /// Returns the places of the PEs; by default all are on this machine.
    pub fn places(&self) -> Placement {
        let said = self.placement.clone();
        said.unwrap_or_else(|| Placement::local(self.tree.len()))
    }
}

/// An invalid choice of a tree.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// An error of a running cluster.
    #[error(transparent)]
    Kept(#[from] crate::site::kept::KeptError),
    /// An invalid value.
    #[error("{option} {value}: {why}")]
    Value {
        /// Option.
        option: &'static str,
        /// Value as typed.
        value: String,
        /// Reason.
        why: String,
    },
    /// No option defines a tree.
    #[error(
        "no tree is given; use --tree TREE (like kary:2:8), --network NETWORK (like mesh:4x4) or --cluster FILE"
    )]
    NoTree,
    /// `--tree auto` without a network.
    #[error(
        "--tree auto chooses among the trees over a network; add --network NETWORK (like complete:8) or --cluster FILE"
    )]
    NothingToChooseFrom,
    /// Several options define a tree.
    #[error("{}: use one of them", .0.join(" and "))]
    Several(Vec<&'static str>),
    /// An option for networks without a network.
    #[error(
        "{0} belongs to --network: a --tree has its root and its edges already, and so has a --cluster without [network]"
    )]
    WithoutNetwork(&'static str),
    /// The tree is invalid.
    #[error("--tree {spec}: {faults}")]
    Tree {
        /// Value as typed.
        spec: String,
        /// Faults of the tree.
        faults: TreeFaults,
    },
    /// The file of the tree, the network or the cluster is invalid.
    #[error("{option}: {error}")]
    File {
        /// Option that names the file.
        option: &'static str,
        /// Fault of the file.
        error: FileError,
    },
    /// The process is not part of a Slurm job.
    #[error("--cluster slurm: {0}")]
    Slurm(#[from] SlurmFault),
    /// The network is invalid.
    #[error("--network {spec}: {fault}")]
    Network {
        /// Value as typed.
        spec: String,
        /// Fault of the network.
        fault: NetworkFault,
    },
    /// The network has no spanning tree from this root.
    #[error("--network {spec}: {fault}")]
    Spanning {
        /// Value as typed.
        spec: String,
        /// Reason.
        fault: SpanningError,
    },
}

impl TopologyError {
    /// Returns a function that adds the option to a fault of a file.
    pub fn of_file(option: &'static str) -> impl Fn(FileError) -> TopologyError {
        move |error| TopologyError::File { option, error }
    }
}

impl TreeArgs {
    /// Returns the tree; `default` is the spanning tree of a network if `--spanning` is missing.
    ///
    /// # Errors
    ///
    /// Returns all faults.
    pub fn topology(&self, default: SpanningArg) -> Result<Topology, Vec<TopologyError>> {
        let mut one = self.topologies(&[default])?;
        Ok(one.remove(0))
    }

    /// Returns the trees that `--tree auto` chooses from; for any other `--tree`, that one.
    ///
    /// # Errors
    ///
    /// Returns all faults.
    pub fn offered(&self, default: SpanningArg) -> Result<Vec<Topology>, Vec<TopologyError>> {
        if !self.is_auto() {
            return Ok(vec![self.topology(default)?]);
        }
        if self.network.is_none() && self.cluster.is_none() {
            return Err(vec![TopologyError::NothingToChooseFrom]);
        }
        let given = TreeArgs {
            tree: None,
            ..self.clone()
        };
        let mut trees = given.topologies(&[SpanningArg::Bfs, SpanningArg::Broadcast])?;
        let first = trees[0].clone();
        if first.reaches_all() {
            let n = first.tree.len();
            for shape in ["star:", "path:", "kary:2:", "kary:4:", "binomial:"] {
                let name = format!("{shape}{n}");
                let tree = name.parse::<TreeSpec>().ok().and_then(|s| s.build().ok());
                trees.extend(tree.map(|tree| Topology {
                    name,
                    tree,
                    ..first.clone()
                }));
            }
        }
        let mut distinct: Vec<Topology> = Vec::new();
        for tree in trees {
            if distinct.iter().all(|other| other.tree != tree.tree) {
                distinct.push(tree);
            }
        }
        Ok(distinct)
    }

    /// Returns the tree of `--tree`, or of a cluster file without a network. For a network, returns one
    /// tree if `--spanning` is given, else one of each kind in `kinds`.
    ///
    /// # Errors
    ///
    /// Returns all faults.
    pub fn topologies(&self, kinds: &[SpanningArg]) -> Result<Vec<Topology>, Vec<TopologyError>> {
        let mut faults = Vec::new();
        if self.network.is_none() && self.cluster.is_none() {
            faults.extend(self.without_network());
        }
        let slurm = self.cluster.as_deref().and_then(Slurm::named);
        let made = match (&self.tree, &self.network, &self.cluster, slurm) {
            (tree, None, Some(_), Some(slurm)) => {
                of_job(slurm, tree.as_deref()).map_err(|fault| vec![fault])
            }
            (None, None, None, _) => Err(vec![TopologyError::NoTree]),
            (Some(tree), None, None, _) => tree_of(tree).map_err(|fault| vec![fault]),
            (None, None, Some(file), _) => self.cluster(file, kinds),
            (None, Some(network), None, _) => {
                let only = self.spanning.map(|kind| vec![kind]);
                let kinds = only.as_deref().unwrap_or(kinds);
                let root = self
                    .root
                    .as_deref()
                    .map_or(Ok(0), |root| value("--root", root));
                match (value("--network", network), root) {
                    (Ok(spec), Ok(root)) => span(&spec, root, kinds).map_err(|fault| vec![fault]),
                    (spec, root) => Err(spec.err().into_iter().chain(root.err()).collect()),
                }
            }
            (tree, network, cluster, _) => {
                let given = [
                    tree.as_ref().map(|_| "--tree"),
                    network.as_ref().map(|_| "--network"),
                    cluster.as_ref().map(|_| "--cluster"),
                ];
                let given = given.into_iter().flatten().collect();
                Err(vec![TopologyError::Several(given)])
            }
        };
        match made {
            Ok(made) if faults.is_empty() => Ok(made),
            Ok(_) => Err(faults),
            Err(first) => Err(first.into_iter().chain(faults).collect()),
        }
    }
}

impl TreeArgs {
    /// Returns faults for options about networks that were given without a network.
    fn without_network(&self) -> Vec<TopologyError> {
        let given = [
            ("--root", self.root.is_some()),
            ("--spanning", self.spanning.is_some()),
        ];
        let given = given.iter().filter(|(_, given)| *given);
        given
            .map(|(option, _)| TopologyError::WithoutNetwork(option))
            .collect()
    }
}

/// Parses the value of an option.
fn value<T: FromStr<Err: fmt::Display>>(
    option: &'static str,
    text: &str,
) -> Result<T, TopologyError> {
    text.parse().map_err(|error: T::Err| TopologyError::Value {
        option,
        value: text.to_owned(),
        why: error.to_string(),
    })
}

impl Topology {
    /// Returns the network node of a PE, if PEs and nodes are numbered differently.
    pub fn node_if_told_apart(&self, pe: PeId) -> Option<u32> {
        // The root comes first and the others keep their order.
        let nodes = self.nodes.as_ref().filter(|nodes| nodes[0] != 0)?;
        Some(nodes[pe.index()])
    }

    /// Returns whether all PEs are known to form a complete network.
    pub fn reaches_all(&self) -> bool {
        match (&self.network, &self.placement) {
            (Some(spanned), _) => spanned.network.is_complete(),
            (None, placement) => placement.as_ref().is_some_and(Placement::has_any_edge),
        }
    }

    /// Returns a tree of this shape over the same PEs, which form a complete network, with `root`
    /// as its root; the other PEs keep their order.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such tree.
    pub fn with_shape(&self, shape: &str, root: PeId) -> Result<Topology, String> {
        let tree = tree_of_shape(shape, root)?;
        Ok(Topology {
            name: match root {
                PeId::ROOT => shape.to_owned(),
                root => format!("{shape} from {root}"),
            },
            tree,
            ..self.clone()
        })
    }

    /// Returns the tree with another root: the edges between the two roots are reversed.
    pub fn rerooted(self, root: PeId) -> Topology {
        let mut links = self.links.clone();
        for child in self.tree.turned(root) {
            links.remove(&child);
        }
        for child in self.tree.turned(root) {
            if let (Some(link), Some(parent)) = (self.links.get(&child), self.tree.parent(child)) {
                let (down, up) = (link.up, link.down);
                links.insert(parent, EdgeSpec { down, up });
            }
        }
        Topology {
            name: format!("{} seen from {root}", self.name),
            tree: self.tree.rerooted(root),
            links,
            ..self
        }
    }

    /// Returns the option that defines the tree, for messages.
    pub fn option(&self) -> &'static str {
        match (&self.placement, &self.nodes) {
            (Some(_), _) => "--cluster",
            (None, Some(_)) => "--network",
            (None, None) => "--tree",
        }
    }
}

/// Returns a tree of this shape with `root` as its root; the other PEs keep their order.
///
/// # Errors
///
/// Returns an error if there is no such tree.
pub fn tree_of_shape(shape: &str, root: PeId) -> Result<Tree, String> {
    let spec = shape
        .parse::<TreeSpec>()
        .map_err(|fault| fault.to_string())?;
    let tree = spec.build().map_err(|faults| faults.to_string())?;
    let mut parents = vec![None; tree.len()];
    for pe in tree.pes() {
        let parent = tree.parent(pe).map(|parent| behind(root, parent));
        parents[behind(root, pe).index()] = parent;
    }
    Tree::with_absent(root, parents).map_err(|faults| faults.to_string())
}

/// Returns the PE that has the position `pe` if `root` comes first and the others keep their order.
fn behind(root: PeId, pe: PeId) -> PeId {
    match pe {
        PeId::ROOT => root,
        _ if pe <= root => PeId(pe.0 - 1),
        _ => pe,
    }
}

/// Returns the tree of `--tree`.
fn tree_of(spec: &str) -> Result<Vec<Topology>, TopologyError> {
    let spec: TreeSpec = value("--tree", spec)?;
    let TreeFile { tree, links } = build_tree(&spec)?;
    Ok(vec![Topology {
        tree,
        links,
        name: spec.to_string(),
        nodes: None,
        network: None,
        broadcast_bound: None,
        placement: None,
        settings: Settings::default(),
    }])
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

fn span(
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
fn spanning(
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
            name: format!("{name} {kind}"),
            tree: spanning.tree,
            nodes: Some(spanning.nodes),
            network: Some(spanned.clone()),
            broadcast_bound: Some(broadcast_bound),
            links: Links::new(),
            placement: None,
            settings: Settings::default(),
        })
    };
    kinds.iter().map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(tree: Option<&str>, network: Option<&str>) -> TreeArgs {
        TreeArgs {
            tree: tree.map(str::to_owned),
            network: network.map(str::to_owned),
            cluster: None,
            root: None,
            spanning: None,
        }
    }

    fn messages(args: &TreeArgs) -> Vec<String> {
        let faults = args.topology(SpanningArg::Bfs).unwrap_err();
        faults.iter().map(TopologyError::to_string).collect()
    }

    #[test]
    fn names_say_how_the_network_is_spanned() {
        let mut args = args(None, Some("mesh:4x4"));
        let name = |args: &TreeArgs| args.topology(SpanningArg::Broadcast).unwrap().name;
        assert_eq!(name(&args), "mesh:4x4 root 0 broadcast");
        args.root = Some("5".to_owned());
        args.spanning = Some(SpanningArg::Bfs);
        assert_eq!(name(&args), "mesh:4x4 root 5 bfs");
        let both = [SpanningArg::Bfs, SpanningArg::Broadcast];
        assert_eq!(args.topologies(&both).unwrap().len(), 1);
        args.spanning = None;
        assert_eq!(args.topologies(&both).unwrap().len(), 2);
    }

    #[test]
    fn exactly_one_of_tree_network_and_cluster() {
        assert!(messages(&args(None, None))[0].contains("--tree TREE"));
        let mut several = args(Some("path:3"), Some("ring:3"));
        let expected = ["--tree and --network: use one of them"];
        assert_eq!(messages(&several), expected);
        several.cluster = Some("c.toml".into());
        several.network = None;
        let expected = ["--tree and --cluster: use one of them"];
        assert_eq!(messages(&several), expected);
        let mut only_tree = args(Some("parents:7"), None);
        only_tree.root = Some("1".to_owned());
        only_tree.spanning = Some(SpanningArg::Bfs);
        let faults = messages(&only_tree);
        assert!(faults[0].starts_with("--tree parents:7: "), "{faults:?}");
        assert!(faults[1].starts_with("--root belongs to --network"));
        assert!(faults[2].starts_with("--spanning belongs to --network"));
    }

    #[test]
    fn a_root_must_be_a_node() {
        let mut args = args(None, Some("ring:3"));
        args.root = Some("3".to_owned());
        let expected = "--network ring:3: root 3: there is no such node (the last one is 2)";
        assert_eq!(messages(&args), [expected]);
    }
}
