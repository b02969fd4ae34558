//! The PEs of a tree file, in its long form or its short one.

use std::collections::BTreeMap;

use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;
use toml::de::DeInteger;

use super::error;
use crate::files::toml_file::{Field, Reader};
use crate::files::user_file::SourcePosition;

/// The parent of a PE in the file.
#[derive(Clone, Copy)]
pub enum Parent {
    Absent,
    /// A value with an error that was reported already.
    Unreadable,
    Is {
        id: u32,
        spot: SourcePosition,
    },
}

/// A PE in the file.
pub struct Node {
    pub spot: SourcePosition,
    pub parent: Parent,
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
pub type Nodes = BTreeMap<u32, Node>;

/// Reads the index of a PE.
pub fn read_index(field: &Field<'_, '_>) -> Option<u32> {
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
pub fn parent_list(field: &Field<'_, '_>) -> Option<Nodes> {
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
pub const NO_PES: &str = "no PEs: give a [[pe]] table for each, or parents = [...]";

pub fn pe_tables(reader: &Reader<'_>, field: &Field<'_, '_>) -> Option<Nodes> {
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
    misnamed: &[(SourcePosition, Misnamed)],
    nodes: &Nodes,
    count: usize,
) {
    let unused = (0..count as u32).filter(|id| !nodes.contains_key(id));
    let unused: Vec<PeId> = match misnamed {
        [] => return,
        _ => unused.take(error::UNUSED_NAMED).map(PeId).collect(),
    };
    for &(spot, misnamed) in misnamed {
        let unused = error::Unused(&unused);
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
