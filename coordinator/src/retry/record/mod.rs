//! The record of a round that has begun or failed, in TOML: all that `flitcast resume` needs to
//! continue the round. This module writes records, and `read` reads them.
//!
//! ```toml
//! version = 3
//! undertaking = "5d0c9a5b17f3e2a4"
//! operation = "scatter"
//! algorithm = "fdf"
//! parents = [0, 0, 1]
//! input = "/data/shards"
//! output = "/data/out"
//! bytes = [10, 20, 30]
//! delivered = [3]
//! versions = ["3 30 8f14e45fceea167a 5d41402abc4b2a76b9719d911017c592"]
//! [[dead]]
//! pe = 1
//! why = "killed by signal 9 (SIGKILL)"
//! ```

mod read;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use flitcast_node::limits::Timeouts;
use flitcast_proto::network::NetworkSpec;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{Payload, Version};
use flitcast_proto::{DeliveryId, DeliveryName, PeId, Tree};

use crate::files::toml_file::quoted;
use crate::files::user_file::{self, FileError, FileKind};
use crate::job::request::Request;
use crate::options::link_spec::EdgeSpec;
use crate::options::names::pacing_name;
use crate::options::order::MessageOrder;
use crate::options::timeouts;
use crate::site::reach::Reach;
use crate::site::slurm::Slurm;
use crate::text::deliveries;
use crate::ways::way::Way;

pub use read::parse;

const FILE: FileKind = FileKind {
    name: "record of a round",
    // 144 bytes for each possible delivery: the length, the name and the version.
    max_bytes: 144 * (crate::options::pes::MAX_LOCAL_PES as u64).pow(2),
};

/// Version of the records that this program writes and reads.
const VERSION: u32 = 3;

/// Content of a record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Id of the job in the names of its receipts.
    pub undertaking: u64,
    /// The operation and its algorithm.
    pub way: Way,
    /// Name of the whole tree.
    pub tree_name: String,
    /// The whole tree, dead PEs included.
    pub tree: Tree,
    /// The network that the tree spans (`None` if it is the cluster file's), and the node of each
    /// PE.
    pub network: Option<(Option<NetworkSpec>, Vec<u32>)>,
    /// The cluster file.
    pub cluster: Option<PathBuf>,
    /// Names of the PEs in the cluster file; empty without a file or without names.
    pub pes: Vec<String>,
    /// The folder with the certificates of the PEs, if they use one.
    pub credentials: Option<PathBuf>,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Path of the messages at their sources.
    pub input: PathBuf,
    /// Whether the files of the input are dealt.
    pub spread: bool,
    /// Path of the messages at their destinations.
    pub output: PathBuf,
    /// Whether existing entries are replaced.
    pub replace: bool,
    /// Whether PEs have separate files, whose paths do not contain their names.
    pub apart: bool,
    /// Lengths in bytes, by delivery.
    pub bytes: Vec<u64>,
    /// The complete deliveries.
    pub delivered: BTreeSet<DeliveryId>,
    /// The measured version of each message, by message.
    pub versions: Vec<Version>,
    /// Properties of the links to the parents, by PE index.
    pub links: Vec<Option<EdgeSpec>>,
    /// Whether each PE has a separate link to each neighbour.
    pub own_links: bool,
    /// The excluded PEs, each with a reason.
    pub dead: BTreeMap<PeId, String>,
}

/// Reads the record at `path`.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or all errors in its text.
pub fn load(path: &Path) -> Result<Record, FileError> {
    user_file::load(FILE, path, parse)
}

/// Makes a path absolute; it must be UTF-8.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let path = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(format!("the path {shown} is not UTF-8")),
    }
}

