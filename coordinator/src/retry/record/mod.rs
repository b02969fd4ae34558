//! The record of a round that failed, in TOML: all that `flitcast resume` needs to go on
//! with it, on its own. Written here; `read` reads it.
//!
//! ```toml
//! version = 2
//! undertaking = "5d0c9a5b17f3e2a4"
//! operation = "scatter"
//! algorithm = "fdf"
//! parents = [0, 0, 1]
//! input = "/data/shards"
//! output = "/data/out"
//! bytes = [10, 20, 30]
//! delivered = [3]
//! [[dead]]
//! pe = 1
//! why = "killed by signal 9 (SIGKILL)"
//! ```

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use flitcast_node::limits::Timeouts;
use flitcast_proto::network::NetworkSpec;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{DeliveryId, DeliveryName, PeId, Tree};

use crate::files::toml_file::quoted;
use crate::files::user_file::{self, FileError, FileKind};
use crate::job::request::Request;
use crate::options::link_spec::EdgeSpec;
use crate::options::names::pacing_name;
use crate::options::timeouts;
use crate::site::reach::Reach;
use crate::site::slurm::Slurm;
use crate::text::deliveries;
use crate::ways::way::Way;

pub use read::parse;

const FILE: FileKind = FileKind {
    name: "record of a round",
    // 36 bytes for each of the deliveries that there can be: the length and the name.
    max_bytes: 36 * (crate::options::pes::MAX_LOCAL_PES as u64).pow(2),
};

/// The records that this flitcast writes and reads.
const VERSION: u32 = 2;

/// What a record says.
#[derive(Clone, Debug)]
pub struct Record {
    /// Names what was undertaken, in the receipts of what was delivered.
    pub undertaking: u64,
    /// What the round does, and how.
    pub way: Way,
    /// The whole tree's name.
    pub tree_name: String,
    /// The whole tree: the dead have their places in it.
    pub tree: Tree,
    /// The network that it spans, `None` if it is the cluster file's, and the node that each PE stands on.
    pub network: Option<(Option<NetworkSpec>, Vec<u32>)>,
    /// The cluster file.
    pub cluster: Option<PathBuf>,
    /// How that names the PEs; empty if there is none, or it names no one.
    pub pes: Vec<String>,
    /// The folder with the PEs' certificates, if they were to use it.
    pub credentials: Option<PathBuf>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Where the messages lie.
    pub input: PathBuf,
    /// Whether they are dealt.
    pub spread: bool,
    /// Where they arrive.
    pub output: PathBuf,
    /// What stood there was to be replaced.
    pub replace: bool,
    /// Each PE has files of its own, without its name.
    pub apart: bool,
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// What arrived.
    pub delivered: BTreeSet<DeliveryId>,
    /// What the links to their parents are to be like, by PE index.
    pub links: Vec<Option<EdgeSpec>>,
    /// Whether each PE has a link of its own to each neighbour.
    pub own_links: bool,
    /// Who is left out, and why.
    pub dead: BTreeMap<PeId, String>,
}

/// Reads the record at `path`.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong in it.
pub fn load(path: &Path) -> Result<Record, FileError> {
    user_file::load(FILE, path, parse)
}

/// A path that means the same from anywhere, in a text.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let path = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(format!("the path {shown} is not UTF-8")),
    }
}

impl Record {
    /// Of a request that moves files.
    ///
    /// # Errors
    ///
    /// Why it cannot be written down.
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
                ..request.way
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
            links: request.site.links.clone(),
            own_links: request.site.own_links,
            dead: dead.clone(),
        })
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut out = String::from(
            "# A round that failed, and how far it came. `flitcast resume FILE` goes on with it.\n",
        );
        // Nothing that is written to a String fails.
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
            ..self.way
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
        if self.way.searches_order {
            writeln!(out, "order_search = true")?;
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
