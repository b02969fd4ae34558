//! The connections between PEs: the tree of their parents, or `[network]`, if they are more than a tree's
//! edges.
//!
//! ```toml
//! [network]
//! edges = [["a", "b"], ["b", "c"], ["c", "a"]]
//! kind = "ring:3"
//! ```
//!
//! An edge may occur twice, or in both directions. `kind` names a known network whose nodes are the
//! PEs in the order of the file; some algorithms need to know it. One of the two keys is enough.
//! `--spanning` and `--root` select the spanning tree; this module checks that one exists.

use std::collections::{HashMap, HashSet};

use flitcast_plan::network::{Network, NetworkSpec, SpanningError, bfs};
use flitcast_proto::tree::{TreeError, TreeErrors};
use flitcast_proto::{PeId, Tree};

use super::entry::PeEntry;
use super::values::At;
use crate::files::toml_file::{Field, Reader};
use crate::site::reachability::Spanned;
use crate::text::phrases::names;

/// Reads the network and reports its faults; a valid one is connected.
pub fn network(reader: &Reader<'_>, field: &Field<'_, '_>, entries: &[PeEntry]) -> Option<Spanned> {
    let table = field.table_of("a table, [network]")?;
    let before = reader.fault_count();
    let ids = ids(reader, entries);
    let edges = table.optional("edges");
    let kind = table.optional("kind");
    table.refuse_others();
    refuse_parents(reader, entries);
    let named = match &kind {
        Some(kind) => Some(of_kind(kind, entries)?),
        None => None,
    };
    let Some(edges) = edges else {
        if named.is_none() {
            table
                .fault("[network] has no edges: give them by names, like edges = [[\"a\", \"b\"]]");
        }
        return named.filter(|_| reader.fault_count() == before);
    };
    let list = edges.list_of("a list of pairs, like [[\"a\", \"b\"]]")?;
    let mut strangers = HashSet::new();
    let pairs: Vec<_> = list
        .filter_map(|pair| edge(&pair.called("an edge"), &ids, &mut strangers))
        .collect();
    // An end with an unknown name is one mistake; the missing edge is not reported as well.
    if reader.fault_count() > before || entries.iter().any(|entry| entry.called().is_none()) {
        return None;
    }
    let network = Network::from_edges(entries.len(), pairs);
    let network = network
        .map_err(|fault| edges.fault(format!("edges: {fault}")))
        .ok()?;
    if let (Some(kind), Some(named)) = (&kind, &named)
        && let Some(what) = difference(&network, &named.network, entries)
    {
        kind.fault(format!(
            "kind: the edges are those of another network: {what}"
        ));
        return None;
    }
    if let Err(SpanningError::Unreachable { nodes, count, .. }) = bfs(&network, 0) {
        let name = |node: &u32| entries[*node as usize].name();
        let unreached: Vec<String> = nodes.iter().map(name).collect();
        let more = match count - nodes.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (names, root) = (names(&unreached), name(&0));
        edges.fault(format!(
            "the network is not connected: {names}{more} cannot be reached from {root}"
        ));
        return None;
    }
    Some(Spanned {
        spec: named.and_then(|named| named.spec),
        network,
    })
}

/// Reports PEs that have a parent beside the network.
fn refuse_parents(reader: &Reader<'_>, entries: &[PeEntry]) {
    let mut children = entries
        .iter()
        .filter_map(|entry| Some((entry.name(), entry.parent.as_ref()?)));
    if let Some((name, parent)) = children.next() {
        let more = match children.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let both = "and there is a [network]: both describe connections; give one of them";
        reader.fault(parent.spot, format!("{name} has a parent{more}, {both}"));
    }
}

/// Returns an edge in which the network differs from one of a known kind.
fn difference(network: &Network, kind: &Network, entries: &[PeEntry]) -> Option<String> {
    let first_not_in = |of: &Network, other: &Network| {
        let mut pairs = of.pairs();
        pairs.find(|[one, end]| !other.neighbours(*one).contains(end))
    };
    let name = |node: u32| entries[node as usize].name();
    let ends = |[one, other]: [u32; 2]| format!("[\"{}\", \"{}\"]", name(one), name(other));
    let too_many =
        first_not_in(network, kind).map(|pair| format!("{} is no edge of it", ends(pair)));
    too_many.or_else(|| Some(format!("{} is missing", ends(first_not_in(kind, network)?))))
}

