//! The errors in the command line of a comparison.

use thiserror::Error;

use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::site::topology::TopologyError;

/// The largest side of rings and tori for which all parameters are tried.
pub const MAX_SIDE: usize = 65_536;

/// An error in the command line of a comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    /// An invalid option, as a sentence.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A gossip that cannot be compared.
    #[error(transparent)]
    Gossip(#[from] GossipComparisonError),
    /// More than can be planned.
    #[error(transparent)]
    Planned(#[from] PlanTooLarge),
    /// More than can be carried flit by flit.
    #[error("the baselines are carried flit by flit: {flits} flits over {pes} PEs are too many")]
    TooMuch {
        /// The number of flits.
        flits: u64,
        /// The number of PEs.
        pes: usize,
    },
}

/// An error in the command line of a gossip comparison.
#[derive(Debug, Error)]
pub enum GossipComparisonError {
    /// The network or a price is invalid.
    #[error(transparent)]
    Network(#[from] anyhow::Error),
    /// An option that only applies to trees.
    #[error(
        "{0} is for trees: on a --network, which has no root and a port for each edge, blocks of one \
         length are compared"
    )]
    OfTrees(&'static str),
    /// The lengths of messages are missing.
    #[error("--lengths: missing; give the length of each PE's message, for example equal:1")]
    NoLengths,
    /// A price of 0 for the unit of all times.
    #[error("--tl 0: times are compared in units of t_l, which has to be more than 0")]
    NoUnit,
    /// More parameters than can be tried.
    #[error(
        "--network: a side of {0} has too many parameters to compare; use sides of at most {MAX_SIDE}"
    )]
    TooLong(usize),
}
