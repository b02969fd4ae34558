//! The tree file: a tree in TOML, written by people.
//!
//! ```toml
//! [[pe]]
//! id = 0
//! [[pe]]
//! id = 1
//! parent = 0
//! ```
//!
//! or in short `parents = [0, 0, 1]`, the parents of P1, P2, P3. `root = 0` may
//! stand at the top of either, and `[[edges]]` (see `edges`) may say what certain links
//! are to be like. All faults are reported at once, each with its
//! line, and one mistake is one fault. What a tree is, and which lists of
//! parents are none, is [`Tree::from_parents`]'s business; here it is only found
//! out which line says so.

mod edges;
mod fault;

use std::collections::BTreeMap;
use std::path::Path;

use flitcast_proto::tree::{MAX_PES, TreeFaults};
use flitcast_proto::{PeId, Tree};
use toml::de::{DeInteger, DeTable};

use crate::options::link_spec::Links;

pub use fault::TreeFileFault;

use crate::files::toml_file::{self, Reader, Value};
use crate::files::user_file::{self, FileError, FileKind, Spot, SpotFault};

const FILE: FileKind = FileKind {
    name: "tree file",
    // 64 for each of MAX_PES PEs, which is half as much again as the long form needs
    // for a million.
    max_bytes: 64 * MAX_PES as u64,
};

/// Why a tree file gives no tree.
pub type TreeFileError = FileError<TreeFileFault>;

/// What a tree file says.
#[derive(Clone, Debug)]
pub struct TreeFile {
    /// The tree.
    pub tree: Tree,
    /// The links that it says something of.
    pub links: Links,
}

/// Reads the tree in the file at `path`.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong in it.
pub fn load(path: &Path) -> Result<TreeFile, TreeFileError> {
    user_file::load(FILE, path, parse)
}

/// Reads the tree in `text`; otherwise, at least one fault, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<TreeFile, Vec<SpotFault<TreeFileFault>>> {
    toml_file::parse(text, |reader, document| {
        let (nodes, links) = reader.document(document);
        let tree = reader.tree(&nodes?)?;
        Some(TreeFile { tree, links })
    })
}

/// What the file says of a PE's parent.
#[derive(Clone, Copy)]
enum Parent {
    Absent,
    /// Something that was reported already.
    Unreadable,
    Is {
        id: u32,
        spot: Spot,
    },
}

/// What the file says of a PE.
struct Node {
    spot: Spot,
    parent: Parent,
}

/// A `[[pe]]` that has no id, or one that it should not have.
#[derive(Clone, Copy)]
enum Misnamed {
    NoId,
    /// The id, and the line where it was given before.
    Twice(u32, usize),
    TooHigh(u32),
}

/// By id. The ids may have gaps where that was reported.
type Nodes = BTreeMap<u32, Node>;

