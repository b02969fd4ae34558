//! The tree file: a tree in TOML, written by users.
//!
//! ```toml
//! [[pe]]
//! id = 0
//! [[pe]]
//! id = 1
//! parent = 0
//! ```
//!
//! A short form is `parents = [0, 0, 1]`, the parents of P1, P2, P3. Both forms may have `root = 0` at
//! the top, and `[[edges]]` (see `nodes`) with the shapes of certain links. All errors are reported at
//! once, each with its line, and one mistake is one error. [`Tree::from_parents`] checks the tree; this
//! module finds the line of each error.

mod nodes;

use std::path::Path;

use flitcast_proto::tree::{MAX_PES, TreeError, TreeErrors};
use flitcast_proto::{PeId, Tree};

use crate::files::toml_file::{self, Reader, Table};
use crate::files::user_file::{self, FileError, FileKind, PositionedError};
use crate::options::link_spec::Links;
use nodes::{NO_PES, Nodes, Parent, links, parent_list, pe_tables, read_index};

const FILE: FileKind = FileKind {
    name: "tree file",
    // 64 for each of MAX_PES PEs, which is half as much again as the long form needs for a million.
    max_bytes: 64 * MAX_PES as u64,
};

/// The content of a tree file.
#[derive(Clone, Debug)]
pub struct TreeFile {
    pub tree: Tree,
    pub links: Links,
}

/// Loads `--tree FILE`.
pub fn load(path: &Path) -> Result<TreeFile, FileError> {
    user_file::load(FILE, path, parse)
}

/// Parses the tree in `text`; returns at least one error otherwise, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<TreeFile, Vec<PositionedError>> {
    toml_file::parse(text, |reader, top| {
        let (nodes, links) = document(reader, top);
        let tree = tree_of(reader, &nodes?)?;
        Some(TreeFile { tree, links })
    })
}

/// Reads the PEs of the file, or `None` if they are unknown, and its links.
fn document(reader: &Reader<'_>, top: &Table<'_, '_>) -> (Option<Nodes>, Links) {
    if let Some(root) = top.optional("root")
        && read_index(&root).is_some_and(|root| root != 0)
    {
        root.fault("root must be 0: every tree's root is P0 (number the PEs so that it is)");
    }
    let (tables, list) = (top.optional("pe"), top.optional("parents"));
    let edges = top.optional("edges");
    top.refuse_others();
    let nodes = match (tables, list) {
        (Some(tables), None) => pe_tables(reader, &tables),
        (None, Some(list)) => parent_list(&list),
        (Some(_), Some(_)) => {
            top.refuse(
                "parents",
                "the PEs are given twice: use either [[pe]] or parents = [...]",
            );
            None
        }
        (None, None) => {
            top.fault(NO_PES);
            None
        }
    };
    let edges = edges.map(|edges| links(reader, &edges, nodes.as_ref()));
    (nodes, edges.unwrap_or_default())
}

/// Returns the tree of `nodes`. If ids have gaps, the tree is checked as if they had none, to find
/// further errors.
fn tree_of(reader: &Reader<'_>, nodes: &Nodes) -> Option<Tree> {
    let without_p0 = (!nodes.contains_key(&0)).then_some(0);
    let ids = without_p0.into_iter().chain(nodes.keys().copied());
    let ids: Vec<u32> = ids.collect();
    // Represents a missing parent.
    const NOBODY: PeId = PeId(u32::MAX);
    let parents = ids.iter().map(|id| match nodes.get(id)?.parent {
        Parent::Absent => None,
        Parent::Unreadable => Some(NOBODY),
        Parent::Is { id, .. } => {
            let place = ids.binary_search(&id).ok();
            Some(place.map_or(NOBODY, |place| PeId(place as u32)))
        }
    });
    let TreeErrors(faults) = match Tree::from_parents(parents.collect()) {
        Ok(tree) => return Some(tree),
        Err(faults) => faults,
    };
    for tree_fault in faults {
        let id = tree_fault.pe().map(|pe| ids[pe.index()]);
        let (spot, parent) = match id.and_then(|id| nodes.get(&id)) {
            Some(node) => match node.parent {
                Parent::Unreadable => continue,
                Parent::Is { id, spot } => (Some(spot), PeId(id)),
                Parent::Absent => (Some(node.spot), NOBODY),
            },
            None => (None, NOBODY),
        };
        reader.fault(spot, as_in_file(tree_fault, &ids, parent));
    }
    None
}

/// Returns `fault` with the names that the file uses: P_i is `ids[i]`, and the parent of the PE at
/// fault is `parent`.
fn as_in_file(fault: TreeError, ids: &[u32], parent: PeId) -> TreeError {
    let name = |pe: PeId| PeId(ids[pe.index()]);
    let names = |pes: Vec<PeId>| pes.into_iter().map(name).collect();
    match fault {
        TreeError::NoRoot(_) => TreeError::NoRoot(parent),
        TreeError::RootHasParent(_) => TreeError::RootHasParent(parent),
        TreeError::SeveralRoots(pe) => TreeError::SeveralRoots(name(pe)),
        TreeError::SelfParent(pe) => TreeError::SelfParent(name(pe)),
        TreeError::AbsentParent { pe, .. } => TreeError::AbsentParent {
            pe: name(pe),
            parent,
        },
        TreeError::UnknownParent { pe, last, .. } => TreeError::UnknownParent {
            pe: name(pe),
            parent,
            last: name(last),
        },
        TreeError::Cycle { pes, below } => TreeError::Cycle {
            pes: names(pes),
            below: names(below),
        },
        TreeError::NoPes
        | TreeError::UnknownRoot { .. }
        | TreeError::TooManyPes { .. }
        | TreeError::InFile { .. } => fault,
    }
}

#[cfg(test)]
mod tests;
