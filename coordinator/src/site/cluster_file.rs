//! The cluster file: which PEs there are, where each runs, and who is whose parent,
//! in TOML, written by people and by what builds networks.
//!
//! ```toml
//! name = "two hosts"               # for reports; else the file's path
//! coordinator = "198.19.255.254"   # where the coordinator listens; else 127.0.0.1
//! [launch]
//! kind = "local"                   # processes of this machine; the default. Or "join":
//!                                  # others start them, and `coordinator` needs a port.
//!                                  # Or "ssh", or what starts those that join: "slurm",
//!                                  # "compose"
//! wait = "60s"                     # until all have joined; the default
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
//! Where PEs join, `tree = "kary:2:8"` can stand in place of all `[[pe]]`: each is then where
//! it joins from.
//!
//! What else it can say: `ssh` has the keys of `[launch]` for hosts that ssh reaches, `starter`
//! those for Slurm and compose; `network`
//! has `[network]`, which takes the place of parents;
//! `settings` has `[security]`, `[timeouts]` and `link`. `deploy/cluster.schema.json` says
//! the same to editors.
//!
//! All faults are reported at once, each with its line and column, and one mistake is one
//! fault. What a tree is, is [`Tree::from_parents`]'s business.

mod fault;
mod joined;
mod launch;
mod network;
mod settings;
mod ssh;
mod starter;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use flitcast_proto::network::Network;
use flitcast_proto::tree::{TreeFault, TreeFaults};
use flitcast_proto::{PeId, Tree};
use toml::de::DeTable;

pub use fault::{ClusterFileFault, across_hosts};

use crate::files::toml_file::{self, Reader, Value};
use crate::files::user_file::{self, FileError, FileKind, Spot, SpotFault};
use crate::options::link_spec::{LinkSpec, Links};
use crate::site::placement::{Launch, Place, Placement, listen_on};
use crate::site::settings::Settings;
use crate::site::starter::Starter;

const FILE: FileKind = FileKind {
    name: "cluster file",
    // 1 KiB for each of 4096 PEs, several times what a PE needs.
    max_bytes: 4 << 20,
};

/// Names stand in every message about a PE; a host's own is no longer.
const LONGEST_NAME: usize = 255;

/// What may stand at its top.
const KEYS: &str = "name, coordinator, launch, network, security, timeouts, link, tree, pe";

/// And in a `[[pe]]`.
const PE_KEYS: &str = "name, address, parent, parent_address, run, ssh, link";

/// Why a cluster file gives no cluster.
pub type ClusterFileError = FileError<ClusterFileFault>;

/// What a cluster file says.
#[derive(Clone, Debug)]
pub struct ClusterFile {
    /// What people call it.
    pub name: Option<String>,
    /// Who is connected to whom.
    pub edges: Edges,
    /// Where each PE runs, in the order of the file.
    pub placement: Placement,
    /// The links to the parents of certain PEs, by the order of the file.
    pub links: Links,
    /// What it says of the cluster as a whole.
    pub settings: Settings,
}

/// Who is connected to whom.
#[derive(Clone, Debug)]
pub enum Edges {
    /// By their parents.
    Tree(Tree),
    /// Who can reach whom, all of them connected; its nodes are the PEs in the order of
    /// the file.
    Network(Network),
}

/// Reads the cluster file at `path`.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong in it.
pub fn load(path: &Path) -> Result<ClusterFile, ClusterFileError> {
    let mut cluster = user_file::load(FILE, path, parse)?;
    let beside = path.parent().unwrap_or(Path::new(""));
    if let Some(said) = &mut cluster.settings.credentials {
        said.folder = beside.join(&said.folder);
    }
    for named in &mut cluster.settings.files {
        named.path = beside.join(&named.path);
        let path = named.path.clone();
        match (&mut cluster.placement.launch, named.key) {
            (Launch::Ssh(ssh), "config") => ssh.config = Some(path),
            (Launch::Ssh(ssh), _) => ssh.binary = Some(path),
            (Launch::Join { starter, .. }, _) => {
                if let Some(Starter::Compose(compose)) = starter {
                    compose.file = path;
                }
            }
            (Launch::Local, _) => {}
        }
    }
    Ok(cluster)
}

/// Reads the cluster file in `text`; otherwise, at least one fault, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<ClusterFile, Vec<SpotFault<ClusterFileFault>>> {
    toml_file::parse(text, |reader, document| reader.cluster(document))
}

/// What a key says, and where.
struct At<T> {
    spot: Spot,
    said: T,
}

