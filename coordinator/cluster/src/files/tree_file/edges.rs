//! `[[edges]]` of a tree file: the shapes of links to certain PEs.
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

use super::nodes::{Nodes, read_index};
use crate::files::toml_file::{Field, Reader, Table};
use crate::options::link_spec::{self, EdgeSpec, LinkSpec, Links};

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
