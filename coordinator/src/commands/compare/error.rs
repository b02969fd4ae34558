//! The errors in the command line of a comparison.

use thiserror::Error;

use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::exchange_flits::ExchangeFlitsError;
use flitcast_cluster::options::flits::FlitsError;
use flitcast_cluster::options::gossip_network::GossipNetworkError;
use flitcast_cluster::options::pes::NoSuchPe;
use flitcast_cluster::options::ports::PortsOfAll;
use flitcast_cluster::options::prices::PriceError;
use flitcast_cluster::site::topology::TopologyError;

/// The largest side of rings and tori for which all parameters are tried.
pub const MAX_SIDE: usize = 65_536;

/// An error in the command line of a comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The tree is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The lengths are invalid, or do not fit the tree.
    #[error(transparent)]
    Flits(#[from] FlitsError),
    /// A gossip that cannot be compared.
    #[error(transparent)]
    Gossip(#[from] GossipComparisonError),
    /// The lengths of an exchange are invalid.
    #[error(transparent)]
    Exchange(#[from] ExchangeFlitsError),
    /// More than can be planned.
    #[error(transparent)]
    Planned(#[from] PlanTooLarge),
    /// The source does not exist.
    #[error(transparent)]
    NoSuchPe(#[from] NoSuchPe),
    /// Many ports in a complete network.
    #[error(transparent)]
    PortsOfAll(#[from] PortsOfAll),
    /// More than can be carried flit by flit.
    #[error("the baselines are carried flit by flit: {flits} flits over {pes} PEs are too many")]
    TooMuch {
        /// The number of flits.
        flits: u64,
        /// The number of PEs.
        pes: usize,
    },
}

impl From<PriceError> for CompareError {
    fn from(fault: PriceError) -> CompareError {
        GossipComparisonError::from(fault).into()
    }
}

/// An error in the command line of a gossip comparison.
#[derive(Debug, Error)]
pub enum GossipComparisonError {
    /// The network is invalid, or has no planned gossip.
    #[error(transparent)]
    Network(#[from] GossipNetworkError),
    /// The prices are invalid.
    #[error(transparent)]
    Prices(#[from] PriceError),
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
