//! What can be wrong with a command line, and how it is said.

use std::path::PathBuf;

use flitcast_node::payload::PayloadError;
use flitcast_node::security::SecurityError;
use flitcast_proto::PeId;
use flitcast_proto::round::RoundFault;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use thiserror::Error;

use crate::files::user_file::FileError;
use crate::options::guard::GuardArgs;
use crate::options::link_spec::LinkFault;
use crate::options::packets::PacketsFault;
use crate::options::pes::MAX_LOCAL_PES;
use crate::options::pictures::PictureError;
use crate::options::retries::RetryFault;
use crate::options::timeouts::TimeoutFault;
use crate::options::tree::TreeArgs;
use crate::options::workload::{DealError, LengthsError};
use crate::site::guard::GuardFault;
use crate::site::settings::{Credentials, Settings};
use crate::site::topology::TopologyError;
use crate::text::units::{Bytes, MAX_TOTAL_BYTES, UnitError};
use crate::ways::candidates::Unfit;

/// Something that is wrong with a command line.
#[derive(Debug, Error)]
pub enum RequestError {
    /// There is no tree.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Nobody has this number.
    #[error("{option}: there is no {root} among {pes} PEs, P0 to P{}", pes - 1)]
    NoSuchPe {
        /// `--from` or `--to`.
        option: &'static str,
        /// Who was asked for.
        root: PeId,
        /// How many there are.
        pes: usize,
    },
    /// More processes than a machine is good for.
    #[error(
        "{option} {spec} has {pes} PEs: at most {MAX_LOCAL_PES} processes are started on one machine"
    )]
    TooManyPes {
        /// `--tree` or `--network`.
        option: &'static str,
        /// As typed.
        spec: String,
        /// How many it has.
        pes: usize,
    },
    /// More descriptors than the process may have.
    #[error(
        "{needed} file descriptors are needed for {pes} PEs, the limit is {have}: raise it with `ulimit -n {needed}`"
    )]
    TooFewDescriptors {
        /// How many PEs.
        pes: usize,
        /// How many descriptors they need.
        needed: u64,
        /// How many there may be.
        have: u64,
    },
    /// A root where there is none to choose.
    #[error(
        "{option} is not for --algorithm {algorithm}: what is there to measure against has P0 as its root"
    )]
    RootOfBaseline {
        /// `--from` or `--to`.
        option: &'static str,
        /// Which algorithm.
        algorithm: &'static str,
    },
    /// A broadcast or a gossip that cannot be done so here.
    #[error("--algorithm {algorithm}: {why}")]
    UnfitWay {
        /// Which algorithm.
        algorithm: String,
        /// Why not.
        why: String,
    },
    /// An algorithm that is not for the tree.
    #[error("--algorithm {algorithm} is {why}: use {}", why.instead())]
    Unfit {
        /// Which one.
        algorithm: &'static str,
        /// Why not.
        why: Unfit,
    },
    /// `--sync` without certification.
    #[error("--sync belongs to --algorithm certification")]
    SyncWithoutCertification,
    /// The profile is of another number of PEs.
    #[error("--profile: it was measured on {measured} PEs, not on {asked}")]
    ProfilePes {
        /// What the profile says.
        measured: usize,
        /// What the command asks for.
        asked: usize,
    },
    /// No prediction, and so no choice.
    #[error("--algorithm auto: the schedule contradicts itself: {0}")]
    Choice(RoundFault),
    /// The profile is of other links.
    #[error("--profile: it was measured on {measured}, not on {asked}")]
    ProfileLinks {
        /// What the command asks for.
        asked: String,
        /// What the profile says.
        measured: String,
    },
    /// The profile knows no encryption, or nothing else.
    #[error("--profile: it was measured {}, and this would be {}", encrypted(*measured), encrypted(!*measured))]
    ProfileEncryption {
        /// Whether what was measured was encrypted.
        measured: bool,
    },
    /// `--pacing` with an algorithm that gives no orders.
    #[error("--pacing belongs to --algorithm shoulder-tap and --algorithm certification")]
    PacingWithoutOrders,
    /// Gossip and exchange have no clock.
    #[error("--pacing scheduled: of {0} only turns and eager are known")]
    NoClock(&'static str),
    /// It has one port each way, by its nature.
    #[error(
        "--ports multi: {0} sends to one PE at a time; over all links at once go flood and tree, over a \
         tree, and the algorithms of a --network of lines or rings"
    )]
    OnePort(&'static str),
    /// Nothing says what the messages are.
    #[error(
        "say what to send: files with --input DIR --output DIR, or synthetic messages with --size SIZE or --lengths LENGTHS"
    )]
    NoPayload,
    /// Lengths that differ, of one message.
    #[error("--lengths: a broadcast has one message; --size says how long it is")]
    SeveralLengths,
    /// More pairs of PEs than can be told apart in a frame.
    #[error("{pes} PEs: where each has a message for all others, or for each, there can be {most}")]
    TooManyPairs {
        /// How many PEs there are.
        pes: usize,
        /// How many there can be.
        most: usize,
    },
    /// A list of lengths for each PE from each.
    #[error(
        "--lengths: a total exchange has a message of each PE for each other one: name a file with a \
         row for each sender, or write equal:MEAN"
    )]
    ListOfPieces,
    /// The matrix is none.
    #[error("--lengths: {0}")]
    Matrix(FileError),
    /// The matrix is not for so many PEs.
    #[error("--lengths: {rows} rows and columns, but there are {pes} PEs")]
    MatrixOfOthers {
        /// How many rows there are.
        rows: usize,
        /// How many PEs.
        pes: usize,
    },
    /// Files and synthetic messages, or two kinds of synthetic ones.
    #[error("{0} says what the messages are, and so does {1}: choose one")]
    TwoPayloads(&'static str, &'static str),
    /// Something that only goes with something else.
    #[error("{option} goes with {needs}, which is not there")]
    Alone {
        /// What was given.
        option: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// The profile is none, or another tree's.
    #[error("--profile: {0}")]
    Profile(#[from] FileError),
    /// Nothing could be measured.
    #[error("{0} is P0 alone: there is no edge to measure")]
    NoEdges(String),
    /// A time that is none.
    #[error("--seconds {text}: write a number from {least} to {most}")]
    Seconds {
        /// As typed.
        text: String,
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
    },
    /// A value that is no size.
    #[error("{option}: {source}")]
    Size {
        /// `--size` or `--flit-size`.
        option: &'static str,
        /// Why not.
        source: UnitError,
    },
    /// A value that gives no lengths.
    #[error("--lengths: {0}")]
    NoLengths(#[from] LengthsError),
    /// Flits of this size are not sent.
    #[error("--flit-size {}: a flit has {} to {}", Bytes(*.0), Bytes(MIN_FLIT_BYTES.into()), Bytes(MAX_FLIT_BYTES.into()))]
    FlitSize(u64),
    /// No packets, or too large or small ones.
    #[error("--packets {0}")]
    Packets(#[from] PacketsFault),
    /// What goes by other rules.
    #[error(
        "--packets is for a scatter by fdf, for a gather by shoulder-tap or certification and for any \
         broadcast, not for {0}: --flit-size says how large flits are there"
    )]
    NotInPackets(String),
    /// Two sizes.
    #[error("--packets says how large flits are, and so does --flit-size: choose one")]
    PacketsAndFlits,
    /// A choice among ways and one among packets.
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
    /// Several trees, and an operation that is played on one.
    #[error(
        "--cover is for a scatter by fdf, for a gather by shoulder-tap or certification and for any \
         broadcast, not for {0}"
    )]
    NotCovered(String),
    /// An order that others do not have.
    #[error("--order search is for a scatter by fdf, not by {0}")]
    OrderOfOther(String),
    /// A link that cannot be had.
    #[error("--link: {0}")]
    Link(#[from] LinkFault),
    /// A number of retries that there cannot be.
    #[error("--retry: {0}")]
    Retry(#[from] RetryFault),
    /// Timeouts that make no sense.
    #[error("--timeouts: {0}")]
    Timeouts(#[from] TimeoutFault),
    /// The certificates are not good.
    #[error(transparent)]
    Guard(#[from] GuardFault),
    /// They are not good, and a cluster file names their folder.
    #[error("{place}: credentials: {source}")]
    SaidCredentials {
        /// The file, and where it says so.
        place: String,
        /// Why not.
        source: SecurityError,
    },
    /// Links between hosts.
    #[error("--link: {0}")]
    LinkAcrossHosts(String),
    /// A path that means something else wherever a PE was started.
    #[error(
        "{option} {}: it is a path on the hosts of the PEs, which run elsewhere: give it from the root", path.display()
    )]
    Relative {
        /// `--input` or `--output`.
        option: &'static str,
        /// As typed.
        path: PathBuf,
    },
    /// Nothing to choose by.
    #[error(
        "auto chooses by the lengths of the messages, which only PEs on other hosts know: name an algorithm, and no --tree auto"
    )]
    UnknownLengths,
    /// The lengths do not fit the tree.
    #[error("{option}: {source}")]
    Lengths {
        /// `--size` or `--lengths`.
        option: &'static str,
        /// Why.
        source: DealError,
    },
    /// The messages together are too long.
    #[error("the messages below {} are longer than {} together", .0.display(), Bytes(MAX_TOTAL_BYTES))]
    InputTooLong(PathBuf),
    /// The input cannot be sent.
    #[error("--input: {0}")]
    Input(#[from] PayloadError),
    /// The output cannot be written to.
    #[error("--output {}: {why}", path.display())]
    Output {
        /// As typed.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The record of a round is of something else.
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

/// What is wrong with certificates, where the folder was named.
pub fn guard_fault(
    typed: &GuardArgs,
    tree: &TreeArgs,
    said: &Settings,
    fault: GuardFault,
) -> RequestError {
    match (fault, &typed.credentials, &tree.cluster, &said.credentials) {
        (GuardFault::Credentials(source), None, Some(file), Some(Credentials { spot, .. })) => {
            RequestError::SaidCredentials {
                place: format!("{}:{spot}", file.display()),
                source,
            }
        }
        (fault, ..) => fault.into(),
    }
}

/// What a record says, and is so no more.
#[derive(Debug, Error)]
pub enum Outdated {
    /// The cluster file has other PEs, or another tree.
    #[error("{file} has other PEs or another tree than when the round failed: {what}")]
    Cluster {
        /// The cluster file.
        file: String,
        /// What differs first.
        what: String,
    },
    /// The network is another.
    #[error("the network {spec} is not what it was: {what}")]
    Network {
        /// Its name.
        spec: String,
        /// What differs first.
        what: String,
    },
}
