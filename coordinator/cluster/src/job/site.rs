//! The place of a request: the tree, its PEs and its links. The shapes of links are those in a tree or cluster
//! file, and the command line's for all others.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::{PeId, Tree};

use crate::options::args::RoundArgs;
use crate::options::link_spec::{self, EdgeSpec, LinkSpec};
use crate::site::cluster_file::across_hosts;
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::reachability::Reachability;
use crate::site::topology::{Topology, of_option};
use crate::text::faults::Faults;
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

/// The lowest limit of a PE's rate. With a lower one, a PE that waits for its next bytes to be due would
/// seem to be dead.
const LEAST_LIMIT: BitRate = BitRate(64_000);

/// Returns the shape of all links that no file describes: as typed, or else the cluster file's.
pub fn link_over(topology: &Topology, typed: Option<LinkSpec>) -> anyhow::Result<Option<LinkSpec>> {
    let placement = topology.placement.as_ref();
    match (typed, placement.and_then(Placement::away)) {
        (Some(_), Some(place)) => {
            let fault = across_hosts(place.name.as_deref(), &place.address);
            bail!("--link: {fault}")
        }
        (typed, _) => Ok(typed.or(topology.settings.link)),
    }
}

/// Returns the highest rate of each PE, if one is requested.
///
/// # Errors
///
/// Returns an error for each reason: the text is not a rate, the rate is too low, links are emulated, or
/// several trees would share the rate.
pub fn rate_limit(
    args: &RoundArgs,
    link: Option<LinkSpec>,
    topology: Option<&Topology>,
) -> Result<Option<BitRate>, Faults> {
    let Some(rate) = args.transmission.bwlimit.as_deref() else {
        return Ok(None);
    };
    let mut faults = Faults::default();
    let limit = link_spec::rate(rate).map_err(of_option("--bwlimit"));
    let limit = faults.take(limit).flatten();
    if link.is_some() || topology.is_some_and(|topology| !topology.links.is_empty()) {
        faults.add(anyhow!(
            "--bwlimit: these links are emulated; limit them with --link rate=RATE, or in their file"
        ));
    }
    if args.cover {
        faults.add(anyhow!(
            "--bwlimit: the trees of a cover would share the limit, so that one tree is as quick; \
             take --cover out"
        ));
    }
    if let Some(limit) = limit.filter(|limit| limit.0 < LEAST_LIMIT.0) {
        faults.add(anyhow!("--bwlimit: {limit} is less than {LEAST_LIMIT}"));
    }
    faults.check()?;
    Ok(limit)
}

/// Returns the shape of each PE's link to its parent, by PE index.
pub fn links(topology: &Topology, everywhere: Option<LinkSpec>) -> Vec<Option<EdgeSpec>> {
    let everywhere = everywhere.map(EdgeSpec::alike);
    let root = topology.tree.root();
    let link = |pe: PeId| topology.links.get(&pe).copied().or(everywhere);
    let links = topology.tree.pes();
    links.map(|pe| link(pe).filter(|_| pe != root)).collect()
}

/// Describes the links, such as `links of 200mbit, 1ms`; `None` if none is shaped.
pub fn links_name(links: &[Option<EdgeSpec>]) -> Option<String> {
    // The root has none.
    let edges = links.len() - 1;
    let shaped: Vec<EdgeSpec> = links.iter().flatten().copied().collect();
    let first = shaped.first()?;
    let alike = shaped.iter().all(|link| link == first);
    Some(match (alike, shaped.len() == edges) {
        (true, true) => format!("links of {first}"),
        (true, false) => format!("{} of {edges} links shaped: {first}", shaped.len()),
        (false, true) => "links of several kinds".to_owned(),
        (false, false) => format!("{} of {edges} links shaped", shaped.len()),
    })
}
