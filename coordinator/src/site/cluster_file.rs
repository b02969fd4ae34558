//! The cluster file: the PEs, their hosts, and their parents or network, in TOML, written by users
//! or by programs that build networks.
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
//! [[pe]]
//! name = "c"
//! addresses = ["198.18.0.3", "198.18.1.3"]  # one of each network card, instead of `address`
//! reached_by = [["a", "198.18.2.3"]]        # at which address which PE reaches it, by a link of
//!                                           # the two alone
//! ```
//!
//! If PEs join, `tree = "kary:2:8"` can replace all `[[pe]]`: each PE then has the address that it
//! joins from.
//!
//! Submodules read further keys: `ssh` those of `[launch]` for hosts that ssh reaches, `starter`
//! those for Slurm and compose, `network` the table `[network]`, which replaces parents, and
//! `settings` the tables `[security]` and `[timeouts]` and the key `link`.
//! `deploy/cluster.schema.json` describes the file for editors.
//!
//! All faults are reported at once, each with its line and column, and one mistake is one fault.
//! [`Tree::from_parents`] checks the tree.

mod joined;
mod launch;
mod network;
mod settings;
mod ssh;
mod starter;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use flitcast_proto::tree::{TreeFault, TreeFaults};
use flitcast_proto::wire::MAX_LANES;
use flitcast_proto::{PeId, Tree};

pub use settings::across_hosts;

use crate::files::toml_file::{self, Field, Reader, Table};
use crate::files::user_file::{self, FileError, FileKind, Spot, SpotFault};
use crate::options::link_spec::{LinkSpec, Links};
use crate::site::placement::{Launch, Place, Placement, listen_on};
use crate::site::reach::Spanned;
use crate::site::settings::Settings;
use crate::site::starter::Starter;

pub const FILE: FileKind = FileKind {
    name: "cluster file",
    // 1 KiB for each of 4096 PEs, several times what a PE needs.
    max_bytes: 4 << 20,
};

/// Maximum bytes of a name; names are part of every message about a PE, and host names are not
/// longer.
const LONGEST_NAME: usize = 255;

/// The content of a cluster file.
#[derive(Clone, Debug)]
pub struct ClusterFile {
    /// Name of the cluster.
    pub name: Option<String>,
    /// Connections between the PEs.
    pub edges: Edges,
    /// Places of the PEs, in the order of the file.
    pub placement: Placement,
    /// Link settings of certain PEs' edges to their parents; PEs are numbered in the order of the
    /// file.
    pub links: Links,
    /// Settings of the cluster as a whole.
    pub settings: Settings,
}

/// Connections between the PEs of a cluster file.
#[derive(Clone, Debug)]
pub enum Edges {
    /// A tree, given by parents.
    Tree(Tree),
    /// A connected network whose nodes are the PEs in the order of the file.
    Network(Spanned),
}

/// Reads the cluster file at `path`.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or all faults in it.
pub fn load(path: &Path) -> Result<ClusterFile, FileError> {
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

/// Parses a cluster file. The error contains at least one fault, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<ClusterFile, Vec<SpotFault>> {
    toml_file::parse(text, cluster)
}

/// Message for a file without PEs.
const NO_PES: &str = "no PEs: give a [[pe]] table for each";

/// The value of a key and its position. The value is `None` if it was invalid and a fault was
/// reported.
struct At<T> {
    spot: Spot,
    said: Option<T>,
}

impl<T> At<T> {
    /// Reads a key with `read`; returns `None` if the key is missing.
    fn key(
        table: &Table<'_, '_>,
        key: &'static str,
        read: impl FnOnce(&Field<'_, '_>) -> Option<T>,
    ) -> Option<At<T>> {
        let field = table.optional(key)?;
        Some(At {
            spot: field.spot(),
            said: read(&field),
        })
    }
}

/// The valid parts of a `[[pe]]`.
#[derive(Default)]
struct PeEntry {
    spot: Spot,
    name: Option<At<String>>,
    address: Option<At<IpAddr>>,
    parent: Option<At<String>>,
    parent_address: Option<At<IpAddr>>,
    addresses: Option<At<Vec<IpAddr>>>,
    reached_by: Vec<(Spot, String, IpAddr)>,
    run: Option<At<Vec<String>>>,
    ssh: Option<At<String>>,
    link: Option<At<LinkSpec>>,
}

