//! The PEs of a tree file, in its long form or its short one, and `[[edges]]`, the shapes of links to certain
//! PEs.
//!
//! ```toml
//! [[edges]]
//! child = 2
//! rate = "50mbit"
//! latency = "3ms"
//! up = { rate = "10mbit" }
//! ```
//!
//! A direction has the values of its edge where it gives none.

use std::collections::BTreeMap;

use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;
use toml::de::DeInteger;

use crate::files::toml_file::{Field, Reader, Table};
use crate::files::user_file::SourcePosition;
use crate::options::link_spec::{self, EdgeSpec, LinkSpec, Links};
use crate::text::phrases::names;

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

pub struct Node {
    pub spot: SourcePosition,
    pub parent: Parent,
}

/// Number of unused ids that a message names.
const UNUSED_NAMED: usize = 4;

/// The PEs by id. Ids may have gaps if that was reported.
pub type Nodes = BTreeMap<u32, Node>;

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
            misnamed.push((pe.spot(), "this [[pe]] has no id".to_owned()));
            continue;
        };
        if let Some(id) = read_index(&field) {
            let spot = field.spot();
            if let Some(first) = nodes.get(&id) {
                let line = first.spot.line;
                let twice = format!("P{id}: there is a [[pe]] with this id in line {line} already");
                misnamed.push((spot, twice));
            } else if id as usize >= count {
                let last = count - 1;
                let high = format!("P{id}: with {count} PEs, the ids must be 0 to {last}");
                misnamed.push((spot, high));
            }
            // Even if it is too high: its children are not at fault.
            nodes.entry(id).or_insert(Node { spot, parent });
        }
    }
    // As many ids have no table as tables have no valid id, so those need no reports.
    if !misnamed.is_empty() {
        let unused = unused(&nodes, count);
        for (spot, fault) in misnamed {
            reader.fault(spot, fault + &unused);
        }
    }
    Some(nodes)
}

/// Formats the first ids without a table as `; no [[pe]] is given for P4, P5`; empty if there are
/// none.
fn unused(nodes: &Nodes, count: usize) -> String {
    let unused = (0..count as u32).filter(|id| !nodes.contains_key(id));
    let unused: Vec<PeId> = unused.take(UNUSED_NAMED).map(PeId).collect();
    let more = match unused.len() {
        0 => return String::new(),
        UNUSED_NAMED => " ...",
        _ => "",
    };
    format!("; no [[pe]] is given for {}{more}", names(&unused))
}

/// Reads the links of the file and reports the errors. `nodes` are its PEs, if they are known.
pub fn links(reader: &Reader<'_>, field: &Field<'_, '_>, nodes: Option<&Nodes>) -> Links {
    let mut links = Links::new();
    let mut lines = BTreeMap::new();
    let list = field.list_of("[[edges]] tables, in double brackets");
    for edge in list.into_iter().flatten() {
        let Some(table) = edge.table_of("a table with child and rate or latency") else {
            continue;
        };
        let named = table.optional("child");
        let child = named.as_ref().and_then(read_index).map(PeId);
        let link = read_edge(reader, &table);
        let Some(named) = named else {
            table.fault("this [[edges]] has no child: an edge is named by the PE at its lower end");
            continue;
        };
        let Some(child) = child else {
            continue;
        };
        if child == PeId::ROOT || nodes.is_some_and(|nodes| !nodes.contains_key(&child.0)) {
            named.fault(format!(
                "no edge leads to {child}: an edge is named by the PE at its lower end"
            ));
        }
        match lines.get(&child) {
            Some(&first_line) => {
                named.fault(format!(
                    "the edge to {child} is given in line {first_line} already"
                ));
            }
            None => {
                lines.insert(child, named.spot().line);
                links.insert(child, link);
            }
        }
    }
    links
}

fn read_edge(reader: &Reader<'_>, table: &Table<'_, '_>) -> EdgeSpec {
    let mut both = LinkSpec::default();
    let mut has_link = read_link(table, &mut both);
    let (down, up) = (table.optional("down"), table.optional("up"));
    has_link |= down.is_some() || up.is_some();
    table.refuse_others();
    let before = reader.fault_count();
    let edge = EdgeSpec {
        down: read_direction(both, down.as_ref()),
        up: read_direction(both, up.as_ref()),
    };
    if !has_link {
        table.fault("this [[edges]] describes no link: give rate, latency, down or up");
    }
    // Only if nothing else is wrong, so that one mistake is one error.
    if reader.fault_count() == before {
        let mut together: Vec<_> = [(down, edge.down), (up, edge.up)]
            .into_iter()
            .filter_map(|(field, link)| {
                let spot = field.map_or(table.spot(), |field| Some(field.spot()));
                Some((spot, link.check().err()?))
            })
            .collect();
        together.dedup();
        for (spot, fault) in together {
            reader.fault(spot, fault);
        }
    }
    edge
}

/// Reads a direction of a link; missing values are those of `both`.
fn read_direction(both: LinkSpec, field: Option<&Field<'_, '_>>) -> LinkSpec {
    let mut link = both;
    if let Some(table) = field.and_then(|field| field.table_of("a table with rate or latency")) {
        read_link(&table, &mut link);
        table.refuse_others();
    }
    link
}

/// Sets the `rate` and `latency` of a table, and returns whether it has any.
fn read_link(table: &Table<'_, '_>, link: &mut LinkSpec) -> bool {
    let (rate, latency) = (table.optional("rate"), table.optional("latency"));
    let is_given = rate.is_some() || latency.is_some();
    let rate = rate.and_then(|field| field.parse_as("a text like \"200mbit\"", link_spec::rate));
    if let Some(rate) = rate {
        link.rate = rate;
    }
    let latency =
        latency.and_then(|field| field.parse_as("a text like \"1ms\"", link_spec::latency));
    link.latency = latency.or(link.latency);
    is_given
}
