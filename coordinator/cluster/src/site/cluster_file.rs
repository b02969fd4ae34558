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
//! name = "b"                       # without an address: the name is looked up
//! parent = "a"
//! parent_address = "198.18.0.5"    # if its parent has an address for this edge alone
//! [[pe]]
//! name = "c"
//! addresses = ["198.18.0.3", "198.18.1.3"]  # one of each network card, instead of `address`
//! reached_by = [["a", "198.18.2.3"]]        # at which address which PE reaches it, by a link of
//!                                           # the two alone
//! ```
//!
//! If PEs join, `tree = "kary:2:8"` can replace all `[[pe]]`: the PEs then have no names, and each has the
//! address that it joins from.
//!
//! Submodules read further keys: `launch` those for Slurm, compose and hosts that ssh reaches, `network`
//! the table `[network]`, which replaces parents, and `settings` the tables `[security]` and `[timeouts]`
//! and the key `link`.
//! `deploy/cluster.schema.json` describes the file for editors.
//!
//! All faults are reported at once, each with its line and column, and one mistake is one fault.
//! [`Tree::from_parents`] checks the tree.

mod entry;
mod launch;
mod lookup;
mod network;
mod placement;
mod settings;
mod values;

use std::net::IpAddr;
use std::path::Path;

use flitcast_proto::Tree;
use flitcast_proto::tree::TreeSpec;

pub use crate::site::settings::{ClusterFile, Edges};
pub use settings::across_hosts;

use crate::files::toml_file::writer::quoted;
use crate::files::toml_file::{self, Field, Reader, Table};
use crate::files::user_file::{self, FileError, FileKind, PositionedError, SourcePosition};
use crate::options::host_list;
use crate::options::link_spec::Links;
use crate::site::placement::{Launch, Placement};
use crate::site::settings::Settings;
use crate::system::machine::host_name;
use entry::{PeEntry, entry};
use launch::{Endpoint, LaunchTable, Launched};
use lookup::Lookup;
use network::tree_of;
use placement::placement;
use values::{At, read_link, read_name};

/// The cluster file, as errors name it.
pub const FILE: FileKind = FileKind {
    name: "cluster file",
    // 1 KiB for each of 4096 PEs, several times what a PE needs.
    max_bytes: 4 << 20,
};

/// The beginning of a value of `--cluster` that lists hosts.
pub const HOSTS: &str = "hosts:";

/// Returns the list of hosts in place of a cluster file.
pub fn host_list(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(HOSTS)
}

/// Loads `--cluster FILE`, or the cluster of `--hosts LIST`.
pub fn load(path: &Path) -> Result<ClusterFile, FileError> {
    if let Some(list) = host_list(path) {
        let cluster = of_hosts(list);
        return cluster.map_err(|faults| FileError::Faults {
            path: path.to_owned(),
            faults,
        });
    }
    let beside = path.parent().unwrap_or(Path::new(""));
    user_file::load(FILE, path, |text| look_up(text, &Lookup::system(), beside))
}

/// Parses a cluster file without looking up a name. The error contains at least one fault, in the order
/// of the file.
pub(crate) fn parse(text: &str) -> Result<ClusterFile, Vec<PositionedError>> {
    parse_with(text, &Lookup::none(), Path::new(""))
}

/// Parses a cluster file in the folder `beside`, whose names are looked up.
fn look_up(
    text: &str,
    lookup: &Lookup,
    beside: &Path,
) -> Result<ClusterFile, Vec<PositionedError>> {
    loop {
        let cluster = parse_with(text, lookup, beside);
        if !lookup.look_up() {
            return cluster;
        }
    }
}

fn parse_with(
    text: &str,
    lookup: &Lookup,
    beside: &Path,
) -> Result<ClusterFile, Vec<PositionedError>> {
    toml_file::parse(text, |reader, top| cluster(reader, top, lookup, beside))
}

/// Returns the cluster of a list of hosts that ssh reaches: P0 is on this machine, and each PE can be
/// connected to each other one.
fn of_hosts(list: &str) -> Result<ClusterFile, Vec<PositionedError>> {
    let fault = |fault: anyhow::Error| {
        let (spot, fault) = (None, fault.to_string());
        vec![PositionedError { spot, fault }]
    };
    let hosts = host_list::hosts(list).map_err(fault)?;
    let mut text = format!(
        "name = {}\n[launch]\nkind = \"ssh\"\n[network]\nkind = \"complete:{}\"\n\
         [[pe]]\nname = {}\nhere = true\n",
        quoted(list),
        hosts.len() + 1,
        quoted(&host_name()),
    );
    for host in &hosts {
        let (name, ssh) = (quoted(name_of(host)), quoted(host));
        text.push_str(&format!("[[pe]]\nname = {name}\nssh = {ssh}\n"));
    }
    let lookup = Lookup::system();
    let cluster = look_up(&text, &lookup, Path::new(""));
    cluster.map_err(|faults| {
        if let Some((missing, why)) = lookup.not_found() {
            let names = hosts.iter().map(|host| name_of(host));
            let names: Vec<&str> = names
                .filter(|name| missing.iter().any(|it| it == name))
                .collect();
            let names = host_list::folded(&names);
            return fault(anyhow::anyhow!("no host `{names}` is found: {why}"));
        }
        let of_text = faults.into_iter();
        // The user has not seen the text.
        let fault = |fault: PositionedError| PositionedError {
            spot: None,
            ..fault
        };
        of_text.map(fault).collect()
    })
}

/// Returns the name of a host without the user before it.
fn name_of(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, name)| name)
}

