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
//! the top, and `[[edges]]` (see `edges`) with the shapes of certain links. All errors are reported at
//! once, each with its line, and one mistake is one error. [`Tree::from_parents`] checks the tree; this
//! module finds the line of each error.

mod edges;
mod fault;

use std::collections::BTreeMap;
use std::path::Path;

use flitcast_proto::tree::{MAX_PES, TreeFaults};
use flitcast_proto::{PeId, Tree};
use toml::de::DeInteger;

use crate::options::link_spec::Links;

use crate::files::toml_file::{self, Field, Reader, Table};
use crate::files::user_file::{self, FileError, FileKind, Spot, SpotFault};

const FILE: FileKind = FileKind {
    name: "tree file",
    // 64 for each of MAX_PES PEs, which is half as much again as the long form needs for a million.
    max_bytes: 64 * MAX_PES as u64,
};

/// The content of a tree file.
#[derive(Clone, Debug)]
pub struct TreeFile {
    /// The tree.
    pub tree: Tree,
    /// The links that it describes.
    pub links: Links,
}

/// Reads the tree in the file at `path`.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or all errors in it.
pub fn load(path: &Path) -> Result<TreeFile, FileError> {
    user_file::load(FILE, path, parse)
}

/// Parses the tree in `text`; returns at least one error otherwise, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<TreeFile, Vec<SpotFault>> {
    toml_file::parse(text, |reader, top| {
        let (nodes, links) = document(reader, top);
        let tree = tree_of(reader, &nodes?)?;
        Some(TreeFile { tree, links })
    })
}

/// The parent of a PE in the file.
#[derive(Clone, Copy)]
enum Parent {
    Absent,
    /// A value with an error that was reported already.
    Unreadable,
    Is {
        id: u32,
        spot: Spot,
    },
}

/// A PE in the file.
struct Node {
    spot: Spot,
    parent: Parent,
}

/// A `[[pe]]` without an id, or with an invalid one.
#[derive(Clone, Copy)]
enum Misnamed {
    NoId,
    /// The id, and the line of its first use.
    Twice(u32, usize),
    TooHigh(u32),
}

/// The PEs by id. Ids may have gaps if that was reported.
type Nodes = BTreeMap<u32, Node>;

fn read_index(field: &Field<'_, '_>) -> Option<u32> {
    let in_range = |integer: &DeInteger<'_>| {
        let index = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        index.filter(|&index| (index as usize) < MAX_PES)
    };
    let index = field.value().as_integer().and_then(in_range);
    if index.is_none() {
        let expected = format!("a whole number from 0 to {}", MAX_PES - 1);
        field.expect(&expected, index);
    }
    index
}

fn read_parent(field: &Field<'_, '_>) -> Parent {
    match read_index(field) {
        Some(id) => Parent::Is {
            id,
            spot: field.spot(),
        },
        None => Parent::Unreadable,
    }
}

/// Reads `parents = [0, 0, 1]`. An empty list is P0 alone.
fn parent_list(field: &Field<'_, '_>) -> Option<Nodes> {
    let list = field.list_of("a list of indices")?;
    let root = Node {
        spot: field.spot(),
        parent: Parent::Absent,
    };
    bounded(field.count_values() + 1, field)?;
    let mut nodes = Nodes::from([(0, root)]);
    for (id, field) in (1..).zip(list) {
        let field = field.called(format!("the parent of {}", PeId(id)));
        let parent = read_parent(&field);
        let spot = field.spot();
        nodes.insert(id, Node { spot, parent });
    }
    Some(nodes)
}

/// Refuses more PEs than allowed, before memory is allocated for them.
fn bounded(count: usize, field: &Field<'_, '_>) -> Option<()> {
    if count > MAX_PES {
        field.fault(format!(
            "there are {count} PEs, more than the {MAX_PES} that are allowed"
        ));
        return None;
    }
    Some(())
}

/// The message for a file that names no PEs.
const NO_PES: &str = "no PEs: give a [[pe]] table for each, or parents = [...]";

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
    let links = edges.map(|edges| edges::links(reader, &edges, nodes.as_ref()));
    (nodes, links.unwrap_or_default())
}

/// Reads `[[pe]]`.
fn pe_tables(reader: &Reader<'_>, field: &Field<'_, '_>) -> Option<Nodes> {
    let list = field.list_of("[[pe]] tables, in double brackets")?;
    let count = field.count_values();
    if count == 0 {
        field.fault(NO_PES);
        return None;
    }
    bounded(count, field)?;

    let mut nodes = Nodes::new();
    // Their messages name the unused ids, which are only known after all tables.
    let mut misnamed = Vec::new();
    for pe in list {
        let Some(table) = pe.table_of("a table with id and parent") else {
            continue;
        };
        let (id, parent) = (table.optional("id"), table.optional("parent"));
        let parent = parent.map_or(Parent::Absent, |parent| read_parent(&parent));
        table.refuse_others();
        let Some(field) = id else {
            misnamed.push((pe.spot(), Misnamed::NoId));
            continue;
        };
        if let Some(id) = read_index(&field) {
            let spot = field.spot();
            if let Some(first) = nodes.get(&id) {
                misnamed.push((spot, Misnamed::Twice(id, first.spot.line)));
            } else if id as usize >= count {
                misnamed.push((spot, Misnamed::TooHigh(id)));
            }
            // Even if it is too high: its children are not at fault.
            nodes.entry(id).or_insert(Node { spot, parent });
        }
    }
    report_misnamed(reader, &misnamed, &nodes, count);
    Some(nodes)
}

/// Reports the tables without an id, or with an invalid one. As many ids have no table, so those
/// need no reports.
fn report_misnamed(
    reader: &Reader<'_>,
    misnamed: &[(Spot, Misnamed)],
    nodes: &Nodes,
    count: usize,
) {
    let unused = (0..count as u32).filter(|id| !nodes.contains_key(id));
    let unused: Vec<PeId> = match misnamed {
        [] => return,
        _ => unused.take(fault::UNUSED_NAMED).map(PeId).collect(),
    };
    for &(spot, misnamed) in misnamed {
        let unused = fault::Unused(&unused);
        let fault = match misnamed {
            Misnamed::NoId => format!("this [[pe]] has no id{unused}"),
            Misnamed::Twice(id, first_line) => format!(
                "P{id}: there is a [[pe]] with this id in line {first_line} already{unused}"
            ),
            Misnamed::TooHigh(id) => {
                let last = count - 1;
                format!("P{id}: with {count} PEs, the ids must be 0 to {last}{unused}")
            }
        };
        reader.fault(spot, fault);
    }
}

/// Returns the tree of `nodes`. If ids have gaps, the tree is checked as if they had none, to find
/// further errors.
fn tree_of(reader: &Reader<'_>, nodes: &Nodes) -> Option<Tree> {
    let without_p0 = (!nodes.contains_key(&0)).then_some(0);
    let ids: Vec<u32> = without_p0
        .into_iter()
        .chain(nodes.keys().copied())
        .collect();
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
    let TreeFaults(faults) = match Tree::from_parents(parents.collect()) {
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
        reader.fault(spot, fault::as_in_file(tree_fault, &ids, parent));
    }
    None
}

#[cfg(test)]
mod tests;