impl PeEntry {
    fn called(&self) -> Option<&str> {
        self.name.as_ref()?.said.as_deref()
    }

    /// Returns the name for messages.
    fn name(&self) -> String {
        self.called().unwrap_or("?").to_owned()
    }

    /// Returns the name and the address, if the address belongs to a network and not to loopback.
    fn away(&self) -> Option<(String, IpAddr)> {
        let address = self.address.as_ref()?.said?;
        (!address.is_loopback()).then(|| (self.name(), address))
    }
}

fn cluster(reader: &Reader<'_>, top: &Table<'_, '_>) -> Option<ClusterFile> {
    let name = top.optional("name").and_then(|name| read_name(&name));
    let coordinator = At::key(top, "coordinator", launch::endpoint);
    let launch = top.optional("launch");
    let launch = launch.and_then(|launch| launch::launch(&launch));
    let network = top.optional("network");
    let security = top.optional("security");
    let timeouts = top.optional("timeouts");
    let mut settings = Settings {
        credentials: security.and_then(|field| settings::security(&field)),
        timeouts: timeouts.map_or_else(Default::default, |field| settings::timeouts(&field)),
        ..Settings::default()
    };
    let link = At::key(top, "link", settings::link);
    let (tree, pes) = (top.optional("tree"), top.optional("pe"));
    top.refuse_others();
    if let Some(tree) = tree {
        let others = [("pe", &pes), ("network", &network)];
        for (key, _) in others.iter().filter(|(_, there)| there.is_some()) {
            tree.fault(format!(
                "there is a tree, and {key} beside it: one of both says what PEs there are"
            ));
        }
        let link = link.map(|at| at.spot);
        return joined::cluster(
            reader,
            &tree,
            launch,
            coordinator.as_ref(),
            link,
            (name, settings),
        );
    }
    let Some(pes) = pes else {
        reader.fault(None, NO_PES);
        return None;
    };
    let entries: Vec<PeEntry> = pes
        .list_of("[[pe]] tables, in double brackets")?
        .map(|pe| entry(reader, &pe))
        .collect();
    if entries.is_empty() {
        pes.fault(NO_PES);
        return None;
    }
    let edges = match &network {
        Some(network) => network::network(reader, network, &entries).map(Edges::Network),
        None => tree_of(reader, &entries).map(Edges::Tree),
    };
    settings.link = link.as_ref().and_then(|at| at.said);
    let links = settings::links(reader, &entries, link.as_ref(), network.is_some());
    let launched = launch::launched(reader, launch, coordinator.as_ref(), &entries);
    let (launched, files) = launched
        .map(|of| ((of.coordinator, of.launch), of.files))
        .unzip();
    settings.files = files.unwrap_or_default();
    let placement = placement(reader, &entries, edges.as_ref(), launched);
    Some(ClusterFile {
        name,
        edges: edges?,
        placement: placement?,
        links,
        settings,
    })
}

fn entry(reader: &Reader<'_>, pe: &Field<'_, '_>) -> PeEntry {
    let spot = pe.spot();
    let Some(table) = pe.table_of("a table with name and address") else {
        return PeEntry {
            spot,
            ..PeEntry::default()
        };
    };
    let name = At::key(&table, "name", read_name);
    let address = At::key(&table, "address", read_address);
    let addresses = At::key(&table, "addresses", read_rails);
    let first = addresses.as_ref().map(|at| At {
        spot: at.spot,
        said: at.said.as_ref().map(|all: &Vec<IpAddr>| all[0]),
    });
    if let (Some(At { spot, .. }), Some(_)) = (&addresses, &address) {
        let both = "there is an address, and addresses beside it: one of both says where it is";
        reader.fault(*spot, both);
    }
    let reached_by = table.optional("reached_by");
    let reached_by = reached_by.and_then(|field| read_reached_by(&field));
    let entry = PeEntry {
        spot,
        name,
        address: address.or(first),
        addresses,
        reached_by: reached_by.unwrap_or_default(),
        parent: At::key(&table, "parent", read_name),
        parent_address: At::key(&table, "parent_address", read_address),
        run: At::key(&table, "run", read_words),
        ssh: At::key(&table, "ssh", ssh::destination),
        link: At::key(&table, "link", settings::link),
    };
    table.refuse_others();
    let name = entry.name();
    if entry.name.is_none() {
        table.fault("this [[pe]] has no name");
    }
    if entry.address.is_none() {
        table.fault(format!(
            "{name} has no address: say where its children reach it"
        ));
    }
    if let (Some(At { spot, .. }), None) = (&entry.parent_address, &entry.parent) {
        reader.fault(*spot, format!("{name} has a parent_address and no parent"));
    }
    entry
}

