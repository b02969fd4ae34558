//! `[network]`: who can reach whom, where that is more than a tree's edges.
//!
//! ```toml
//! [network]
//! edges = [["a", "b"], ["b", "c"], ["c", "a"]]
//! ```
//!
//! An edge may stand there twice, or in both directions. Which tree spans it is
//! `--spanning` and `--root`'s business; that one does is made sure of here.

use std::collections::{HashMap, HashSet};

use flitcast_proto::PeId;
use flitcast_proto::network::{Network, SpanningError, bfs};

use super::{ClusterFileFault, PeEntry, Reader, Value};

/// What may stand in it.
const KEYS: &str = "edges";

impl Reader<'_, ClusterFileFault> {
    /// The network, connected; what is wrong with it is noted.
    pub(super) fn network(&mut self, value: &Value<'_>, entries: &[PeEntry]) -> Option<Network> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("network", "a table, [network]", value);
            return None;
        };
        let before = self.fault_count();
        let ids = self.ids(entries);
        let mut edges = None;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "edges" => edges = Some(value),
                _ => self.unknown_key(key, KEYS),
            }
        }
        let mut children = entries.iter().filter(|entry| entry.parent.is_some());
        if let Some(entry) = children.next()
            && let Some(parent) = &entry.parent
        {
            let (name, more) = (entry.name(), children.count());
            self.fault(
                parent.spot,
                ClusterFileFault::ParentInNetwork { name, more },
            );
        }
        let Some(edges) = edges else {
            self.fault(self.spot_of(value), ClusterFileFault::NoEdges);
            return None;
        };
        let Some(list) = edges.get_ref().as_array() else {
            self.wrong_type("edges", "a list of pairs, like [[\"a\", \"b\"]]", edges);
            return None;
        };
        let mut strangers = HashSet::new();
        let pairs: Vec<_> = list
            .iter()
            .filter_map(|edge| self.edge(edge, &ids, &mut strangers))
            .collect();
        // Who was misnamed is connected to nobody: that is one mistake.
        if self.fault_count() > before || entries.iter().any(|entry| entry.name.is_none()) {
            return None;
        }
        let spot = self.spot_of(edges);
        let network = Network::from_edges(entries.len(), pairs)
            .map_err(|fault| self.fault(spot, ClusterFileFault::Network(fault)))
            .ok()?;
        match bfs(&network, 0) {
            Ok(_) => Some(network),
            Err(SpanningError::Unreachable { nodes, count, .. }) => {
                let name = |node: &u32| entries[*node as usize].name();
                let names: Vec<String> = nodes.iter().map(name).collect();
                let (root, more) = (name(&0), count - nodes.len());
                self.fault(spot, ClusterFileFault::Apart { root, names, more });
                None
            }
            Err(SpanningError::NoSuchRoot { .. }) => unreachable!("there is a [[pe]]"),
        }
    }

    /// The two ends of an edge. Who is none of the PEs is told once: `strangers` were.
    fn edge<'e>(
        &mut self,
        value: &'e Value<'_>,
        ids: &HashMap<&str, PeId>,
        strangers: &mut HashSet<&'e str>,
    ) -> Option<(u32, u32)> {
        let ends = value.get_ref().as_array().filter(|ends| ends.len() == 2);
        let names = ends.map(|ends| [0, 1].map(|end| ends[end].get_ref().as_str()));
        let (Some(ends), Some([Some(a), Some(b)])) = (ends, names) else {
            self.wrong_type("an edge", "two names, like [\"a\", \"b\"]", value);
            return None;
        };
        let ids = [(a, 0), (b, 1)].map(|(name, end)| {
            let id = ids.get(name).map(|id| id.0);
            if id.is_none() && strangers.insert(name) {
                let name = name.to_owned();
                self.fault(
                    self.spot_of(&ends[end]),
                    ClusterFileFault::UnknownEnd { name },
                );
            }
            id
        });
        if a == b && ids[0].is_some() {
            let name = a.to_owned();
            self.fault(self.spot_of(value), ClusterFileFault::Loop { name });
            return None;
        }
        Some((ids[0]?, ids[1]?))
    }
}
