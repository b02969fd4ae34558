//! Baseline: linear gather on a star.

use flitcast_proto::ops::PeRole;

use super::algorithm::Algorithm;
use super::spec::{AlgorithmSpec, GATHER, TreeRequirement};

/// One PE after the other.
const SPEC: AlgorithmSpec = AlgorithmSpec {
    name: "linear",
    fits: TreeRequirement::Stars,
    role: PeRole::Linear { window: 1 },
    ..GATHER
};

impl Algorithm {
    /// Gather on a star, one PE after the other.
    pub const LINEAR_GATHER: Algorithm = Algorithm::of(&SPEC);
}
