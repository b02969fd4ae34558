//! The place of a request: the tree, its PEs and its links.

use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::{PeId, Tree};

use crate::job::links::{links, links_name};
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::reachability::Reachability;
use crate::site::topology::Topology;
use crate::text::title::network_of;
use crate::text::units::BitRate;

/// The PEs of a request and their tree.
#[derive(Clone, Debug)]
pub struct Site {
    /// The name of the tree, or that of the network and of the way it is spanned.
    pub name: String,
    /// The network's node of each PE, if there is a network.
    pub nodes: Option<Vec<u32>>,
    pub tree: Arc<Tree>,
    /// The places where the PEs run.
    pub placement: Placement,
    /// The cluster file, if there is one.
    pub cluster: Option<PathBuf>,
    /// The possible neighbours of each PE.
    pub reach: Reachability,
    /// The shape of each PE's link to its parent, by PE index; `None` for an unshaped link.
    pub links: Vec<Option<EdgeSpec>>,
    /// How connections are protected.
    pub guard: Guard,
    /// Whether each PE has a separate link to each neighbour.
    pub own_links: bool,
    /// The highest rate at which each PE sends; `None` for no limit.
    pub limit: Option<BitRate>,
}

impl Site {
    /// Creates the site of a topology that no cluster file describes. Its links have the topology's
    /// shapes, and `link` where it has none.
    pub fn of(topology: Topology, link: Option<LinkSpec>, guard: Guard) -> Site {
        let placement = topology.places();
        let own_links = placement.has_own_links(&topology.tree);
        Site {
            own_links,
            placement,
            reach: topology.reach(),
            links: links(&topology, link),
            name: topology.name,
            nodes: topology.nodes,
            tree: Arc::new(topology.tree),
            cluster: None,
            guard,
            limit: None,
        }
    }

    /// Returns the name of the tree, or of the network alone if data does not go over the tree.
    pub fn name_of(&self, over_tree: bool) -> String {
        match &self.reach {
            Reachability::Network(spanned) if !over_tree => match &spanned.spec {
                Some(spec) => spec.to_string(),
                None => network_of(&self.name).to_owned(),
            },
            _ => self.name.clone(),
        }
    }

    /// Returns the same PEs in another tree, over their existing links.
    pub fn with_tree(self, topology: Topology) -> Site {
        Site {
            name: topology.name,
            nodes: topology.nodes,
            tree: Arc::new(topology.tree),
            ..self
        }
    }

    /// Returns the shaped edges of `pe`, by their lower ends.
    pub fn links_of(&self, pe: PeId) -> Vec<(PeId, Edge)> {
        let lower_ends = std::iter::once(&pe).chain(self.tree.children(pe));
        let shaped = lower_ends.filter_map(|&below| {
            let link = self.links[below.index()]?;
            Some((below, link.edge()))
        });
        shaped.collect()
    }

    /// Returns the shaped edges of `pe` in another tree.
    pub fn links_in(&self, tree: &Tree, pe: PeId) -> Vec<(PeId, Edge)> {
        let lower_ends = std::iter::once(&pe).chain(tree.children(pe));
        let shaped = lower_ends.filter_map(|&below| {
            let [down, up] = self.link_between(tree.parent(below)?, below)?;
            Some((below, Edge { down, up }))
        });
        shaped.collect()
    }

    /// Returns the shapes of a link that is not an edge of the tree, from `pe` to another PE and back;
    /// `None` if it is not shaped.
    pub fn link_between(&self, pe: PeId, other: PeId) -> Option<[Link; 2]> {
        let edge = |pe: PeId| self.links[pe.index()].map(|link| link.edge());
        let one_way = |from: PeId, to: PeId| {
            let [up, down] = [
                edge(from).map(|edge| edge.up),
                edge(to).map(|edge| edge.down),
            ];
            Link::over(up, down)
        };
        Some([one_way(pe, other)?, one_way(other, pe)?])
    }

    /// Returns whether any link is shaped.
    pub fn is_shaped(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// Describes the links, such as `links of 200mbit, 1ms`, or the limit of the rate; `None` if there
    /// is neither. Shaped links have no limit.
    pub fn links_name(&self) -> Option<String> {
        if let Some(limit) = self.limit {
            return Some(format!("at most {limit} from each PE"));
        }
        let present = self.tree.pes().map(|pe| self.links[pe.index()]);
        links_name(&present.collect::<Vec<_>>())
    }
}
