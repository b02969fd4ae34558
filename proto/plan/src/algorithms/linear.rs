//! Baseline: linear gather on a star.

use flitcast_proto::ops::{Collective, PeRole};

use super::algorithm::Algorithm;
use super::spec::{AlgorithmSpec, AllPorts, TreeRequirement, by_id, no_hops, no_peers};
use crate::schedule::bounds::gather_steps;

/// One PE after the other.
const SPEC: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Gather,
    name: "linear",
    sync: None,
    ways: &[],
    fits: TreeRequirement::Stars,
    gives_orders: false,
    all_ports: AllPorts::Never,
    peers: no_peers,
    parts: |_| 1,
    order: by_id,
    hops: no_hops,
    plan: None,
    bound: gather_steps,
    role: PeRole::Linear { window: 1 },
};

impl Algorithm {
    /// Gather on a star, one PE after the other.
    pub const LINEAR_GATHER: Algorithm = Algorithm::of(&SPEC);
}
