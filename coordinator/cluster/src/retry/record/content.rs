//! The content of a record, and its making from a request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flitcast_node::limits::Timeouts;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::wire::control::{FilePayload, Payload, Version};
use flitcast_proto::{DeliveryId, PeId, Tree};

use crate::algorithms::method::Method;
use crate::job::request::Request;
use crate::options::link_spec::EdgeSpec;
use crate::site::reachability::Reachability;
use crate::site::slurm::Slurm;

/// Version of the records that this program writes and reads.
pub const VERSION: u32 = 3;

/// Content of a record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Id of the job in the names of its receipts.
    pub job_id: u64,
    /// The operation and its algorithm.
    pub way: Method,
    /// The whole tree, dead PEs included.
    pub tree: Tree,
    /// The site of the round.
    pub site: RecordedSite,
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
    /// The excluded PEs, each with a reason.
    pub dead: BTreeMap<PeId, String>,
}

/// The site of a recorded round.
#[derive(Clone, Debug, Default)]
pub struct RecordedSite {
    /// Name of the whole tree.
    pub tree_name: String,
    /// The network that the tree spans (`None` if it is the cluster file's), and the node of each
    /// PE.
    pub network: Option<(Option<NetworkSpec>, Vec<u32>)>,
    /// The cluster file.
    pub cluster: Option<PathBuf>,
    /// Names of the PEs in the cluster file; empty without a file or without names.
    pub pes: Vec<String>,
    /// The folder with the certificates of the PEs, if they use one.
    pub credentials: Option<PathBuf>,
    /// Properties of the links to the parents, by PE index.
    pub links: Vec<Option<EdgeSpec>>,
    /// Whether each PE has a separate link to each neighbour.
    pub own_links: bool,
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
        let Payload::Files(FilePayload {
            input,
            spread,
            output,
            replace,
            apart,
        }) = &request.messages.payload
        else {
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
        let is_named = request.site.cluster.is_some();
        let places = request.site.placement.places.iter().filter(|_| is_named);
        let pes: Option<Vec<String>> = places.map(|place| place.name.clone()).collect();
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
                    Some(job) if Slurm::named(job).is_some() => Some(job.to_owned()),
                    file => file.map(absolute).transpose()?,
                },
                pes: pes.unwrap_or_default(),
                credentials: request.site.guard.folder().map(absolute).transpose()?,
                links: request.site.links.clone(),
                own_links: request.site.own_links,
            },
            timeouts: request.timeouts,
            input: absolute(input)?,
            spread: *spread,
            output: absolute(output)?,
            replace: *replace,
            apart: *apart,
            bytes: request.messages.bytes.clone(),
            delivered: delivered.clone(),
            versions: request.messages.versions.clone(),
            dead: dead.clone(),
        })
    }
}
