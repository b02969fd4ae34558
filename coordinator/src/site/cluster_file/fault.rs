//! What can be wrong with a cluster file, and how it is said.

use std::net::IpAddr;

use flitcast_proto::network::NetworkFault;
use flitcast_proto::tree::TreeFault;

use crate::files::toml_file::Misread;
use crate::options::link_spec::LinkFault;
use crate::options::timeouts::TimeoutFault;

/// What is wrong in one place of a cluster file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClusterFileFault {
    /// As can be wrong with any file.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// Nothing says what PEs there are.
    #[error("no PEs: give a [[pe]] table for each")]
    NoPes,
    /// Two ways to say what PEs there are.
    #[error("there is a tree, and {key} beside it: one of both says what PEs there are")]
    TwoTrees {
        /// The other.
        key: &'static str,
    },
    /// A tree of PEs without places.
    #[error(
        "a tree alone is for PEs that join: say kind = \"join\" or \"slurm\" in [launch], or give a [[pe]] table for each"
    )]
    TreeOfNobody,
    /// A tree that is none.
    #[error("tree: {why}")]
    NamedTree {
        /// Why not.
        why: String,
    },
    /// Nowhere to join.
    #[error(
        "kind = \"{kind}\" needs a port to listen on: coordinator = \"ADDRESS:PORT\", like \"198.18.0.1:7117\""
    )]
    NoPort {
        /// The kind.
        kind: &'static str,
    },
    /// A port that nobody calls.
    #[error(
        "the coordinator has a port, {port}, and nobody joins: leave it out, or say kind = \"join\" in [launch]"
    )]
    UselessPort {
        /// Which.
        port: u16,
    },
    /// A command for a process that others start.
    #[error("{name} has a run, and with kind = \"{kind}\" others start it: leave it out")]
    UselessRun {
        /// Whose.
        name: String,
        /// The kind.
        kind: &'static str,
    },
    /// Something for ssh, which is not used.
    #[error("{key} is for hosts that ssh reaches: leave it out, or say kind = \"ssh\" in [launch]")]
    UselessKey {
        /// The key.
        key: &'static str,
    },
    /// Something for another way to start processes.
    #[error("{key} is for kind = \"{kind}\" in [launch]: leave it out, or say that")]
    KeyOfKind {
        /// The key.
        key: &'static str,
        /// Which kinds it is for.
        kind: &'static str,
    },
    /// No services.
    #[error("kind = \"compose\" needs the compose file: file = \"compose.yaml\"")]
    NoComposeFile,
    /// A name that ssh could not be given.
    #[error(
        "ssh cannot be given `{name}`: say how it reaches the host, like ssh = \"me@a.example\""
    )]
    NoDestination {
        /// The name.
        name: String,
    },
    /// Nobody on another host could call the coordinator.
    #[error(
        "the coordinator listens on {coordinator}, where {name} at {address} does not reach it: say coordinator = \"ADDRESS\", where the hosts reach this machine"
    )]
    CoordinatorOnLoopback {
        /// Where the coordinator listens.
        coordinator: IpAddr,
        /// A PE elsewhere.
        name: String,
        /// Where it is.
        address: IpAddr,
    },
    /// A `[[pe]]` without name.
    #[error("this [[pe]] has no name")]
    NoName,
    /// A name that was given before.
    #[error("there is a [[pe]] called `{name}` in line {first_line} already")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where it was given first.
        first_line: usize,
    },
    /// A `[[pe]]` that nobody could reach.
    #[error("{name} has no address: say where its children reach it")]
    NoAddress {
        /// Its name.
        name: String,
    },
    /// Something of an edge that is not there.
    #[error("{name} has a {key} and no parent")]
    EdgeWithoutParent {
        /// Its name.
        name: String,
        /// What is said of the edge.
        key: &'static str,
    },
    /// A parent that is none of the PEs.
    #[error("{name}: no [[pe]] is called `{parent}`")]
    UnknownParent {
        /// The orphan.
        name: String,
        /// The parent given for it.
        parent: String,
    },
    /// The parents make no tree.
    #[error("{name}: {fault} (the PEs are P0, P1, .. in the order of the file)")]
    Tree {
        /// The PE to look at.
        name: String,
        /// What is wrong there.
        fault: TreeFault,
    },
    /// Both ways to say who is connected to whom.
    #[error(
        "{name} has a parent{}, and there is a [network]: one of both says who is connected to whom", also(*.more)
    )]
    ParentInNetwork {
        /// The first that has one.
        name: String,
        /// How many more have.
        more: usize,
    },
    /// A `[network]` that says nothing.
    #[error("[network] has no edges: give them by names, like edges = [[\"a\", \"b\"]]")]
    NoEdges,
    /// An end of an edge that is none of the PEs.
    #[error("no [[pe]] is called `{name}`")]
    UnknownEnd {
        /// What stands there.
        name: String,
    },
    /// An edge from a PE to itself.
    #[error("{name} is connected to itself; an edge has two different ends")]
    Loop {
        /// The PE.
        name: String,
    },
    /// Too much of a network.
    #[error("edges: {0}")]
    Network(NetworkFault),
    /// No tree spans the network.
    #[error("the network is not connected: {}{} cannot be reached from {root}", names.join(", "), and_more(*.more))]
    Apart {
        /// Where the search began.
        root: String,
        /// Who cannot be reached, the first few.
        names: Vec<String>,
        /// How many more.
        more: usize,
    },
    /// What nobody should be able to overlook.
    #[error("insecure cannot be said in a file: who sends in the clear types --insecure each time")]
    Insecure,
    /// A timeout that makes no sense.
    #[error(transparent)]
    Timeout(TimeoutFault),
    /// A link that cannot be had.
    #[error("link: {0}")]
    Link(LinkFault),
    /// Links that are not ours to shape.
    #[error("link: {}", across_hosts(Some(.name), address))]
    LinkAcrossHosts {
        /// A PE that is elsewhere.
        name: String,
        /// Where it is.
        address: IpAddr,
    },
}

/// Why a link is not shaped, for messages about it.
pub fn across_hosts(name: Option<&str>, address: &IpAddr) -> String {
    let who = name.unwrap_or("a PE");
    let why = match address.is_unspecified() {
        true => "may join from anywhere".to_owned(),
        false => format!("has an address of a network, {address}"),
    };
    format!(
        "only links between processes of one host are shaped, by the clock that all of them read, and {who} {why}; take the link out"
    )
}

fn also(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}
