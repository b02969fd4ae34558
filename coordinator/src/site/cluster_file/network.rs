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

use super::{ClusterFileFault, Field, PeEntry, Reader};

impl Reader<'_, ClusterFileFault> {
    /// The network, connected; what is wrong with it is noted.
    pub(super) fn network(&self, field: &Field<'_, '_>, entries: &[PeEntry]) -> Option<Network> {
        let table = field.table_of("a table, [network]")?;
        let before = self.fault_count();
        let ids = self.ids(entries);
        let edges = table.optional("edges");
        table.refuse_others();
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
            table.fault(ClusterFileFault::NoEdges);
            return None;
        };
        let list = edges.list_of("a list of pairs, like [[\"a\", \"b\"]]")?;
        let mut strangers = HashSet::new();
        let pairs: Vec<_> = list
            .filter_map(|pair| edge(&pair.called("an edge"), &ids, &mut strangers))
            .collect();
        // Who was misnamed is connected to nobody: that is one mistake.
        if self.fault_count() > before || entries.iter().any(|entry| entry.called().is_none()) {
            return None;
        }
        let network = Network::from_edges(entries.len(), pairs)
            .map_err(|fault| edges.fault(ClusterFileFault::Network(fault)))
            .ok()?;
        match bfs(&network, 0) {
            Ok(_) => Some(network),
            Err(SpanningError::Unreachable { nodes, count, .. }) => {
                let name = |node: &u32| entries[*node as usize].name();
                let names: Vec<String> = nodes.iter().map(name).collect();
                let (root, more) = (name(&0), count - nodes.len());
                edges.fault(ClusterFileFault::Apart { root, names, more });
                None
            }
            Err(SpanningError::NoSuchRoot { .. }) => unreachable!("there is a [[pe]]"),
        }
    }
}

/// The two ends of an edge. Who is none of the PEs is told once: `strangers` were.
fn edge(
    pair: &Field<'_, '_>,
    ids: &HashMap<&str, PeId>,
    strangers: &mut HashSet<String>,
) -> Option<(u32, u32)> {
    let names = pair.texts_where("two names, like [\"a\", \"b\"]", |names| names.len() == 2)?;
    let ends = names.iter().zip(pair.list()?).map(|(name, end)| {
        let id = ids.get(name.as_str()).map(|id| id.0);
        if id.is_none() && strangers.insert(name.clone()) {
            let name = name.clone();
            end.fault(ClusterFileFault::UnknownEnd { name });
        }
        id
    });
    let ends: Vec<Option<u32>> = ends.collect();
    if names[0] == names[1] && ends[0].is_some() {
        let name = names[0].clone();
        pair.fault(ClusterFileFault::Loop { name });
        return None;
    }
    Some((ends[0]?, ends[1]?))
}
