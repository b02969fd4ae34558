//! The content of a record, how it follows from a request, and its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flitcast_node::limits::Timeouts;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{FilePayload, Payload, Version};
use flitcast_proto::{DeliveryId, DeliveryName, Durability, MessageId, PeId, Tree};

use crate::algorithms::method::Method;
use crate::files::toml_file::writer::{line, list, optional_line, quoted};
use crate::job::request::Request;
use crate::options::link_spec::EdgeSpec;
use crate::options::names::pacing_name;
use crate::options::order::MessageOrder;
use crate::options::sync::durability_name;
use crate::options::timeouts;
use crate::options::transfer::update_name;
use crate::site::cluster_file::host_list;
use crate::site::reachability::Reachability;
use crate::site::slurm::Slurm;
use crate::text::deliveries;
use crate::text::phrases::names;
use crate::text::units::BitRate;

/// Version of the records that this program writes and reads.
pub const VERSION: u32 = 5;

#[derive(Clone, Debug)]
pub struct Record {
    /// Id of the job in the names of its receipts.
    pub job_id: u64,
    pub way: Method,
    /// The whole tree, dead PEs included.
    pub tree: Tree,
    pub site: RecordedSite,
    pub timeouts: Timeouts,
    pub files: FilePayload,
    /// Lengths in bytes, by delivery.
    pub bytes: Vec<u64>,
    pub delivered: BTreeSet<DeliveryId>,
    /// The measured version of each message, by message.
    pub versions: Vec<Version>,
    /// The excluded PEs, each with a reason.
    pub dead: BTreeMap<PeId, String>,
}

#[derive(Clone, Debug, Default)]
pub struct RecordedSite {
    pub tree_name: String,
    /// The network that the tree spans (`None` if it is the cluster file's), and the node of each
    /// PE.
    pub network: Option<(Option<NetworkSpec>, Vec<u32>)>,
    pub cluster: Option<PathBuf>,
    /// Names of the PEs in the cluster file; empty without a file or without names.
    pub pes: Vec<String>,
    /// The folder with the certificates of the PEs, if they use one.
    pub credentials: Option<PathBuf>,
    /// Properties of the links to the parents, by PE index.
    pub links: Vec<Option<EdgeSpec>>,
    /// Whether each PE has a separate link to each neighbour.
    pub own_links: bool,
    /// The highest rate at which each PE sends.
    pub limit: Option<BitRate>,
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
    pub fn of(
        request: &Request,
        dead: &BTreeMap<PeId, String>,
        delivered: &BTreeSet<DeliveryId>,
    ) -> Result<Record, String> {
        let Payload::Files(files) = &request.messages.payload else {
            return Err("synthetic messages are made anew".to_owned());
        };
        let network = match (&request.site.reach, &request.site.nodes) {
            (Reachability::Network(spanned), Some(nodes)) => {
                let spec = match &spanned.spec {
                    Some(NetworkSpec::Edges(path)) => Some(NetworkSpec::Edges(absolute(path)?)),
                    named => named.clone(),
                };
                Some((spec, nodes.clone()))
            }
            _ => None,
        };
        let profile = request.profile.as_ref();
        Ok(Record {
            job_id: request.messages.job_id,
            way: Method {
                pacing: request.way.pacing.or(profile.map(|profile| profile.pacing)),
                ..request.way.clone()
            },
            tree: (*request.site.tree).clone(),
            site: RecordedSite {
                tree_name: request.site.name.clone(),
                network,
                cluster: match request.site.cluster.as_deref() {
                    Some(list) if Slurm::named(list).is_some() || host_list(list).is_some() => {
                        Some(list.to_owned())
                    }
                    file => file.map(absolute).transpose()?,
                },
                pes: match request.site.cluster {
                    Some(_) => request.site.placement.names(),
                    None => Vec::new(),
                },
                credentials: request.site.guard.folder().map(absolute).transpose()?,
                links: request.site.links.clone(),
                own_links: request.site.own_links,
                limit: request.site.limit,
            },
            timeouts: request.timeouts,
            files: FilePayload {
                input: absolute(&files.input)?,
                output: absolute(&files.output)?,
                ..files.clone()
            },
            bytes: request.messages.bytes.clone(),
            delivered: delivered.clone(),
            versions: request.messages.versions.clone(),
            dead: dead.clone(),
        })
    }
}

/// Returns a version of a message as text: the message's number, its bytes, the state of its source,
/// and the digest, if it was delivered.
pub fn version_text(version: &Version) -> String {
    let Version {
        message,
        bytes,
        state,
        digest,
    } = version;
    let digest = digest.map(|digest| format!(" {:032x}", u128::from_be_bytes(digest)));
    let digest = digest.unwrap_or_default();
    format!("{} {bytes} {state:016x}{digest}", message.0)
}

/// Parses what [`version_text`] has made, and nothing else.
pub fn parse_version(text: &str) -> Option<Version> {
    let fields: Vec<&str> = text.split(' ').collect();
    let (message, bytes, state, digest) = match fields[..] {
        [message, bytes, state] => (message, bytes, state, None),
        [message, bytes, state, digest] => {
            let digest = u128::from_str_radix(digest, 16).ok()?;
            (message, bytes, state, Some(digest.to_be_bytes()))
        }
        _ => return None,
    };
    let version = Version {
        message: MessageId(message.parse().ok()?),
        bytes: bytes.parse().ok()?,
        state: u64::from_str_radix(state, 16).ok()?,
        digest,
    };
    (version_text(&version) == text).then_some(version)
}