impl Reader<'_, TreeFileFault> {
    /// The index of a PE, or a fault about `what`.
    fn index(&mut self, what: &str, value: &Value<'_>) -> Option<u32> {
        let in_range = |integer: &DeInteger<'_>| {
            let index = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
            index.filter(|&index| (index as usize) < MAX_PES)
        };
        let index = value.get_ref().as_integer().and_then(in_range);
        if index.is_none() {
            let what = what.to_owned();
            let found = self.found(value);
            self.fault(self.spot_of(value), TreeFileFault::NoIndex { what, found });
        }
        index
    }

    fn parent(&mut self, what: &str, value: &Value<'_>) -> Parent {
        match self.index(what, value) {
            Some(id) => Parent::Is {
                id,
                spot: self.spot_of(value),
            },
            None => Parent::Unreadable,
        }
    }

    /// The PEs of the file, `None` if it is not said what they are; and its links.
    fn document(&mut self, document: &DeTable<'_>) -> (Option<Nodes>, Links) {
        let (mut tables, mut list, mut edges) = (None, None, None);
        for (key, value) in document {
            match key.get_ref().as_ref() {
                "root" => {
                    if self.index("root", value).is_some_and(|root| root != 0) {
                        self.fault(self.spot_of(value), TreeFileFault::RootNotP0);
                    }
                }
                "pe" => tables = Some(value),
                "parents" => list = Some((key, value)),
                "edges" => edges = Some(value),
                _ => self.unknown_key(key, "root, pe, parents, edges"),
            }
        }
        let nodes = match (tables, list) {
            (Some(tables), None) => self.pe_tables(tables),
            (None, Some((_, list))) => self.parent_list(list),
            (Some(_), Some((key, _))) => {
                self.fault(self.spot_of(key), TreeFileFault::TwoForms);
                None
            }
            (None, None) => {
                self.fault(None, TreeFileFault::NoPes);
                None
            }
        };
        let links = edges.map(|edges| self.edges(edges, nodes.as_ref()));
        (nodes, links.unwrap_or_default())
    }

    /// `parents = [0, 0, 1]`. An empty list is P0 alone.
    fn parent_list(&mut self, value: &Value<'_>) -> Option<Nodes> {
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type("parents", "a list of indices", value);
            return None;
        };
        let root = Node {
            spot: self.spot_of(value),
            parent: Parent::Absent,
        };
        self.bounded(list.len() + 1, value)?;
        let mut nodes = Nodes::from([(0, root)]);
        for (id, value) in (1..).zip(list.iter()) {
            let spot = self.spot_of(value);
            let parent = self.parent(&format!("the parent of {}", PeId(id)), value);
            nodes.insert(id, Node { spot, parent });
        }
        Some(nodes)
    }

    /// `[[pe]]`.
    fn pe_tables(&mut self, value: &Value<'_>) -> Option<Nodes> {
        let Some(tables) = value.get_ref().as_array() else {
            self.wrong_type("pe", "[[pe]] tables, in double brackets", value);
            return None;
        };
        if tables.is_empty() {
            self.fault(self.spot_of(value), TreeFileFault::NoPes);
            return None;
        }
        self.bounded(tables.len(), value)?;

        let mut nodes = Nodes::new();
        // Their messages name the ids that are left over, known only after all.
        let mut misnamed = Vec::new();
        for value in tables.iter() {
            let Some(table) = value.get_ref().as_table() else {
                self.wrong_type("pe", "a table with id and parent", value);
                continue;
            };
            let spot = self.spot_of(value);
            let (mut id, mut parent) = (None, Parent::Absent);
            for (key, value) in table {
                match key.get_ref().as_ref() {
                    "id" => id = Some((self.index("id", value), self.spot_of(value))),
                    "parent" => parent = self.parent("parent", value),
                    _ => self.unknown_key(key, "id, parent"),
                }
            }
            match id {
                None => misnamed.push((spot, Misnamed::NoId)),
                Some((None, _)) => {} // Reported by index().
                Some((Some(id), spot)) => {
                    if let Some(first) = nodes.get(&id) {
                        misnamed.push((spot, Misnamed::Twice(id, first.spot.line)));
                    } else if id as usize >= tables.len() {
                        misnamed.push((spot, Misnamed::TooHigh(id)));
                    }
                    // Also where it is too high: its children are not at fault.
                    nodes.entry(id).or_insert(Node { spot, parent });
                }
            }
        }
        self.misnamed(&misnamed, &nodes, tables.len());
        Some(nodes)
    }

    /// Refuses more PEs than allowed, before anything is made of them.
    fn bounded(&mut self, count: usize, value: &Value<'_>) -> Option<()> {
        if count > MAX_PES {
            self.fault(self.spot_of(value), TreeFileFault::TooManyPes { count });
            return None;
        }
        Some(())
    }

    /// Reports the tables that have no id, or one that they should not have.
    /// There are as many ids without a table, so those need no reports.
    fn misnamed(&mut self, misnamed: &[(Spot, Misnamed)], nodes: &Nodes, count: usize) {
        let unused = (0..count as u32).filter(|id| !nodes.contains_key(id));
        let unused: Vec<PeId> = match misnamed {
            [] => return,
            _ => unused.take(fault::UNUSED_NAMED).map(PeId).collect(),
        };
        for &(spot, misnamed) in misnamed {
            let unused = unused.clone();
            let fault = match misnamed {
                Misnamed::NoId => TreeFileFault::NoId { unused },
                Misnamed::Twice(id, first_line) => TreeFileFault::DuplicateId {
                    pe: PeId(id),
                    first_line,
                    unused,
                },
                Misnamed::TooHigh(id) => TreeFileFault::IdTooHigh {
                    pe: PeId(id),
                    count,
                    unused,
                },
            };
            self.fault(spot, fault);
        }
    }

    /// The tree of `nodes`. Where ids have gaps it is checked as if they had
    /// none, to find what else is wrong.
    fn tree(&mut self, nodes: &Nodes) -> Option<Tree> {
        let without_p0 = (!nodes.contains_key(&0)).then_some(0);
        let ids: Vec<u32> = without_p0
            .into_iter()
            .chain(nodes.keys().copied())
            .collect();
        // Stands for a parent that there is not.
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
            self.fault(
                spot,
                TreeFileFault::Tree(fault::as_in_file(tree_fault, &ids, parent)),
            );
        }
        None
    }
}

#[cfg(test)]
mod tests;