/// A `[[pe]]`, as far as it can be read. What is there and cannot be read was
/// reported, and is `Some` with nothing in it.
#[derive(Default)]
struct PeEntry {
    spot: Spot,
    name: Option<String>,
    address: Option<Option<IpAddr>>,
    parent: Option<At<Option<String>>>,
    parent_address: Option<At<Option<IpAddr>>>,
    run: Vec<String>,
    ssh: Option<At<Option<String>>>,
    link: Option<At<Option<LinkSpec>>>,
    /// Where `run` stands, if it does.
    run_spot: Option<Spot>,
}

impl PeEntry {
    /// For messages.
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "?".to_owned())
    }
}

impl Reader<'_, ClusterFileFault> {
    fn cluster(&mut self, document: &DeTable<'_>) -> Option<ClusterFile> {
        let (mut name, mut pes, mut network, mut launch) = (None, None, None, None);
        let mut settings = Settings::default();
        let (mut link, mut coordinator, mut tree) = (None, None, None);
        for (key, value) in document {
            match key.get_ref().as_ref() {
                "name" => name = self.name("name", value),
                "coordinator" => {
                    let spot = self.spot_of(value);
                    let said = self.endpoint("coordinator", value);
                    coordinator = Some(At { spot, said });
                }
                "launch" => launch = self.launch(value),
                "pe" => pes = Some(value),
                "network" => network = Some(value),
                "security" => settings.credentials = self.security(value),
                "timeouts" => settings.timeouts = self.timeouts(value),
                "link" => link = Some(self.link(value)),
                "tree" => tree = Some(value),
                _ => self.unknown_key(key, KEYS),
            }
        }
        if let Some(tree) = tree {
            let others = [("pe", pes), ("network", network)];
            for (key, _) in others.iter().filter(|(_, there)| there.is_some()) {
                self.fault(self.spot_of(tree), ClusterFileFault::TwoTrees { key });
            }
            let link = link.map(|at| at.spot);
            return self.joined(tree, launch, coordinator.as_ref(), link, (name, settings));
        }
        let Some(pes) = pes else {
            self.fault(None, ClusterFileFault::NoPes);
            return None;
        };
        let entries = self.entries(pes)?;
        let edges = match network {
            Some(network) => self.network(network, &entries).map(Edges::Network),
            None => self.tree(&entries).map(Edges::Tree),
        };
        settings.link = link.as_ref().and_then(|at| at.said);
        let links = self.links(&entries, link.as_ref(), network.is_some());
        let launched = self.launched(launch, coordinator.as_ref(), &entries);
        let (launched, files) = launched
            .map(|of| ((of.coordinator, of.launch), of.files))
            .unzip();
        settings.files = files.unwrap_or_default();
        let placement = self.placement(&entries, edges.as_ref(), launched);
        Some(ClusterFile {
            name,
            edges: edges?,
            placement: placement?,
            links,
            settings,
        })
    }

    /// `[[pe]]`, at least one.
    fn entries(&mut self, value: &Value<'_>) -> Option<Vec<PeEntry>> {
        let Some(tables) = value.get_ref().as_array() else {
            self.wrong_type("pe", "[[pe]] tables, in double brackets", value);
            return None;
        };
        if tables.is_empty() {
            self.fault(self.spot_of(value), ClusterFileFault::NoPes);
            return None;
        }
        Some(tables.iter().map(|value| self.entry(value)).collect())
    }

    fn entry(&mut self, value: &Value<'_>) -> PeEntry {
        let mut entry = PeEntry {
            spot: self.spot_of(value),
            ..PeEntry::default()
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("pe", "a table with name and address", value);
            return entry;
        };
        let mut named = false;
        for (key, value) in table {
            let spot = self.spot_of(value);
            match key.get_ref().as_ref() {
                "name" => {
                    named = true;
                    entry.name = self.name("name", value);
                }
                "address" => entry.address = Some(self.address("address", value)),
                "parent" => {
                    let said = self.name("parent", value);
                    entry.parent = Some(At { spot, said });
                }
                "parent_address" => {
                    let said = self.address("parent_address", value);
                    entry.parent_address = Some(At { spot, said });
                }
                "run" => {
                    entry.run_spot = Some(spot);
                    entry.run = self.words("run", value);
                }
                "ssh" => entry.ssh = Some(self.destination(value)),
                "link" => entry.link = Some(self.link(value)),
                _ => self.unknown_key(key, PE_KEYS),
            }
        }
        if !named {
            self.fault(entry.spot, ClusterFileFault::NoName);
        }
        if entry.address.is_none() {
            let name = entry.name();
            self.fault(entry.spot, ClusterFileFault::NoAddress { name });
        }
        if let (Some(At { spot, .. }), None) = (&entry.parent_address, &entry.parent) {
            let name = entry.name();
            let key = "parent_address";
            self.fault(*spot, ClusterFileFault::EdgeWithoutParent { name, key });
        }
        entry
    }

    /// Something that people call something, on one line.
    fn name(&mut self, key: &'static str, value: &Value<'_>) -> Option<String> {
        let name = value.get_ref().as_str();
        let is_name = |name: &&str| (1..=LONGEST_NAME).contains(&name.len());
        let name = name.filter(|name| is_name(name) && !name.contains(char::is_control));
        if name.is_none() {
            let expected = format!("a name in quotes, of at most {LONGEST_NAME} bytes");
            self.wrong_type(key, expected, value);
        }
        name.map(str::to_owned)
    }

    /// An address that something can be reached at.
    fn address(&mut self, key: &'static str, value: &Value<'_>) -> Option<IpAddr> {
        let address = value.get_ref().as_str().and_then(|text| text.parse().ok());
        let address = address.filter(|a: &IpAddr| launch::is_one_host(*a));
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

    /// Who is called what.
    fn ids<'e>(&mut self, entries: &'e [PeEntry]) -> HashMap<&'e str, PeId> {
        let mut ids = HashMap::new();
        for (id, entry) in (0..).map(PeId).zip(entries) {
            let Some(name) = entry.name.as_deref() else {
                continue;
            };
            if let Some(PeId(first)) = ids.insert(name, id) {
                let first_line = entries[first as usize].spot.line;
                let name = name.to_owned();
                self.fault(
                    entry.spot,
                    ClusterFileFault::DuplicateName { name, first_line },
                );
            }
        }
        ids
    }

    fn tree(&mut self, entries: &[PeEntry]) -> Option<Tree> {
        let ids = self.ids(entries);
        // Stands for a parent that was reported already.
        const NOBODY: PeId = PeId(u32::MAX);
        let parents = entries.iter().map(|entry| {
            let At { spot, said } = entry.parent.as_ref()?;
            let Some(parent) = said else {
                return Some(NOBODY);
            };
            Some(ids.get(parent.as_str()).copied().unwrap_or_else(|| {
                let (name, parent) = (entry.name(), parent.clone());
                self.fault(*spot, ClusterFileFault::UnknownParent { name, parent });
                NOBODY
            }))
        });
        let mut parents: Vec<Option<PeId>> = parents.collect();
        // That P0 should have none would be a second fault for one mistake.
        if let Some(root) = parents.first_mut().filter(|root| **root == Some(NOBODY)) {
            *root = None;
        }
        let TreeFaults(faults) = match Tree::from_parents(parents) {
            Ok(tree) => return Some(tree),
            Err(faults) => faults,
        };
        for fault in faults {
            let entry = fault.pe().map(|pe| &entries[pe.index()]);
            let spot = entry.map(|entry| {
                let at_parent = entry.parent.as_ref().map(|parent| parent.spot);
                at_parent.unwrap_or(entry.spot)
            });
            if !matches!(fault, TreeFault::UnknownParent { .. }) {
                let name = entry.map(PeEntry::name).unwrap_or_default();
                self.fault(spot, ClusterFileFault::Tree { name, fault });
            }
        }
        None
    }

    /// Where all PEs run, once there is nothing to report any more.
    fn placement(
        &self,
        entries: &[PeEntry],
        edges: Option<&Edges>,
        launched: Option<(IpAddr, Launch)>,
    ) -> Option<Placement> {
        let edges = edges?;
        let (coordinator, launch) = launched?;
        let place = |entry: &PeEntry| {
            let address = entry.address??;
            let parent_address = match &entry.parent_address {
                Some(at) => Some(at.said?),
                None => None,
            };
            Some(Place {
                name: Some(entry.name.clone()?),
                run: entry.run.clone(),
                ssh: entry.ssh.as_ref().and_then(|at| at.said.clone()),
                address,
                parent_address,
                listen: address,
            })
        };
        let places: Option<Vec<Place>> = entries.iter().map(place).collect();
        let mut placement = Placement {
            coordinator,
            launch,
            kept: None,
            places: places?,
        };
        // In a network everybody is reached at one address.
        let Edges::Tree(tree) = edges else {
            return Some(placement);
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
