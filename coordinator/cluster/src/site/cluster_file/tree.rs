//! The tree of a cluster file, by the parents of its PEs.

use std::collections::HashMap;

use flitcast_proto::tree::{TreeError, TreeErrors};
use flitcast_proto::{PeId, Tree};

use super::entry::PeEntry;
use super::values::At;
use crate::files::toml_file::Reader;

/// Returns the PE of each name; reports names that occur twice.
pub fn ids<'e>(reader: &Reader<'_>, entries: &'e [PeEntry]) -> HashMap<&'e str, PeId> {
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
