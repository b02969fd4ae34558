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

mod content;
mod entry;
mod joined;
mod launch;
mod network;
mod placement;
mod settings;
mod ssh;
mod starter;
mod tree;
mod values;

use std::path::Path;

pub use content::{ClusterFile, Edges};
pub use settings::across_hosts;

use crate::files::toml_file::{self, Reader, Table};
use crate::files::user_file::{self, FileError, FileKind, PositionedError};
use crate::site::placement::Launch;
use crate::site::settings::Settings;
use crate::site::starter::Starter;
use entry::{PeEntry, entry};
use placement::placement;
use tree::tree_of;
use values::{At, read_link, read_name};

/// The cluster file, as errors name it.
pub const FILE: FileKind = FileKind {
    name: "cluster file",
    // 1 KiB for each of 4096 PEs, several times what a PE needs.
    max_bytes: 4 << 20,
};

/// Loads `--cluster FILE`.
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
pub(crate) fn parse(text: &str) -> Result<ClusterFile, Vec<PositionedError>> {
    toml_file::parse(text, cluster)
}

const NO_PES: &str = "no PEs: give a [[pe]] table for each";

fn cluster(reader: &Reader<'_>, top: &Table<'_, '_>) -> Option<ClusterFile> {
    let name = top.find("name", read_name);
    let coordinator = At::key(top, "coordinator", launch::endpoint);
    let launch = top.find("launch", launch::launch);
    let network = top.optional("network");
    let credentials = top.find("security", settings::security);
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
    let entries = pes.list_of("[[pe]] tables, in double brackets")?;
    let entries: Vec<PeEntry> = entries.map(|pe| entry(reader, &pe)).collect();
    if entries.is_empty() {
        pes.fault(NO_PES);
        return None;
    }
    let edges = match &network {
        Some(network) => network::network(reader, network, &entries).map(Edges::Network),
        None => tree_of(reader, &entries).map(Edges::Tree),
    };
    settings.link = At::said(&link);
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

#[cfg(test)]
mod tests;
