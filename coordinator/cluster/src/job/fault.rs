//! The errors of a command line, and their messages.

use std::path::PathBuf;

use flitcast_node::payload::PayloadError;
use flitcast_node::security::SecurityError;
use flitcast_proto::PeId;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use thiserror::Error;

use crate::algorithms::plan_limits::MOST_PREDICTED_CROSSINGS;
use crate::algorithms::unfit::NotApplicable;
use crate::files::user_file::FileError;
use crate::options::guard::GuardArgs;
use crate::options::link_spec::LinkSpecError;
use crate::options::order::OrderError;
use crate::options::packets::PacketsError;
use crate::options::pes::MAX_LOCAL_PES;
use crate::options::pictures::PictureError;
use crate::options::retries::RetryError;
use crate::options::timeouts::TimeoutError;
use crate::options::tree::TreeArgs;
use crate::options::workload::{DealError, LengthsError};
use crate::site::guard::GuardOptionsError;
use crate::site::settings::{Credentials, Settings};
use crate::site::topology::TopologyError;
use crate::text::units::{Bytes, MAX_TOTAL_BYTES, UnitError};

/// An error in a command line.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The tree is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The root does not exist.
    #[error("{option}: there is no {root} among {pes} PEs, P0 to P{}", pes - 1)]
    NoSuchPe {
        /// `--from` or `--to`.
        option: &'static str,
        /// The requested PE.
        root: PeId,
        /// The number of PEs.
        pes: usize,
    },
    /// More processes than one machine may run.
    #[error(
        "{option} {spec} has {pes} PEs: at most {MAX_LOCAL_PES} processes are started on one machine"
    )]
    TooManyPes {
        /// `--tree` or `--network`.
        option: &'static str,
        /// The specification as typed.
        spec: String,
        /// The number of its PEs.
        pes: usize,
    },
    /// More file descriptors than the process may open.
    #[error(
        "{needed} file descriptors are needed for {pes} PEs, the limit is {have}: raise it with `ulimit -n {needed}`"
    )]
    TooFewDescriptors {
        /// The number of PEs.
        pes: usize,
        /// The number of descriptors that they need.
        needed: u64,
        /// The limit.
        have: u64,
    },
    /// A root where there is none to choose.
    #[error(
        "{option} is not for --algorithm {algorithm}: what is there to measure against has P0 as its root"
    )]
    RootOfBaseline {
        /// `--from` or `--to`.
        option: &'static str,
        /// The algorithm.
        algorithm: &'static str,
    },
    /// A broadcast or a gossip whose algorithm does not support this network.
    #[error("--algorithm {algorithm}: {why}")]
    UnfitWay {
        /// The algorithm.
        algorithm: String,
        /// The reason.
        why: String,
    },
    /// An algorithm that does not support the tree.
    #[error("--algorithm {algorithm} is {why}: use {}", why.instead())]
    Unfit {
        /// The algorithm.
        algorithm: &'static str,
        /// The reason.
        why: NotApplicable,
    },
    /// `--sync` without certification.
    #[error("--sync belongs to --algorithm certification")]
    SyncWithoutCertification,
    /// The profile is for another number of PEs.
    #[error("--profile: it was measured on {measured} PEs, not on {asked}")]
    ProfilePes {
        /// The number in the profile.
        measured: usize,
        /// The number in the command line.
        asked: usize,
    },
    /// A prediction failed, so there is no choice.
    #[error("--algorithm auto: the schedule contradicts itself: {0}")]
    Choice(ProtocolError),
    /// The profile is for other links.
    #[error("--profile: it was measured on {measured}, not on {asked}")]
    ProfileLinks {
        /// The links in the command line.
        asked: String,
        /// The links in the profile.
        measured: String,
    },
    /// The profile was measured with encryption and the command has none, or the reverse.
    #[error("--profile: it was measured {}, and this would be {}", encrypted(*measured), encrypted(!*measured))]
    ProfileEncryption {
        /// Whether the profile was measured with encryption.
        measured: bool,
    },
    /// `--pacing` with an algorithm that gives no orders.
    #[error("--pacing belongs to --algorithm shoulder-tap and --algorithm certification")]
    PacingWithoutOrders,
    /// Gossip and exchange have no clock.
    #[error("--pacing scheduled: of {0} only turns and eager are known")]
    NoClock(&'static str),
    /// Many ports for an algorithm that has one port in each direction.
    #[error(
        "--ports multi: {0} uses one port at a time; over all links at once go fdf, certification, flood \
         and tree, over a tree, and the algorithms of a --network of lines or rings"
    )]
    OnePort(&'static str),
    /// A synchronisation by single ports with many ports.
    #[error("--ports multi synchronises over all links at once: leave out --sync")]
    SyncOfPorts,
    /// No option gives the messages.
    #[error(
        "there is nothing to send: give files with --input DIR --output DIR, or synthetic messages with --size SIZE or --lengths LENGTHS"
    )]
    NoPayload,
    /// Lengths that differ, of one message.
    #[error("--lengths: a broadcast has one message; give its length with --size")]
    SeveralLengths,
    /// A number of pairs of PEs that exceeds the range of delivery numbers.
    #[error("{pes} PEs: where each has a message for all others, or for each, there can be {most}")]
    TooManyPairs {
        /// The number of PEs.
        pes: usize,
        /// The limit.
        most: usize,
    },
    /// A static schedule over the edges of a tree that is too large to plan.
    #[error(
        "{operation} over the edges of {spec}: {crossings} crossings of edges are too many to plan, the \
         maximum is {MOST_PREDICTED_CROSSINGS}; use {}",
        match *.operation {
            "exchange" => format!("--network complete:{pes}, or fewer PEs"),
            _ => "fewer PEs".to_owned(),
        }
    )]
    Crossings {
        /// The name of the operation.
        operation: &'static str,
        /// The name of the tree.
        spec: String,
        /// The number of its PEs.
        pes: usize,
        /// The number of crossings.
        crossings: u64,
    },
    /// A list of lengths where each pair of PEs has one.
    #[error(
        "--lengths: a total exchange has a message of each PE for each other one: name a file with a \
         row for each sender, or write equal:MEAN"
    )]
    ListOfPieces,
    /// The matrix cannot be read.
    #[error("--lengths: {0}")]
    Matrix(FileError),
    /// The matrix is for another number of PEs.
    #[error("--lengths: {rows} rows and columns, but there are {pes} PEs")]
    MatrixOfOthers {
        /// The number of rows.
        rows: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// Files and synthetic messages, or two kinds of synthetic ones.
    #[error("{0} and {1} both define the messages; choose one")]
    TwoPayloads(&'static str, &'static str),
    /// An option without another one that it requires.
    #[error("{option} goes with {needs}, which is not there")]
    Alone {
        /// The given option.
        option: &'static str,
        /// The missing option.
        needs: &'static str,
    },
    /// The profile cannot be read, or is for another tree.
    #[error("--profile: {0}")]
    Profile(#[from] FileError),
    /// A tree without edges to measure.
    #[error("{0} is P0 alone: there is no edge to measure")]
    NoEdges(String),
    /// An invalid time.
    #[error("--seconds {text}: write a number from {least} to {most}")]
    Seconds {
        /// As typed.
        text: String,
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
    },
    /// A value that is not a size.
    #[error("{option}: {source}")]
    Size {
        /// `--size` or `--flit-size`.
        option: &'static str,
        /// The reason.
        source: UnitError,
    },
    /// Invalid lengths.
    #[error("--lengths: {0}")]
    NoLengths(#[from] LengthsError),
    /// A flit size out of range.
    #[error("--flit-size {}: a flit has {} to {}", Bytes(*.0), Bytes(MIN_FLIT_BYTES.into()), Bytes(MAX_FLIT_BYTES.into()))]
    FlitSize(u64),
    /// An invalid number or size of packets.
    #[error("--packets {0}")]
    Packets(#[from] PacketsError),
    /// An operation or algorithm that does not support packets.
    #[error(
        "--packets is for a scatter by fdf, for a gather by shoulder-tap or certification and for any \
         broadcast, not for {0}: --flit-size says how large flits are there"
    )]
    NotInPackets(String),
    /// Two sizes.
    #[error("--packets and --flit-size both define the size of flits; choose one")]
    PacketsAndFlits,
    /// Packets that mix messages for anything but a scatter as planned.
    #[error(
        "--packets mixed is for a scatter by fdf over one tree, in an order of its own: leave out the \
         rest"
    )]
    NotMixed,
    /// Packets for an algorithm or a tree that is to be chosen.
    #[error(
        "--packets is for one algorithm on one tree: name them, or leave it out, since auto chooses \
         among flits as well"
    )]
    PacketsOfAuto,
    /// Several trees without a network.
    #[error(
        "--cover: trees that share no link are those of a --network NETWORK (like torus:4x4) or of a \
         cluster file with [network]"
    )]
    CoverOfTree,
    /// Several trees for an operation that uses one.
    #[error(
        "--cover is for a scatter by fdf, for a gather by shoulder-tap or certification and for any \
         broadcast, not for {0}"
    )]
    NotCovered(String),
    /// An order of messages for an algorithm that has none to choose.
    #[error("--order {order} is for {by}, not by {algorithm}")]
    OrderOfOther {
        /// The order as typed.
        order: String,
        /// The operation and the algorithms that have one.
        by: &'static str,
        /// The algorithm.
        algorithm: String,
    },
    /// An order that is not one of the nonnull messages, or that no gather can follow.
    #[error("--order: {0}")]
    Order(#[from] OrderError),
    /// An invalid link.
    #[error("--link: {0}")]
    Link(#[from] LinkSpecError),
    /// An invalid number of retries.
    #[error("--retry: {0}")]
    Retry(#[from] RetryError),
    /// Invalid timeouts.
    #[error("--timeouts: {0}")]
    Timeouts(#[from] TimeoutError),
    /// Invalid certificates.
    #[error(transparent)]
    Guard(#[from] GuardOptionsError),
    /// Invalid certificates in the folder that a cluster file names.
    #[error("{place}: credentials: {source}")]
    SaidCredentials {
        /// The file, and the position of the folder's name in it.
        place: String,
        /// The reason.
        source: SecurityError,
    },
    /// A link shape between hosts.
    #[error("--link: {0}")]
    LinkAcrossHosts(String),
    /// A relative path, which depends on the directory in which a PE was started.
    #[error(
        "{option} {}: it is a path on the hosts of the PEs, which run elsewhere: give it from the root", path.display()
    )]
    Relative {
        /// `--input` or `--output`.
        option: &'static str,
        /// The path as typed.
        path: PathBuf,
    },
    /// The lengths for a choice are not known here.
    #[error(
        "auto chooses by the lengths of the messages, which only PEs on other hosts know: name an algorithm, and no --tree auto"
    )]
    UnknownLengths,
    /// Links between hosts that nothing describes.
    #[error(
        "the links between these hosts are not known: measure them with `flitcast calibrate`, and give --profile FILE"
    )]
    UnknownLinks,
    /// The lengths do not fit the tree.
    #[error("{option}: {source}")]
    Lengths {
        /// `--size` or `--lengths`.
        option: &'static str,
        /// The reason.
        source: DealError,
    },
    /// The total length of the messages is too large.
    #[error("the messages below {} are longer than {} together", .0.display(), Bytes(MAX_TOTAL_BYTES))]
    InputTooLong(PathBuf),
    /// The input cannot be sent.
    #[error("--input: {0}")]
    Input(#[from] PayloadError),
    /// The output cannot be written.
    #[error("--output {}: {why}", path.display())]
    Output {
        /// The path as typed.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The cluster or the network has changed since the record was written.
    #[error(transparent)]
    Outdated(#[from] Outdated),
    /// A picture cannot be written.
    #[error(transparent)]
    Picture(#[from] PictureError),
}

fn encrypted(is_so: bool) -> &'static str {
    match is_so {
        true => "with TLS",
        false => "without TLS",
    }
}

/// Returns the error in certificates, with the place where their folder was named.
pub fn guard_fault(
    typed: &GuardArgs,
    tree: &TreeArgs,
    said: &Settings,
    fault: GuardOptionsError,
) -> RequestError {
    match (fault, &typed.credentials, &tree.cluster, &said.credentials) {
        (
            GuardOptionsError::Credentials(source),
            None,
            Some(file),
            Some(Credentials { spot, .. }),
        ) => RequestError::SaidCredentials {
            place: format!("{}:{spot}", file.display()),
            source,
        },
        (fault, ..) => fault.into(),
    }
}

/// A difference between a record and the current cluster or network.
#[derive(Debug, Error)]
pub enum Outdated {
    /// The cluster file has other PEs, or another tree.
    #[error("{file} has other PEs or another tree than when the round failed: {what}")]
    Cluster {
        /// The cluster file.
        file: String,
        /// The first difference.
        what: String,
    },
    /// The network is another.
    #[error("the network {spec} has changed: {what}")]
    Network {
        /// The network's name.
        spec: String,
        /// The first difference.
        what: String,
    },
}