const NO_PES: &str = "no PEs: give a [[pe]] table for each";

fn cluster(
    reader: &Reader<'_>,
    top: &Table<'_, '_>,
    lookup: &Lookup,
    beside: &Path,
) -> Option<ClusterFile> {
    let name = top.find("name", read_name);
    let mut coordinator = At::key(top, "coordinator", |field| launch::endpoint(field, lookup));
    let launch = top.find("launch", |field| launch::launch(field, beside));
    let network = top.optional("network");
    let credentials = top.find("security", |field| settings::security(field, beside));
    let timeouts = top.optional("timeouts");
    let mut settings = Settings {
        credentials,
        timeouts: timeouts.map_or_else(Default::default, |field| settings::timeouts(&field)),
        ..Settings::default()
    };
    let link = At::key(top, "link", read_link);
    let (tree, pes) = (top.optional("tree"), top.optional("pe"));
    top.refuse_others();
    if let Some(tree) = tree {
        let others = [("pe", &pes), ("network", &network)];
        for (key, _) in others.iter().filter(|(_, there)| there.is_some()) {
            tree.fault(format!("tree and {key} are both given: give one of them"));
        }
        let link = link.map(|at| at.spot);
        return cluster_of_joining(
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
    let entries = pes.list_of("[[pe]] tables, in double brackets")?;
    let mut entries: Vec<PeEntry> = entries.map(|pe| entry(reader, &pe, lookup)).collect();
    if entries.is_empty() {
        pes.fault(NO_PES);
        return None;
    }
    complete(
        reader,
        lookup,
        &mut entries,
        launch.as_ref(),
        &mut coordinator,
    );
    let edges = match &network {
        Some(network) => network::network(reader, network, &entries).map(Edges::Network),
        None => tree_of(reader, &entries).map(Edges::Tree),
    };
    settings.link = At::value(&link);
    let links = settings::links(reader, &entries, link.as_ref(), network.is_some());
    let launched = launch::launched(reader, launch, coordinator.as_ref(), &entries);
    let placement = placement(reader, &entries, edges.as_ref(), launched.as_ref());
    settings.files = launched.map_or(Vec::new(), |launched| launched.files);
    Some(ClusterFile {
        name,
        edges: edges?,
        placement: placement?,
        links,
        settings,
    })
}

/// Completes what is not given and can be found: addresses, and with ssh where the hosts reach this
/// machine.
fn complete(
    reader: &Reader<'_>,
    lookup: &Lookup,
    entries: &mut [PeEntry],
    launch: Option<&LaunchTable>,
    coordinator: &mut Option<At<Endpoint>>,
) {
    let given = coordinator.as_ref().and_then(|at| Some(at.value?.0));
    for entry in entries.iter_mut().filter(|entry| !entry.here) {
        entry.complete(reader, lookup, given);
    }
    if coordinator.is_none() && launch.is_some_and(LaunchTable::is_ssh) {
        let mut others = entries.iter().filter(|entry| !entry.here);
        let other = others.find_map(|entry| entry.address.as_ref()?.value);
        let own = other.and_then(|other| lookup.own(other));
        let spot = entries[0].spot;
        *coordinator = own.map(|own| At {
            spot,
            value: Some((own, None)),
        });
    }
    let own = coordinator.as_ref().and_then(|at| Some(at.value?.0));
    // An address that is not found has a fault, and the own one is that on the way to another host.
    let is_unknown = |at: &At<IpAddr>| at.value.is_none();
    let is_reported = own.is_none()
        && entries
            .iter()
            .any(|it| it.address.as_ref().is_some_and(is_unknown));
    for entry in entries.iter_mut().filter(|entry| entry.here) {
        match (is_reported, &entry.address, entry.spot) {
            (true, None, spot) => entry.address = Some(At { spot, value: None }),
            _ => entry.complete(reader, lookup, own),
        }
    }
}

/// Returns the cluster of PEs that others start and that join, on the named tree.
fn cluster_of_joining(
    reader: &Reader<'_>,
    tree: &Field<'_, '_>,
    launch: Option<LaunchTable>,
    coordinator: Option<&At<Endpoint>>,
    link: Option<SourcePosition>,
    (name, settings): (Option<String>, Settings),
) -> Option<ClusterFile> {
    let named = named_tree(tree);
    let Launched {
        coordinator,
        launch,
        files,
    } = launch::launched(reader, launch, coordinator, &[])?;
    if !matches!(launch, Launch::Join { .. }) {
        tree.fault(
            "a tree alone is for PEs that join: say kind = \"join\" or \"slurm\" in [launch], \
             or give a [[pe]] table for each",
        );
    }
    let tree = named?;
    let placement = Placement::joining(coordinator, launch, tree.len());
    if let (Some(link), Some(place)) = (link, placement.away()) {
        reader.fault(
            link,
            format!("link: {}", across_hosts(None, &place.address)),
        );
    }
    Some(ClusterFile {
        name,
        edges: Edges::Tree(tree),
        placement,
        links: Links::new(),
        settings: Settings { files, ..settings },
    })
}

fn named_tree(field: &Field<'_, '_>) -> Option<Tree> {
    field.parse_as("a tree in quotes, like \"kary:2:8\"", |text| {
        let made = match text.parse() {
            Ok(TreeSpec::File(_)) => Err("write the tree itself, like parents:0,0,1".to_owned()),
            Ok(spec) => spec.build().map_err(|faults| faults.to_string()),
            Err(error) => Err(error.to_string()),
        };
        made.map_err(|why| format!("tree: {why}"))
    })
}

#[cfg(test)]
mod tests;