/// Returns the PE of each name; reports names that occur twice.
fn ids<'e>(reader: &Reader<'_>, entries: &'e [PeEntry]) -> HashMap<&'e str, PeId> {
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

fn tree_of(reader: &Reader<'_>, entries: &[PeEntry]) -> Option<Tree> {
    let ids = ids(reader, entries);
    // Marks a parent that is invalid and was already reported.
    const NOBODY: PeId = PeId(u32::MAX);
    let parents = entries.iter().map(|entry| {
        let At { spot, said } = entry.parent.as_ref()?;
        let Some(parent) = said else {
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
            let order = "(the PEs are P0, P1, .. in the order of the file)";
            reader.fault(spot, format!("{name}: {fault} {order}"));
        }
    }
    None
}

/// Returns the addresses of each PE on separate links, by the PE at the other end. Reports unknown
/// PEs, and PEs whose number of network cards differs from the first one's.
fn own_links(reader: &Reader<'_>, entries: &[PeEntry]) -> Vec<BTreeMap<PeId, IpAddr>> {
    let mut all = vec![BTreeMap::new(); entries.len()];
    let called = |name: &str| {
        entries
            .iter()
            .position(|entry| entry.called() == Some(name))
    };
    for (at, entry) in entries.iter().enumerate() {
        let name = entry.name();
        for (spot, by, address) in &entry.reached_by {
            match called(by) {
                Some(other) if other == at => {
                    reader.fault(*spot, format!("{name}: it is to be reached by itself"));
                }
                Some(other) => {
                    all[at].insert(PeId(other as u32), *address);
                }
                None => reader.fault(*spot, format!("{name}: no [[pe]] is called `{by}`")),
            }
        }
        let above = entry
            .parent
            .as_ref()
            .and_then(|parent| parent.said.as_deref());
        let address = entry.parent_address.as_ref().and_then(|at| at.said);
        if let (Some(parent), Some(address)) = (above.and_then(called), address) {
            all[parent].insert(PeId(at as u32), address);
        }
    }
    let cards = |entry: &PeEntry| {
        let addresses = entry.addresses.as_ref();
        addresses.map_or(Some(1), |at| Some(at.said.as_ref()?.len()))
    };
    let first = entries.first().and_then(cards);
    let other = entries.iter().find(|entry| {
        let cards = cards(entry);
        cards.is_some() && first.is_some() && cards != first
    });
    if let (Some(other), Some(first)) = (other, first) {
        let (name, of_first) = (other.name(), entries[0].name());
        let cards = cards(other).unwrap_or(1);
        reader.fault(
            other.spot,
            format!("{name} has another number of addresses ({cards}) than {of_first} ({first})"),
        );
    }
    all
}

/// Returns the places of all PEs, if no fault was reported.
fn placement(
    reader: &Reader<'_>,
    entries: &[PeEntry],
    edges: Option<&Edges>,
    launched: Option<(IpAddr, Launch)>,
) -> Option<Placement> {
    let own_links = own_links(reader, entries);
    let edges = edges?;
    let (coordinator, launch) = launched?;
    let place = |(entry, reached_by): (&PeEntry, BTreeMap<PeId, IpAddr>)| {
        let address = entry.address.as_ref()?.said?;
        if entry
            .parent_address
            .as_ref()
            .is_some_and(|at| at.said.is_none())
        {
            return None;
        }
        let rails = entry
            .addresses
            .as_ref()
            .map_or(Some(Vec::new()), |at| at.said.clone());
        let run = entry.run.as_ref().and_then(|at| at.said.clone());
        Some(Place {
            name: Some(entry.called()?.to_owned()),
            run: run.unwrap_or_default(),
            ssh: entry.ssh.as_ref().and_then(|at| at.said.clone()),
            address,
            rails: rails?,
            reached_by,
            listen: address,
        })
    };
    let places: Option<Vec<Place>> = entries.iter().zip(own_links).map(place).collect();
    let mut placement = Placement {
        coordinator,
        launch,
        kept: None,
        places: places?,
    };
    for (pe, place) in (0..).map(PeId).zip(&mut placement.places) {
        let by = |other: &PeId| place.reached_by.contains_key(other);
        let is_reached_there = match edges {
            Edges::Tree(tree) => tree.children(pe).iter().any(|child| !by(child)),
            Edges::Network(spanned) => {
                let mut neighbours = spanned.network.neighbours(pe.0).iter();
                neighbours.any(|other| !by(&PeId(*other)))
            }
        };
        let address = is_reached_there.then_some(&place.address);
        let others = place.rails.iter().chain(place.reached_by.values());
        let reached_at: Vec<IpAddr> = address.into_iter().chain(others).copied().collect();
        place.listen = listen_on(&reached_at).unwrap_or(place.address);
    }
    Some(placement)
}

/// Reads a name on one line.
fn read_name(field: &Field<'_, '_>) -> Option<String> {
    let expected = format!("a name in quotes, of at most {LONGEST_NAME} bytes");
    let is_name =
        |name: &str| (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control);
    field.text_where(&expected, is_name)
}

/// Reads an address at which a host can be reached.
fn read_address(field: &Field<'_, '_>) -> Option<IpAddr> {
    let text = field.value().as_str();
    let expected = "the IP address of one host, in quotes";
    match text.filter(|text| is_host_name(text)) {
        Some(name) => {
            let hint = format!("{expected} (`getent hosts {name}` prints it)");
            field.expect(&hint, None)
        }
        None => field.expect(expected, text.and_then(host_address)),
    }
}

/// Returns whether this could be the name of a host. Names are not resolved: on other hosts the
/// same name could have another address.
fn is_host_name(text: &str) -> bool {
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || "-.".contains(char);
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text.len() < 64
        && text.chars().all(is_of_name)
}

/// Parses the address of one host.
fn host_address(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    address.filter(|a: &IpAddr| !a.is_unspecified() && !a.is_multicast())
}

/// Reads the addresses of a host's network cards.
fn read_rails(field: &Field<'_, '_>) -> Option<Vec<IpAddr>> {
    let expected = format!("a list of 2 to {MAX_LANES} addresses, all different");
    let addresses: Option<Vec<IpAddr>> = field
        .list_of(&expected)?
        .map(|one| read_address(&one))
        .collect();
    let addresses = addresses?;
    let distinct: BTreeSet<&IpAddr> = addresses.iter().collect();
    let is_so = (2..=MAX_LANES).contains(&addresses.len()) && distinct.len() == addresses.len();
    field.expect(&expected, is_so.then_some(addresses))
}

/// Reads the addresses of a PE on separate links.
fn read_reached_by(field: &Field<'_, '_>) -> Option<Vec<(Spot, String, IpAddr)>> {
    let expected = "a list of a name and an address each, like [[\"a\", \"198.18.0.5\"]]";
    let pairs = field.list_of(expected)?.map(|pair| {
        let words = pair.texts_where(expected, |words| words.len() == 2)?;
        let address = host_address(&words[1]);
        Some((
            pair.spot(),
            words[0].clone(),
            pair.expect(expected, address)?,
        ))
    });
    pairs.collect()
}

/// Reads the words of a command; the first is the program.
fn read_words(field: &Field<'_, '_>) -> Option<Vec<String>> {
    field.texts_where("a list of words, like [\"nice\", \"-5\"]", |words| {
        words.first().is_none_or(|first| !first.is_empty())
            && words.iter().all(|word| !word.contains('\0'))
    })
}

fn read_path(field: &Field<'_, '_>, expected: &str) -> Option<PathBuf> {
    // System calls end a path at a zero byte.
    let is_path = |text: &str| !text.is_empty() && !text.contains('\0');
    field.text_where(expected, is_path).map(PathBuf::from)
}

#[cfg(test)]
mod tests;
