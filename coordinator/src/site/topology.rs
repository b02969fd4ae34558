//! Which tree a command works on: `--tree`, `--cluster`, or `--network` with `--root`
//! and `--spanning`. The arguments as they are typed, and how they become a [`Topology`]
//! or all that is wrong with them. How many processes a machine can start is not
//! asked here; how a network is spanned is `flitcast_proto::network`'s business.

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
    /// `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    pub name: String,
    /// The tree.
    pub tree: Tree,
    /// The node that each PE stands on, if the tree spans a network.
    pub nodes: Option<Vec<u32>>,
    /// The network that it spans.
    pub network: Option<Arc<Spanned>>,
    /// Steps that no broadcast over the network can do without.
    pub broadcast_bound: Option<u64>,
    /// The links of which a tree file or a cluster file says something.
    pub links: Links,
    /// Where each PE runs, if a cluster file says so.
    pub placement: Option<Placement>,
    /// What else a cluster file says.
    pub settings: Settings,
}

impl Topology {
    /// Who can be whose neighbour.
    pub fn reach(&self) -> Reach {
        match (&self.network, &self.placement) {
            (Some(spanned), _) => Reach::Network(spanned.clone()),
            (None, Some(placement)) if !placement.has_any_edge() => Reach::NamedEdges,
            _ => Reach::Anybody,
        }
    }

    /// Where each PE runs: on this machine, unless somebody said otherwise.
    pub fn places(&self) -> Placement {
        let said = self.placement.clone();
        said.unwrap_or_else(|| Placement::local(self.tree.len()))
    }
}

/// Something that is wrong with the choice of a tree.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// Something is wrong with a cluster that is up.
    #[error(transparent)]
    Kept(#[from] crate::site::kept::KeptError),
    /// A value that cannot be understood.
    #[error("{option} {value}: {why}")]
    Value {
        /// Which option.
        option: &'static str,
        /// As typed.
        value: String,
        /// Why not.
        why: String,
    },
    /// Nothing gives a tree.
    #[error(
        "say who is connected to whom: --tree TREE (like kary:2:8), --network NETWORK (like mesh:4x4) or --cluster FILE"
    )]
    NoTree,
    /// `--tree auto` alone.
    #[error(
        "--tree auto chooses among the trees over a network: say --network NETWORK (like complete:8) or --cluster FILE"
    )]
    NothingToChooseFrom,
    /// Several options give one.
    #[error("{}: use one of them", .0.join(" and "))]
    Several(Vec<&'static str>),
    /// An argument about networks, and no network.
    #[error(
        "{0} belongs to --network: a --tree has its root and its edges already, and so has a --cluster without [network]"
    )]
    WithoutNetwork(&'static str),
    /// The tree is none.
    #[error("--tree {spec}: {faults}")]
    Tree {
        /// As typed.
        spec: String,
        /// What is wrong.
        faults: TreeFaults,
    },
    /// The file of the tree, the network or the cluster is none.
    #[error("{option}: {error}")]
    File {
        /// Which option names it.
        option: &'static str,
        /// Why it is none.
        error: FileError,
    },
    /// There are no tasks to wait for.
    #[error("--cluster slurm: {0}")]
    Slurm(#[from] SlurmFault),
    /// The network is none.
    #[error("--network {spec}: {fault}")]
    Network {
        /// As typed.
        spec: String,
        /// What is wrong.
        fault: NetworkFault,
    },
    /// No tree spans the network from that root.
    #[error("--network {spec}: {fault}")]
    Spanning {
        /// As typed.
        spec: String,
        /// Why not.
        fault: SpanningError,
    },
}

impl TopologyError {
    /// That the file is none, which this option names.
    pub fn of_file(option: &'static str) -> impl Fn(FileError) -> TopologyError {
        move |error| TopologyError::File { option, error }
    }
}

impl TreeArgs {
    /// The tree; where `--spanning` is not given, a network's is `default`.
    ///
    /// # Errors
    ///
    /// All that is wrong.
    pub fn topology(&self, default: SpanningArg) -> Result<Topology, Vec<TopologyError>> {
        let mut one = self.topologies(&[default])?;
        Ok(one.remove(0))
    }

    /// The trees that `--tree auto` chooses from; of any other `--tree`, that one.
    ///
    /// # Errors
    ///
    /// All that is wrong.
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

    /// The trees of `--tree` or `--cluster`, which is one, or of `--network`: one if
    /// `--spanning` is given, else one of each of these kinds.
    ///
    /// # Errors
    ///
    /// All that is wrong.
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
    /// The arguments about networks, where there is none.
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

/// What an option's text means.
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
    /// The node that a PE stands on, where that is another number than the PE's for
    /// some PE.
    pub fn node_if_told_apart(&self, pe: PeId) -> Option<u32> {
        // The root comes first and the others keep their order.
        let nodes = self.nodes.as_ref().filter(|nodes| nodes[0] != 0)?;
        Some(nodes[pe.index()])
    }

    /// Whether all PEs are known to reach each other.
    pub fn reaches_all(&self) -> bool {
        match (&self.network, &self.placement) {
            (Some(spanned), _) => spanned.network.is_complete(),
            (None, placement) => placement.as_ref().is_some_and(Placement::has_any_edge),
        }
    }

    /// A tree of this shape over the same PEs, which all reach each other: `root` is its root,
    /// and the others stand in it by their numbers.
    ///
    /// # Errors
    ///
    /// That there is no such tree.
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

    /// The same, seen from another PE: the edges between the two roots lead the other way.
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

    /// The option that it comes from, for messages.
    pub fn option(&self) -> &'static str {
        match (&self.placement, &self.nodes) {
            (Some(_), _) => "--cluster",
            (None, Some(_)) => "--network",
            (None, None) => "--tree",
        }
    }
}

/// A tree of this shape, whose root is `root`, and in which the others stand by their numbers.
///
/// # Errors
///
/// That there is no such tree.
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

/// The PE that has this number when `root` is P0 and the others keep their order.
fn behind(root: PeId, pe: PeId) -> PeId {
    match pe {
        PeId::ROOT => root,
        _ if pe <= root => PeId(pe.0 - 1),
        _ => pe,
    }
}

/// What `--tree` asks for.
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

/// The tree of that name, of whatever size, and what a file says of its links.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong with the tree.
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

/// The trees that span a network from one of its nodes, one of each kind; nothing is said
/// of its links and places.
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
