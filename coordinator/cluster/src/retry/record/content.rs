//! The content of a record, and how it follows from a request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flitcast_node::limits::Timeouts;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::wire::control::{FilePayload, Payload, Version};
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

use crate::algorithms::method::Method;
use crate::job::request::Request;
use crate::options::link_spec::EdgeSpec;
use crate::site::cluster_file::host_list;
use crate::site::reachability::Reachability;
use crate::site::slurm::Slurm;
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
    /// Name of the whole tree.
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
