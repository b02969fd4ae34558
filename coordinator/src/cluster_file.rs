//! The cluster file: which PEs there are, where each runs, and who is whose parent,
//! in TOML, written by people and by what builds networks.
//!
//! ```toml
//! name = "two hosts"               # for reports; else the file's path
//! coordinator = "198.19.255.254"   # where the coordinator listens; else 127.0.0.1
//! [launch]
//! kind = "local"                   # processes of this machine; the default
//! [[pe]]                           # the first is P0, the root
//! name = "a"
//! address = "198.18.0.1"           # where its children reach it
//! run = ["ip", "netns", "exec", "a"]  # put before the command that plays the PE
//! [[pe]]
//! name = "b"
//! address = "198.18.0.2"
//! parent = "a"
//! parent_address = "198.18.0.5"    # if its parent has an address for this edge alone
//! ```
//!
//! All faults are reported at once, each with its line, and one mistake is one fault.
//! What a tree is, is [`Tree::from_parents`]'s business.

mod fault;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use flitcast_proto::tree::{TreeFault, TreeFaults};
use flitcast_proto::{PeId, Tree};
use toml::de::DeTable;

pub use fault::Fault;

use crate::placement::{Place, Placement, listen_on};
use crate::toml_file::{self, FileError, FileKind, LineFault, Reader, Value};

const FILE: FileKind = FileKind {
    name: "cluster file",
    // 1 KiB for each of 4096 PEs, several times what a PE needs.
    max_bytes: 4 << 20,
};

/// Why a cluster file gives no cluster.
pub type ClusterFileError = FileError<Fault>;

/// What a cluster file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFile {
    /// What people call it.
    pub name: Option<String>,
    /// Who is whose parent.
    pub tree: Tree,
    /// Where each PE runs.
    pub placement: Placement,
}

/// Reads the cluster in the file at `path`.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong in it.
pub fn load(path: &Path) -> Result<ClusterFile, ClusterFileError> {
    toml_file::load(FILE, path, parse)
}

/// Reads the cluster in `text`; otherwise, at least one fault, in order of lines.
pub(crate) fn parse(text: &str) -> Result<ClusterFile, Vec<LineFault<Fault>>> {
    toml_file::parse(text, |reader, document| reader.cluster(document))
}

/// What a key says, and in which line.
struct At<T> {
    line: usize,
    said: T,
}

/// A `[[pe]]`, as far as it can be read. What is there and cannot be read was
/// reported, and is `Some` with nothing in it.
#[derive(Default)]
struct Entry {
    line: usize,
    name: Option<String>,
    address: Option<Option<IpAddr>>,
    parent: Option<At<Option<String>>>,
    parent_address: Option<At<Option<IpAddr>>>,
    run: Vec<String>,
}

impl Entry {
    /// For messages.
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "?".to_owned())
    }
}

