//! The possible neighbours of PEs, which the repair of a tree needs to find a new parent for an
//! orphan. `topology` builds trees.

use std::sync::Arc;

use flitcast_plan::network::{Network, NetworkSpec};
use flitcast_proto::PeId;

/// A network that a tree spans.
#[derive(Clone, Debug)]
pub struct Spanned {
    /// Name of the network; `None` if it has none, as in most cluster files.
    pub spec: Option<NetworkSpec>,
    pub network: Network,
}

#[derive(Clone, Debug)]
pub enum Reachability {
    /// Any two PEs can be neighbours.
    Anybody,
    /// Only neighbours in the network.
    Network(Arc<Spanned>),
    /// Only the present neighbours: some addresses are valid for one edge only.
    NamedEdges,
}

impl Reachability {
    /// Returns whether an orphan reaches an ancestor that is not its parent. `nodes` are the
    /// network nodes of the PEs.
    pub fn leads(&self, nodes: Option<&[u32]>, orphan: PeId, ancestor: PeId) -> bool {
        match (self, nodes) {
            (Reachability::Anybody, _) => true,
            (Reachability::NamedEdges, _) => false,
            (Reachability::Network(spanned), Some(nodes)) => {
                let [orphan, ancestor] = [orphan, ancestor].map(|pe| nodes[pe.index()]);
                let neighbours = spanned.network.neighbours(orphan);
                neighbours.binary_search(&ancestor).is_ok()
            }
            // A tree over a network always has nodes.
            (Reachability::Network(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tree::{SpanningArg, TreeArgs};
    use crate::site::topology::Topology;

    fn topology(network: Option<&str>) -> Topology {
        let tree = network.is_none().then(|| "path:4".to_owned());
        let args = TreeArgs {
            tree,
            network: network.map(str::to_owned),
            ..TreeArgs::default()
        };
        args.topology(SpanningArg::Bfs).expect("it is one")
    }

    fn leads(topology: &Topology, orphan: u32, ancestor: u32) -> bool {
        let nodes = topology.nodes.as_deref();
        topology.reach().leads(nodes, PeId(orphan), PeId(ancestor))
    }

    #[test]
    fn only_neighbours_in_a_network_reach_each_other() {
        let ring = topology(Some("ring:4"));
        assert!(leads(&ring, 3, 0) && leads(&ring, 2, 1));
        assert!(!leads(&ring, 2, 0));
        assert!(leads(&topology(Some("complete:4")), 2, 0));
        assert!(leads(&topology(None), 3, 0));
    }

    #[test]
    fn an_address_of_one_edge_is_good_for_no_other() {
        let mut named = topology(None);
        let mut placement = crate::site::placement::Placement::local(4);
        named.placement = Some(placement.clone());
        assert!(leads(&named, 3, 0), "each is reached at one address");
        let own = [127, 0, 0, 2].into();
        placement.places[1].reached_by.insert(PeId(2), own);
        named.placement = Some(placement);
        assert!(!leads(&named, 3, 0));
    }
}
