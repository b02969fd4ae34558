//! Where a request is carried out: the tree, on which PEs, over which links.

use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::{PeId, Tree};

use super::links::{links, links_name};
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::reach::Reach;
use crate::site::topology::Topology;

/// The PEs of a request, and who is whose neighbour.
#[derive(Clone, Debug)]
pub struct Site {
    /// The tree as it was named, or the network and how it is spanned.
    pub name: String,
    /// Of a network: the node that each PE stands on.
    pub nodes: Option<Vec<u32>>,
    /// The tree.
    pub tree: Arc<Tree>,
    /// Where the PEs run.
    pub placement: Placement,
    /// The file that says so, if one does.
    pub cluster: Option<PathBuf>,
    /// Who can be whose neighbour.
    pub reach: Reach,
    /// What the links to their parents are to be like, by PE index; `None`: as they are.
    pub links: Vec<Option<EdgeSpec>>,
    /// How connections are guarded.
    pub guard: Guard,
    /// Whether each PE has a link of its own to each neighbour.
    pub own_links: bool,
}

impl Site {
    /// The site of a topology that no cluster file describes; its links are as it says, and
    /// as `link` where it says nothing.
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
        }
    }

    /// The same PEs in another tree, over the links that they have.
    pub fn with_tree(self, topology: Topology) -> Site {
        Site {
            name: topology.name,
            nodes: topology.nodes,
            tree: Arc::new(topology.tree),
            ..self
        }
    }

    /// Of the edges of `pe`, what those are to be like that are shaped, by their lower
    /// ends.
    pub fn links_of(&self, pe: PeId) -> Vec<(PeId, Edge)> {
        let lower_ends = std::iter::once(&pe).chain(self.tree.children(pe));
        let shaped = lower_ends.filter_map(|&below| {
            let link = self.links[below.index()]?;
            Some((below, link.edge()))
        });
        shaped.collect()
    }

    /// The same of its edges in another tree.
    pub fn links_in(&self, tree: &Tree, pe: PeId) -> Vec<(PeId, Edge)> {
        let lower_ends = std::iter::once(&pe).chain(tree.children(pe));
        let shaped = lower_ends.filter_map(|&below| {
            let [down, up] = self.link_between(tree.parent(below)?, below)?;
            Some((below, Edge { down, up }))
        });
        shaped.collect()
    }

    /// What the link from `pe` to somebody else is to be like that is no edge of the tree, and the
    /// one back; `None` if it is not shaped.
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

    /// Whether any link is to be shaped.
    pub fn is_shaped(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// The links in a few words: `links of 200mbit, 1ms`; `None` if none is shaped.
    pub fn links_name(&self) -> Option<String> {
        let present = self.tree.pes().map(|pe| self.links[pe.index()]);
        links_name(&present.collect::<Vec<_>>())
    }
}
