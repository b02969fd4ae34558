//! The errors in the command line of a plan.

use flitcast_plan::algorithms::NotPlanned;
use flitcast_plan::gossip::{MAX_FLITS, NameError};
use flitcast_plan::network::cover::CoverError;
use flitcast_plan::packets::error::PacketPlanError;
use flitcast_plan::sim;
use thiserror::Error;

use super::svg::crossings::MAX_BANDS;
use super::svg::scene::MAX_PES;
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::site::topology::TopologyError;

/// Limit of crossings that a simulation keeps, at some 100 bytes each and twice.
pub const MAX_SIMULATED: u64 = 20_000_000;

/// An error in the command line of a plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// An invalid option, as a sentence.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// An option that only applies to a plan from P0 by single ports.
    #[error("{0} is for a scatter from P0 by single ports: leave it out, or --from and --ports")]
    FromElsewhere(&'static str),
    /// A gossip on a network that cannot be planned.
    #[error(transparent)]
    Gossip(#[from] GossipPlanError),
    /// An algorithm that does not support these PEs.
    #[error("--algorithm {algorithm}: {why}")]
    Unfit {
        /// The algorithm.
        algorithm: String,
        /// The reason.
        why: String,
    },
    /// More than can be planned.
    #[error(transparent)]
    TooMuch(#[from] PlanTooLarge),
    /// An option that only applies to plans in steps.
    #[error("--setup plans in packets: leave out {0}")]
    NotInPackets(String),
    /// Messages that cannot be cut into these packets.
    #[error("--packets: {0}")]
    Packets(String),
    /// Messages that are too long to plan in packets.
    #[error("--lengths: {0}")]
    LengthsInPackets(#[source] PacketPlanError),
    /// A list of packets that is too long to read.
    #[error("a list of this plan would have {packets} packets on {links} links: use --summary")]
    TooManyPackets {
        /// The number of packets.
        packets: u64,
        /// The number of times that they cross a link.
        links: u64,
    },
    /// A cover of a tree.
    #[error("--cover: trees that share no arc are those of a --network NETWORK (like torus:4x4)")]
    NothingToCover,
    /// The network has no cover.
    #[error("--cover: {0}")]
    Cover(#[from] CoverError),
    /// Something that a cover does not go with.
    #[error("{0} cannot be combined with --cover; remove it")]
    WithCover(&'static str),
    /// An order that is not one of the nonnull messages.
    #[error("--order: {0}")]
    Order(String),
    /// `--ports multi` with an option that excludes it.
    #[error("--ports multi runs certification's synchronisation in parallel: leave out {0}")]
    Ports(String),
    /// A simulation that does not fit into memory.
    #[error("--simulate: {items} crossings of edges are too many; the limit is {MAX_SIMULATED}")]
    TooLong {
        /// The number of crossings.
        items: u64,
    },
    /// A plan that no state machines can run as it is.
    #[error("--simulate: {0}")]
    NotPlayed(String),
    /// A broken rule of the model, which is a bug in Flitcast.
    #[error("--simulate: {0}")]
    Simulation(#[from] sim::SimulationError),
    /// A difference between the state machines and the plan, which is a bug in Flitcast.
    #[error("--simulate: the state machines did not do what was planned; please report this")]
    Differs,
    /// An algorithm, like all baselines, that has no schedule and is only simulated.
    #[error("--algorithm {0} has no schedule to plan: see `flitcast compare`")]
    NoSchedule(String),
    /// A drawing with too many PEs to see anything.
    #[error(
        "a drawing of {pes} PEs shows nothing, at most {} do: use --summary or --format json",
        MAX_PES
    )]
    TooLargeToDraw {
        /// The number of PEs.
        pes: usize,
    },
    /// A drawing with too many crossings to see anything.
    #[error(
        "a drawing of more than {} crossings shows nothing: use --summary or --format json",
        MAX_BANDS
    )]
    TooMuchToDraw,
    /// A table that is too large to read.
    #[error(
        "a table of this plan would have {cells} cells: use --summary, or --format json or svg"
    )]
    TooLarge {
        /// The number of cells.
        cells: u64,
    },
}

impl PlanError {
    /// Returns the error of an algorithm without a static schedule.
    pub fn not_planned(algorithm: impl Into<String>, why: NotPlanned) -> PlanError {
        match why {
            NotPlanned::Unfit(why) => {
                let algorithm = algorithm.into();
                PlanError::Unfit { algorithm, why }
            }
            NotPlanned::TooMuch(fault) => fault.into(),
        }
    }
}

/// An error in the command line of a gossip on a network.
#[derive(Debug, Error)]
pub enum GossipPlanError {
    /// The network is invalid, or has no planned gossip.
    #[error(transparent)]
    Network(#[from] anyhow::Error),
    /// An option that only applies to trees.
    #[error("{0} is for trees: a gossip on a --network has no root, and a port for each edge")]
    OfTrees(&'static str),
    /// A list with more or fewer lengths than there are PEs.
    #[error(
        "--lengths: {given} given, but {needed} needed: one for each PE from P0 to P{} (for the \
         same everywhere, write equal:LENGTH)",
        needed - 1
    )]
    Count {
        /// The number of lengths in the list.
        given: usize,
        /// The number of PEs.
        needed: usize,
    },
    /// Blocks whose total length would make sums inexact.
    #[error("--lengths: the blocks have more than {MAX_FLITS} flits together")]
    TooLong,
    /// No algorithm has that name.
    #[error("--algorithm: {0}")]
    Name(#[from] NameError),
}

/// All errors in the command line of a plan.
#[derive(Debug, Default)]
pub struct PlanErrors(pub Vec<PlanError>);

impl<E: Into<PlanError>> From<E> for PlanErrors {
    fn from(error: E) -> PlanErrors {
        PlanErrors(vec![error.into()])
    }
}

impl<E: Into<PlanError>> From<Vec<E>> for PlanErrors {
    fn from(errors: Vec<E>) -> PlanErrors {
        PlanErrors(errors.into_iter().map(Into::into).collect())
    }
}

impl PlanErrors {
    /// Returns the value, or adds its errors to the others.
    pub fn take<T, E: Into<PlanErrors>>(&mut self, read: Result<T, E>) -> Option<T> {
        read.map_err(|errors| self.0.extend(errors.into().0)).ok()
    }

    /// Adds an error if there is one.
    pub fn add(&mut self, error: Option<impl Into<PlanError>>) {
        self.0.extend(error.map(Into::into));
    }

    /// Returns these errors, if there are any.
    pub fn check(self) -> Result<(), PlanErrors> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self),
        }
    }
}
