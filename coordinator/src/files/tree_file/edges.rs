//! `[[edges]]` of a tree file: what the links to certain PEs are to be like.
//!
//! ```toml
//! [[edges]]
//! child = 2
//! rate = "50mbit"
//! latency = "3ms"
//! up = { rate = "10mbit" }
//! ```
//!
//! What a direction does not say is as its edge has it.

use std::collections::BTreeMap;

use flitcast_proto::PeId;
use toml::Spanned;
use toml::de::DeTable;

use super::{Nodes, Reader, TreeFileFault, Value};
use crate::files::user_file::Spot;
use crate::options::link_spec::{self, EdgeSpec, LinkFault, LinkSpec, Links};

impl Reader<'_, TreeFileFault> {
    /// The links of the file; what is wrong with them is noted. `nodes` are its PEs,
    /// if it is known what they are.
    pub(super) fn edges(&mut self, value: &Value<'_>, nodes: Option<&Nodes>) -> Links {
        let mut links = Links::new();
        let Some(tables) = value.get_ref().as_array() else {
            self.wrong_type("edges", "[[edges]] tables, in double brackets", value);
            return links;
        };
        let mut spots = BTreeMap::new();
        for value in tables.iter() {
            let Some(table) = value.get_ref().as_table() else {
                self.wrong_type("edges", "a table with child and rate or latency", value);
                continue;
            };
            let spot = self.spot_of(value);
            let (child, link) = self.edge(table, spot);
            let Some((child, spot)) = child else {
                continue;
            };
            if child == PeId::ROOT || nodes.is_some_and(|nodes| !nodes.contains_key(&child.0)) {
                self.fault(spot, TreeFileFault::NoSuchEdge { child });
            }
            match spots.get(&child) {
                Some(&Spot { line, .. }) => {
                    let first_line = line;
                    self.fault(spot, TreeFileFault::DuplicateEdge { child, first_line });
                }
                None => {
                    spots.insert(child, spot);
                    links.insert(child, link);
                }
            }
        }
        links
    }

    /// One table: its edge, with the line that names it, and what is said of it.
    fn edge(&mut self, table: &DeTable<'_>, spot: Spot) -> (Option<(PeId, Spot)>, EdgeSpec) {
        let (mut child, mut named) = (None, false);
        let mut both = LinkSpec::default();
        let (mut down, mut up) = (None, None);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "child" => {
                    named = true;
                    let index = self.index("child", value);
                    child = index.map(|index| (PeId(index), self.spot_of(value)));
                }
                "down" => down = Some(value),
                "up" => up = Some(value),
                _ => self.link_key(&mut both, key, value, "child, rate, latency, down, up"),
            }
        }
        if !named {
            self.fault(spot, TreeFileFault::NoChild);
        }
        let before = self.fault_count();
        let edge = EdgeSpec {
            down: self.direction("down", both, down),
            up: self.direction("up", both, up),
        };
        let says_more = ["rate", "latency", "down", "up"];
        if !says_more.iter().any(|key| table.contains_key(*key)) {
            self.fault(spot, TreeFileFault::EmptyEdge);
        }
        // Where nothing else is wrong, so that one mistake is one fault.
        if self.fault_count() == before {
            let directions = [(down, edge.down), (up, edge.up)];
            let mut together: Vec<_> = directions
                .into_iter()
                .filter_map(|(value, link)| {
                    let spot = value.map_or(spot, |value| self.spot_of(value));
                    Some((spot, link.check().err()?))
                })
                .collect();
            together.dedup();
            for (spot, fault) in together {
                self.fault(spot, TreeFileFault::Link(fault));
            }
        }
        (child, edge)
    }

    /// A direction of its own: what it says, and `both` where it does not.
    fn direction(
        &mut self,
        name: &'static str,
        both: LinkSpec,
        value: Option<&Value<'_>>,
    ) -> LinkSpec {
        let mut link = both;
        let Some(value) = value else {
            return link;
        };
        match value.get_ref().as_table() {
            Some(table) => {
                for (key, value) in table {
                    self.link_key(&mut link, key, value, "rate, latency");
                }
            }
            None => self.wrong_type(name, "a table with rate or latency", value),
        }
        link
    }

    /// `rate` or `latency`; `known` are the keys that may stand here.
    fn link_key(
        &mut self,
        link: &mut LinkSpec,
        key: &Spanned<impl AsRef<str>>,
        value: &Value<'_>,
        known: &'static str,
    ) {
        let (key, expected) = match key.get_ref().as_ref() {
            "rate" => ("rate", "a text like \"200mbit\""),
            "latency" => ("latency", "a text like \"1ms\""),
            _ => return self.unknown_key(key, known),
        };
        let Some(text) = value.get_ref().as_str() else {
            return self.wrong_type(key, expected, value);
        };
        let read: Result<(), LinkFault> = match key {
            "rate" => link_spec::rate(text).map(|rate| link.rate = rate),
            _ => link_spec::latency(text).map(|latency| link.latency = Some(latency)),
        };
        if let Err(fault) = read {
            self.fault(self.spot_of(value), TreeFileFault::Link(fault));
        }
    }
}