/// Returns the network of this kind, which must have a node for each PE.
fn of_kind(kind: &Field<'_, '_>, entries: &[PeEntry]) -> Option<Spanned> {
    let like = "a network by its name, like \"torus:3x3\"";
    let spec: NetworkSpec =
        kind.parse(|text| text.parse().map_err(|_| format!("kind must be {like}")))?;
    if let NetworkSpec::Edges(_) = spec {
        kind.fault(format!("kind must be {like}; edges stand in edges"));
        return None;
    }
    let network = spec.build();
    let network = network
        .map_err(|fault| kind.fault(format!("kind: {fault}")))
        .ok()?;
    if network.len() != entries.len() {
        let (nodes, pes) = (network.len(), entries.len());
        kind.fault(format!(
            "kind: {spec} has {nodes} nodes, and there are {pes} [[pe]] tables"
        ));
        return None;
    }
    Some(Spanned {
        spec: Some(spec),
        network,
    })
}

/// Returns the two ends of an edge. An unknown name is reported once; `strangers` has those
/// reported.
fn edge(
    pair: &Field<'_, '_>,
    ids: &HashMap<&str, PeId>,
    strangers: &mut HashSet<String>,
) -> Option<(u32, u32)> {
    let names = pair.texts_where("two names, like [\"a\", \"b\"]", |names| names.len() == 2)?;
    let ends = names.iter().zip(pair.list()?).map(|(name, end)| {
        let id = ids.get(name.as_str()).map(|id| id.0);
        if id.is_none() && strangers.insert(name.clone()) {
            end.fault(format!("no [[pe]] is called `{name}`"));
        }
        id
    });
    let ends: Vec<Option<u32>> = ends.collect();
    if names[0] == names[1] && ends[0].is_some() {
        let name = &names[0];
        pair.fault(format!(
            "{name} is connected to itself; an edge has two different ends"
        ));
        return None;
    }
    Some((ends[0]?, ends[1]?))
}

/// Returns the PE of each name; reports names that occur twice.
fn ids<'e>(reader: &Reader<'_>, entries: &'e [PeEntry]) -> HashMap<&'e str, PeId> {
    let mut ids = HashMap::new();
    for (id, entry) in (0..).map(PeId).zip(entries) {
        let Some(name) = entry.called() else {
            continue;
        };
        if let Some(PeId(first)) = ids.insert(name, id) {
            let first_line = entries[first as usize].spot.line;
            let fault = format!("there is a [[pe]] called `{name}` in line {first_line} already");
            reader.fault(entry.spot, fault);
        }
    }
    ids
}

/// Returns the tree, unless a fault was reported.
pub fn tree_of(reader: &Reader<'_>, entries: &[PeEntry]) -> Option<Tree> {
    let ids = ids(reader, entries);
    // Marks a parent that is invalid and was already reported.
    const NOBODY: PeId = PeId(u32::MAX);
    let parents = entries.iter().map(|entry| {
        let At { spot, value } = entry.parent.as_ref()?;
        let Some(parent) = value else {
            return Some(NOBODY);
        };
        Some(ids.get(parent.as_str()).copied().unwrap_or_else(|| {
            let name = entry.name();
            reader.fault(*spot, format!("{name}: no [[pe]] is called `{parent}`"));
            NOBODY
        }))
    });
    let mut parents: Vec<Option<PeId>> = parents.collect();
    // For one mistake only one fault is reported, so the root's invalid parent is ignored here.
    if let Some(root) = parents.first_mut().filter(|root| **root == Some(NOBODY)) {
        *root = None;
    }
    let TreeErrors(faults) = match Tree::from_parents(parents) {
        Ok(tree) => return Some(tree),
        Err(faults) => faults,
    };
    for fault in faults {
        let entry = fault.pe().map(|pe| &entries[pe.index()]);
        let spot = entry.map(|entry| {
            let at_parent = entry.parent.as_ref().map(|parent| parent.spot);
            at_parent.unwrap_or(entry.spot)
        });
        if !matches!(fault, TreeError::UnknownParent { .. }) {
            let name = entry.map(PeEntry::name).unwrap_or_default();
            let order = "(the PEs are P0, P1, .. in the order of the file)";
            reader.fault(spot, format!("{name}: {fault} {order}"));
        }
    }
    None
}
