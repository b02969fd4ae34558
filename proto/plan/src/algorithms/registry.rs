//! The registry of algorithms, in the order of comparisons. An algorithm is a line here and a file with
//! its planner.

use super::algorithm::Algorithm;

impl Algorithm {
    /// All algorithms, with the least value of their parameters.
    pub const ALL: [Algorithm; 26] = [
        Algorithm::FARTHEST_FIRST,
        Algorithm::SHOULDER_TAP,
        Algorithm::CERTIFICATION_SERIAL,
        Algorithm::CERTIFICATION_PIPELINED,
        Algorithm::CERTIFICATION_PARALLEL,
        Algorithm::CERTIFICATION_MULTI_PORT,
        Algorithm::GATHER_BY_ORDERS,
        Algorithm::LINEAR_GATHER,
        Algorithm::COMBINING_GATHER,
        Algorithm::COMBINING_SCATTER,
        Algorithm::LISTED_SCATTER,
        Algorithm::BROADCAST_ROUNDS,
        Algorithm::BROADCAST_URGENT,
        Algorithm::BROADCAST_CHILD_BY_CHILD,
        Algorithm::BROADCAST_CIRCULANT,
        Algorithm::BROADCAST_ON_CUBES,
        Algorithm::GOSSIP_FLOOD,
        Algorithm::GOSSIP_CIRCULATE,
        Algorithm::GOSSIP_DISSEMINATION,
        Algorithm::GOSSIP_DIRECT,
        Algorithm::GOSSIP_ON_NETWORK,
        Algorithm::EXCHANGE_ROUNDS,
        Algorithm::EXCHANGE_SHIFTS,
        Algorithm::EXCHANGE_BRUCK,
        Algorithm::EXCHANGE_TREE,
        Algorithm::EXCHANGE_AT_ONCE,
    ];

    /// Algorithms that are planned in lock step, and never run.
    pub(super) const PLANNED: [Algorithm; 3] = [
        Algorithm::SCATTER_AROUND,
        Algorithm::GOSSIP_AROUND,
        Algorithm::EXCHANGE_AROUND,
    ];
}
