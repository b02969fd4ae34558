//! The registry of algorithms, in the order of comparisons. An algorithm is a name and a line here, and a
//! file with its properties and its planner.

use super::algorithm::Algorithm;
use super::{
    baselines, broadcast, broadcast_circulant, broadcast_hypercube, certification, exchange,
    exchange_bruck, farthest_first, gossip, ring_emulation, shoulder_tap,
};

impl Algorithm {
    pub const FARTHEST_FIRST: Algorithm = Algorithm::of(&farthest_first::SPEC);
    pub const SHOULDER_TAP: Algorithm = Algorithm::of(&shoulder_tap::SPEC);
    pub const CERTIFICATION_SERIAL: Algorithm = Algorithm::of(&certification::SERIAL);
    pub const CERTIFICATION_PIPELINED: Algorithm = Algorithm::of(&certification::PIPELINED);
    pub const CERTIFICATION_PARALLEL: Algorithm = Algorithm::of(&certification::PARALLEL);
    pub const CERTIFICATION_MULTI_PORT: Algorithm = Algorithm::of(&certification::MULTI_PORT);
    pub const GATHER_BY_ORDERS: Algorithm = Algorithm::of(&certification::ORDERS);
    pub const LINEAR_GATHER: Algorithm = Algorithm::of(&baselines::LINEAR);
    pub const COMBINING_GATHER: Algorithm = Algorithm::of(&baselines::COMBINING);
    pub const COMBINING_SCATTER: Algorithm = Algorithm::of(&baselines::SCATTER);
    pub const LISTED_SCATTER: Algorithm = Algorithm::of(&farthest_first::LISTED);
    pub const BROADCAST_ROUNDS: Algorithm = Algorithm::of(&broadcast::ROUNDS);
    pub const BROADCAST_URGENT: Algorithm = Algorithm::of(&broadcast::URGENT);
    pub const BROADCAST_CHILD_BY_CHILD: Algorithm = Algorithm::of(&broadcast::CHILD_BY_CHILD);
    pub const BROADCAST_CIRCULANT: Algorithm = Algorithm::of(&broadcast_circulant::CIRCULANT);
    pub const BROADCAST_ON_CUBES: Algorithm = Algorithm::of(&broadcast_hypercube::HYPERCUBE);
    pub const GOSSIP_FLOOD: Algorithm = Algorithm::of(&gossip::FLOOD);
    pub const GOSSIP_CIRCULATE: Algorithm = Algorithm::of(&gossip::CIRCULATE);
    pub const GOSSIP_DISSEMINATION: Algorithm = Algorithm::of(&gossip::DISSEMINATION);
    pub const GOSSIP_DIRECT: Algorithm = Algorithm::of(&gossip::DIRECT);
    pub const GOSSIP_ON_NETWORK: Algorithm = Algorithm::of(&gossip::ON_NETWORK);
    pub const EXCHANGE_ROUNDS: Algorithm = Algorithm::of(&exchange::ROUNDS);
    pub const EXCHANGE_SHIFTS: Algorithm = Algorithm::of(&exchange::SHIFTS);
    pub const EXCHANGE_BRUCK: Algorithm = Algorithm::of(&exchange_bruck::BRUCK);
    pub const EXCHANGE_TREE: Algorithm = Algorithm::of(&exchange::TREE);
    pub const EXCHANGE_AT_ONCE: Algorithm = Algorithm::of(&exchange::AT_ONCE);

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
        Algorithm::of(&ring_emulation::SCATTER),
        Algorithm::of(&ring_emulation::GOSSIP),
        Algorithm::of(&ring_emulation::EXCHANGE),
    ];
}
