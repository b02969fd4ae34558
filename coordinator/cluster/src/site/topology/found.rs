//! A tree to work on, with its network and its places, as far as they were given.

use std::sync::Arc;

use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{PeId, Tree};

use crate::options::link_spec::{EdgeSpec, Links};
use crate::site::placement::Placement;
use crate::site::reachability::{Reachability, Spanned};
use crate::site::settings::Settings;

/// A tree to work on.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Name of the tree: `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    pub name: String,
    pub tree: Tree,
    /// The network node of each PE, if the tree spans a network.
    pub nodes: Option<Vec<u32>>,
    pub network: Option<Arc<Spanned>>,
    /// Minimum number of steps of a broadcast over the network.
    pub broadcast_bound: Option<u64>,
    /// Links that a tree file or a cluster file configures.
    pub links: Links,
    /// Places of the PEs, if a cluster file defines them.
    pub placement: Option<Placement>,
    pub settings: Settings,
}

impl Topology {
    /// Creates a topology of a tree alone, on this machine.
    pub fn new(name: String, tree: Tree) -> Topology {
        Topology {
            name,
            tree,
            nodes: None,
            network: None,
            broadcast_bound: None,
            links: Links::new(),
            placement: None,
            settings: Settings::default(),
        }
    }

    /// Returns the link to a PE from its parent, if a file configures it or all links.
    pub fn link_to(&self, pe: PeId) -> Option<EdgeSpec> {
        let everywhere = || self.settings.link.map(EdgeSpec::alike);
        self.links.get(&pe).copied().or_else(everywhere)
    }

    pub fn reach(&self) -> Reachability {
        match (&self.network, &self.placement) {
            (Some(spanned), _) => Reachability::Network(spanned.clone()),
            (None, Some(placement)) if !placement.has_any_edge() => Reachability::NamedEdges,
            _ => Reachability::Anybody,
        }
    }

    /// Returns the places of the PEs; by default all are on this machine.
    pub fn places(&self) -> Placement {
        let placement = self.placement.clone();
        placement.unwrap_or_else(|| Placement::local(self.tree.len()))
    }

    /// Returns the network node of a PE, if PEs and nodes are numbered differently.
    pub fn node_if_several(&self, pe: PeId) -> Option<u32> {
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
pub fn tree_of_shape(shape: &str, root: PeId) -> Result<Tree, String> {
    let spec: TreeSpec = shape.parse().map_err(|fault| format!("{fault}"))?;
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
