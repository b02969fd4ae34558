//! What can be wrong with a record, and how it is said.

use flitcast_proto::PeId;
use flitcast_proto::network::NetworkSpecError;
use flitcast_proto::tree::TreeFault;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::files::toml_file::Misread;
use crate::options::link_spec::LinkFault;
use crate::options::timeouts::TimeoutFault;
use crate::ways::candidates::Unfit;

/// What is wrong in one place of a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecordFault {
    /// As can be wrong with any file.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// No name of an undertaking.
    #[error("undertaking: `{0}` is not sixteen hexadecimal digits")]
    Undertaking(String),
    /// One that goes with another.
    #[error("`{0}` goes with `{1}`, which is not there")]
    Alone(&'static str, &'static str),
    /// No tree.
    #[error("parents: {0}")]
    Tree(TreeFault),
    /// A list of another length.
    #[error("{key} has {found} entries, and by `parents` there are {expected}")]
    Count {
        /// Which.
        key: &'static str,
        /// How many it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
    /// Somebody who is not there, or P0.
    #[error("{what}: there is no P{pe} with a message; by `parents` there are P1..P{last}")]
    NoSuchPe {
        /// The list that names it.
        what: &'static str,
        /// Who.
        pe: u64,
        /// The last PE.
        last: usize,
    },
    /// Named already.
    #[error("{what}: {pe} is named twice")]
    Twice {
        /// The list that names it.
        what: &'static str,
        /// Who.
        pe: PeId,
    },
    /// Neither scatter nor gather.
    #[error("operation: `{0}` is neither \"scatter\" nor \"gather\"")]
    Operation(String),
    /// An algorithm that there is not.
    #[error("algorithm: there is no {operation} by `{given}`")]
    Algorithm {
        /// Scatter or gather.
        operation: String,
        /// As the file writes it.
        given: String,
    },
    /// An algorithm that is not for the tree.
    #[error("algorithm: {algorithm} is {why}")]
    Unfit {
        /// Which one.
        algorithm: &'static str,
        /// Why not.
        why: Unfit,
    },
    /// A pacing that there is not.
    #[error("pacing: `{0}` is none of \"scheduled\", \"turns\" and \"eager\"")]
    Pacing(String),
    /// A flit that is not sent.
    #[error("flit_bytes: {0} is not from {MIN_FLIT_BYTES} to {MAX_FLIT_BYTES}")]
    FlitBytes(u64),
    /// Timeouts that make no sense.
    #[error("timeouts: {0}")]
    Timeouts(TimeoutFault),
    /// A network that is none.
    #[error("network: {0}")]
    Network(NetworkSpecError),
    /// Two PEs on one node.
    #[error("nodes: two PEs stand on node {0}")]
    NodeTwice(u32),
    /// A link that cannot be had.
    #[error("{direction}: {fault}")]
    Link {
        /// `down` or `up`.
        direction: &'static str,
        /// Why not.
        fault: LinkFault,
    },
    /// A path that depends on where one is.
    #[error("{0} must be an absolute path")]
    Relative(&'static str),
}