impl Record {
    /// Returns the record of a request that moves files.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no record.
    pub fn of(
        request: &Request,
        dead: &BTreeMap<PeId, String>,
        delivered: &BTreeSet<DeliveryId>,
    ) -> Result<Record, String> {
        let Payload::Files {
            input,
            spread,
            output,
            replace,
            apart,
        } = &request.messages.payload
        else {
            return Err("synthetic messages are made anew".to_owned());
        };
        let network = match (&request.site.reach, &request.site.nodes) {
            (Reach::Network(spanned), Some(nodes)) => {
                let spec = match &spanned.spec {
                    Some(NetworkSpec::Edges(path)) => Some(NetworkSpec::Edges(absolute(path)?)),
                    named => named.clone(),
                };
                Some((spec, nodes.clone()))
            }
            _ => None,
        };
        let profile = request.profile.as_ref();
        let is_named = request.site.cluster.is_some();
        let places = request.site.placement.places.iter().filter(|_| is_named);
        let pes: Option<Vec<String>> = places.map(|place| place.name.clone()).collect();
        Ok(Record {
            undertaking: request.messages.undertaking,
            way: Way {
                pacing: request.way.pacing.or(profile.map(|profile| profile.pacing)),
                ..request.way.clone()
            },
            tree_name: request.site.name.clone(),
            tree: (*request.site.tree).clone(),
            network,
            cluster: match request.site.cluster.as_deref() {
                Some(job) if Slurm::named(job).is_some() => Some(job.to_owned()),
                file => file.map(absolute).transpose()?,
            },
            pes: pes.unwrap_or_default(),
            credentials: request.site.guard.folder().map(absolute).transpose()?,
            timeouts: request.timeouts,
            input: absolute(input)?,
            spread: *spread,
            output: absolute(output)?,
            replace: *replace,
            apart: *apart,
            bytes: request.messages.bytes.clone(),
            delivered: delivered.clone(),
            versions: request.messages.versions.clone(),
            links: request.site.links.clone(),
            own_links: request.site.own_links,
            dead: dead.clone(),
        })
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut out = String::from(
            "# A round that was cut off, and how far it came. `flitcast resume FILE` goes on with it.\n",
        );
        // Writing to a `String` does not fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let path = |path: &Path| quoted(&path.display().to_string());
        writeln!(out, "version = {VERSION}")?;
        writeln!(
            out,
            "undertaking = \"{:016x}\" # as receipts name it",
            self.undertaking
        )?;
        let operation = self.way.operation.name();
        writeln!(out, "operation = {}", quoted(operation))?;
        let lasting = Way {
            operation: self.way.operation.on_any_network(),
            ..self.way.clone()
        };
        writeln!(out, "algorithm = {}", quoted(lasting.algorithm()))?;
        if let Some(sync) = self.way.sync() {
            writeln!(out, "sync = {}", quoted(sync))?;
        }
        if let Some(pacing) = pacing_name(self.way.pacing) {
            writeln!(out, "pacing = {}", quoted(pacing))?;
        }
        writeln!(out, "tree = {}", quoted(&self.tree_name))?;
        let root = self.tree.root();
        if root != PeId::ROOT {
            writeln!(out, "root = {}", root.0)?;
        }
        let parents: Vec<u32> = self
            .tree
            .pes()
            .filter_map(|pe| self.tree.parent(pe))
            .map(|parent| parent.0)
            .collect();
        writeln!(
            out,
            "parents = {parents:?} # of all but {root}, the dead too"
        )?;
        if let Some((spec, nodes)) = &self.network {
            if let Some(spec) = spec {
                writeln!(out, "network = {}", quoted(&spec.to_string()))?;
            }
            writeln!(out, "nodes = {nodes:?} # that P0, P1, .. stand on")?;
        }
        if let Some(cluster) = &self.cluster {
            writeln!(out, "cluster = {}", path(cluster))?;
        }
        if !self.pes.is_empty() {
            let pes: Vec<String> = self.pes.iter().map(|name| quoted(name)).collect();
            writeln!(out, "pes = [{}] # P0, P1, .. there", pes.join(", "))?;
        }
        if let Some(folder) = &self.credentials {
            writeln!(out, "credentials = {}", path(folder))?;
        }
        if let Some(asked) = self.way.flit_bytes {
            writeln!(out, "flit_bytes = {asked}")?;
        }
        if let Some(packets) = self.way.packets {
            writeln!(out, "packets = {}", quoted(&packets.to_string()))?;
        }
        if self.way.order != MessageOrder::Tail {
            writeln!(out, "order = {}", quoted(&self.way.order.to_string()))?;
        }
        if self.way.covers {
            writeln!(out, "cover = true")?;
        }
        if self.own_links {
            writeln!(out, "own_links = true")?;
        }
        let timeouts = timeouts::written(&self.timeouts);
        writeln!(out, "timeouts = {}", quoted(&timeouts))?;
        writeln!(out, "input = {}", path(&self.input))?;
        writeln!(out, "output = {}", path(&self.output))?;
        for (key, value) in [
            ("spread", self.spread),
            ("replace", self.replace),
            ("apart", self.apart),
        ] {
            if value {
                writeln!(out, "{key} = true")?;
            }
        }
        let (operation, tree) = (self.way.operation, &self.tree);
        let bytes = operation.by_message(tree, &self.bytes);
        match operation.layout() {
            Layout::Pieces => {
                writeln!(out, "bytes = [ # of each PE's messages, for P0, P1, ..")?;
                for bytes in bytes.chunks(tree.len()) {
                    let bytes: Vec<String> = bytes.iter().map(u64::to_string).collect();
                    writeln!(out, "  {},", bytes.join(", "))?;
                }
                writeln!(out, "]")?;
            }
            Layout::Shards => writeln!(out, "bytes = {bytes:?} # of the messages of P0, P1, ..")?,
            _ => writeln!(out, "bytes = {bytes:?} # of the messages of all but {root}")?,
        }
        let delivered = self.delivered.iter();
        let delivered = delivered.map(|it| operation.delivery_name(tree, *it));
        let mut delivered: Vec<DeliveryName> = delivered.collect();
        delivered.sort_unstable();
        writeln!(out, "delivered = {}", deliveries::values(&delivered))?;
        writeln!(
            out,
            "versions = [ # of each message: its number, bytes, state, and digest once delivered"
        )?;
        for version in &self.versions {
            writeln!(out, "  {},", quoted(&versions::written(version)))?;
        }
        writeln!(out, "]")?;
        for (pe, link) in self.links.iter().enumerate() {
            if let Some(EdgeSpec { down, up }) = link {
                writeln!(out, "\n[[link]] # to its parent\npe = {pe}")?;
                writeln!(out, "down = {}", quoted(&down.written()))?;
                writeln!(out, "up = {}", quoted(&up.written()))?;
            }
        }
        for (pe, why) in &self.dead {
            writeln!(out, "\n[[dead]]\npe = {}\nwhy = {}", pe.0, quoted(why))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