const HEAD: &str =
    "# A round that was cut off, and how far it came. `flitcast resume FILE` goes on with it.\n";

impl Record {
    pub fn text(&self) -> String {
        let (way, site, tree, files) = (&self.way, &self.site, &self.tree, &self.files);
        let lasting = Method {
            operation: way.operation.on_any_network(),
            ..way.clone()
        };
        let job_id = format!("\"{:016x}\"", self.job_id);
        let root = tree.root();
        let parents = tree.pes().filter_map(|pe| tree.parent(pe));
        let parents: Vec<u32> = parents.map(|parent| parent.0).collect();
        let dead_too = format!("of all but {root}, the dead too");
        let network = site.network.as_ref();
        let spec = network.and_then(|(spec, _)| Some(quoted(&spec.as_ref()?.to_string())));
        let nodes = network.map(|(_, nodes)| format!("{nodes:?}"));
        let pes: Vec<String> = site.pes.iter().map(|name| quoted(name)).collect();
        let pes = (!pes.is_empty()).then(|| format!("[{}]", names(&pes)));
        let rules: Vec<String> = files.rules.iter().map(|rule| quoted(rule)).collect();
        let rules = (!rules.is_empty()).then(|| format!("[{}]", names(&rules)));
        let durable = (files.durability != Durability::default())
            .then(|| quoted(durability_name(files.durability)));
        let order = (way.order != MessageOrder::Tail).then(|| quoted(&way.order.to_string()));
        let packets = way.packets.map(|packets| quoted(&packets.to_string()));
        let limit = site.limit.map(|limit| quoted(&limit.to_string()));
        let count = |key, count: u64| optional_line(key, (count > 0).then_some(count), "");
        let flag = |key, is_set: bool| optional_line(key, is_set.then_some(true), "");
        let keys = [
            line("version", VERSION, ""),
            line("undertaking", job_id, "as receipts name it"),
            line("operation", quoted(way.operation.collective().name()), ""),
            line("algorithm", quoted(lasting.algorithm()), ""),
            optional_line("sync", way.sync().map(quoted), ""),
            optional_line("pacing", pacing_name(way.pacing).map(quoted), ""),
            line("tree", quoted(&site.tree_name), ""),
            optional_line("root", (root != PeId::ROOT).then_some(root.0), ""),
            line("parents", format!("{parents:?}"), &dead_too),
            optional_line("network", spec, ""),
            optional_line("nodes", nodes, "that P0, P1, .. stand on"),
            optional_line("cluster", site.cluster.as_deref().map(path), ""),
            optional_line("pes", pes, "P0, P1, .. there"),
            optional_line("credentials", site.credentials.as_deref().map(path), ""),
            optional_line("flit_bytes", way.flit_bytes, ""),
            optional_line("packets", packets, ""),
            optional_line("order", order, ""),
            flag("cover", way.covers),
            flag("own_links", site.own_links),
            optional_line("bwlimit", limit, ""),
            line("timeouts", quoted(&timeouts::written(&self.timeouts)), ""),
            line("input", path(&files.input), ""),
            line("output", path(&files.output), ""),
            flag("spread", files.spread),
            flag("lines", files.lines),
            count("block_bytes", files.block_bytes),
            count("parts", files.parts.into()),
            optional_line("rules", rules, ""),
            optional_line("durable", durable, ""),
            flag("replace", files.replace),
            optional_line("compress", files.compression.name().map(quoted), ""),
            flag("archive", files.archive),
            optional_line("update", update_name(files.update).map(quoted), ""),
            flag("apart", files.apart),
        ];
        [HEAD, &keys.concat(), &self.messages(), &self.tables()].concat()
    }

    fn messages(&self) -> String {
        let (collective, tree) = (self.way.operation.collective(), &self.tree);
        let bytes = collective.by_message(tree, &self.bytes);
        let of = |whose: &str| {
            let note = format!("of the messages of {whose}");
            line("bytes", format!("{bytes:?}"), &note)
        };
        let bytes = match collective.layout() {
            Layout::Pieces => {
                let rows = bytes.chunks(tree.len()).map(names);
                list("bytes", rows, "of each PE's messages, for P0, P1, ..")
            }
            Layout::Shards => of("P0, P1, .."),
            _ => of(&format!("all but {}", tree.root())),
        };
        let name = |it: &DeliveryId| collective.delivery_name(tree, *it);
        let mut delivered: Vec<DeliveryName> = self.delivered.iter().map(name).collect();
        delivered.sort_unstable();
        let delivered = line("delivered", deliveries::values(&delivered), "");
        let versions = self.versions.iter();
        let versions = versions.map(|version| quoted(&version_text(version)));
        let note = "of each message: its number, bytes, state, and digest once delivered";
        [bytes, delivered, list("versions", versions, note)].concat()
    }

    fn tables(&self) -> String {
        let links = self.site.links.iter().enumerate();
        let links = links.filter_map(|(pe, link)| {
            let EdgeSpec { down, up } = link.as_ref()?;
            let [down, up] = [down, up].map(|link| quoted(&link.written()));
            let head = "[[link]] # to its parent";
            Some(format!("\n{head}\npe = {pe}\ndown = {down}\nup = {up}\n"))
        });
        let dead = self.dead.iter().map(|(PeId(pe), why)| {
            let why = quoted(why);
            format!("\n[[dead]]\npe = {pe}\nwhy = {why}\n")
        });
        links.chain(dead).collect()
    }
}

fn path(path: &Path) -> String {
    quoted(&path.display().to_string())
}