impl Reader<'_, Fault> {
    fn cluster(&mut self, document: &DeTable<'_>) -> Option<ClusterFile> {
        let (mut name, mut pes) = (None, None);
        let mut coordinator = Some(Ipv4Addr::LOCALHOST.into());
        for (key, value) in document {
            match key.get_ref().as_ref() {
                "name" => name = self.name("name", value),
                "coordinator" => coordinator = self.address("coordinator", value),
                "launch" => self.launch(value),
                "pe" => pes = Some(value),
                _ => self.unknown_key(key, "name, coordinator, launch, pe"),
            }
        }
        let Some(pes) = pes else {
            self.fault(None, Fault::NoPes);
            return None;
        };
        let entries = self.entries(pes)?;
        let tree = self.tree(&entries);
        let placement = self.placement(&entries, tree.as_ref(), coordinator);
        Some(ClusterFile {
            name,
            tree: tree?,
            placement: placement?,
        })
    }

    fn launch(&mut self, value: &Value<'_>) {
        let Some(table) = value.get_ref().as_table() else {
            return self.wrong_type("launch", "a table, [launch]", value);
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref().as_str()) {
                ("kind", Some("local")) => {}
                ("kind", _) => self.wrong_type("kind", "\"local\"", value),
                _ => self.unknown_key(key, "kind"),
            }
        }
    }

    /// `[[pe]]`, at least one.
    fn entries(&mut self, value: &Value<'_>) -> Option<Vec<Entry>> {
        let Some(tables) = value.get_ref().as_array() else {
            self.wrong_type("pe", "[[pe]] tables, in double brackets", value);
            return None;
        };
        if tables.is_empty() {
            self.fault(self.line_of(value), Fault::NoPes);
            return None;
        }
        Some(tables.iter().map(|value| self.entry(value)).collect())
    }

    fn entry(&mut self, value: &Value<'_>) -> Entry {
        let mut entry = Entry {
            line: self.line_of(value),
            ..Entry::default()
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("pe", "a table with name and address", value);
            return entry;
        };
        let mut named = false;
        for (key, value) in table {
            let line = self.line_of(value);
            match key.get_ref().as_ref() {
                "name" => {
                    named = true;
                    entry.name = self.name("name", value);
                }
                "address" => entry.address = Some(self.address("address", value)),
                "parent" => {
                    let said = self.name("parent", value);
                    entry.parent = Some(At { line, said });
                }
                "parent_address" => {
                    let said = self.address("parent_address", value);
                    entry.parent_address = Some(At { line, said });
                }
                "run" => entry.run = self.words("run", value),
                _ => self.unknown_key(key, "name, address, parent, parent_address, run"),
            }
        }
        if !named {
            self.fault(entry.line, Fault::NoName);
        }
        if entry.address.is_none() {
            let name = entry.name();
            self.fault(entry.line, Fault::NoAddress { name });
        }
        if let (Some(At { line, .. }), None) = (&entry.parent_address, &entry.parent) {
            let name = entry.name();
            self.fault(*line, Fault::EdgeWithoutParent { name });
        }
        entry
    }

    /// Something that people call something, on one line.
    fn name(&mut self, key: &'static str, value: &Value<'_>) -> Option<String> {
        let name = value.get_ref().as_str();
        let name = name.filter(|name| !name.is_empty() && !name.contains(char::is_control));
        if name.is_none() {
            self.wrong_type(key, "a name in quotes", value);
        }
        name.map(str::to_owned)
    }

    /// An address that something can be reached at.
    fn address(&mut self, key: &'static str, value: &Value<'_>) -> Option<IpAddr> {
        let address = value.get_ref().as_str().and_then(|text| text.parse().ok());
        let address = address.filter(|a: &IpAddr| !a.is_unspecified() && !a.is_multicast());
        if address.is_none() {
            self.wrong_type(key, "the IP address of one host, in quotes", value);
        }
        address
    }

    /// The words of a command, the first of which says what is run.
    fn words(&mut self, key: &'static str, value: &Value<'_>) -> Vec<String> {
        let list = value.get_ref().as_array();
        let words = list.and_then(|list| {
            let words = list.iter().map(|word| word.get_ref().as_str());
            words.map(|word| word.map(str::to_owned)).collect()
        });
        let is_command = |words: &Vec<String>| {
            words.first().is_none_or(|first| !first.is_empty())
                && words.iter().all(|word| !word.contains('\0'))
        };
        match words.filter(is_command) {
            Some(words) => words,
            None => {
                self.wrong_type(key, "a list of words, like [\"nice\", \"-5\"]", value);
                Vec::new()
            }
        }
    }

    fn tree(&mut self, entries: &[Entry]) -> Option<Tree> {
        let mut ids = HashMap::new();
        for (id, entry) in (0..).map(PeId).zip(entries) {
            let Some(name) = &entry.name else { continue };
            if let Some(PeId(first)) = ids.insert(name, id) {
                let (name, first_line) = (name.clone(), entries[first as usize].line);
                self.fault(entry.line, Fault::DuplicateName { name, first_line });
            }
        }
        // Stands for a parent that was reported already.
        const NOBODY: PeId = PeId(u32::MAX);
        let parents = entries.iter().map(|entry| {
            let At { line, said } = entry.parent.as_ref()?;
            let Some(parent) = said else {
                return Some(NOBODY);
            };
            Some(ids.get(parent).copied().unwrap_or_else(|| {
                let (name, parent) = (entry.name(), parent.clone());
                self.fault(*line, Fault::UnknownParent { name, parent });
                NOBODY
            }))
        });
        let TreeFaults(faults) = match Tree::from_parents(parents.collect()) {
            Ok(tree) => return Some(tree),
            Err(faults) => faults,
        };
        for fault in faults {
            let entry = fault.pe().map(|pe| &entries[pe.index()]);
            let line = entry.map(|entry| {
                let at_parent = entry.parent.as_ref().map(|parent| parent.line);
                at_parent.unwrap_or(entry.line)
            });
            if !matches!(fault, TreeFault::UnknownParent { .. }) {
                let name = entry.map(Entry::name).unwrap_or_default();
                self.fault(line, Fault::Tree { name, fault });
            }
        }
        None
    }

    /// Where all PEs run, once there is nothing to report any more.
    fn placement(
        &self,
        entries: &[Entry],
        tree: Option<&Tree>,
        coordinator: Option<IpAddr>,
    ) -> Option<Placement> {
        let tree = tree?;
        let place = |entry: &Entry| {
            let address = entry.address??;
            let parent_address = match &entry.parent_address {
                Some(at) => Some(at.said?),
                None => None,
            };
            Some(Place {
                name: Some(entry.name.clone()?),
                run: entry.run.clone(),
                address,
                parent_address,
                listen: address,
            })
        };
        let places: Option<Vec<Place>> = entries.iter().map(place).collect();
        let mut placement = Placement {
            coordinator: coordinator?,
            places: places?,
        };
        for pe in tree.pes() {
            let children = tree.children(pe).iter();
            let reached_at: Vec<IpAddr> = children
                .map(|&child| placement.parent_address(child, pe))
                .collect();
            if let Some(listen) = listen_on(&reached_at) {
                placement.places[pe.index()].listen = listen;
            }
        }
        Some(placement)
    }
}

#[cfg(test)]
mod tests;
