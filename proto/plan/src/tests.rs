//! Trees, messages and predictions for unit tests.

use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::tree::TreeSpec;

use crate::algorithms::Algorithm;
use crate::cost::Model;
use crate::predict::{Prediction, predict};
use crate::timing::Timing;

/// Returns a tree by its name.
pub fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().expect("it is a tree");
    Arc::new(spec.build().expect("it is a tree"))
}

/// Returns a tree of one of these shapes, cyclically by `seed`.
pub fn shaped(shapes: &[&str], pes: u64, seed: u64) -> Arc<Tree> {
    tree(&match shapes[seed as usize % shapes.len()] {
        "kary" => format!("kary:2:{pes}"),
        "random" => format!("random:{pes}:{seed}"),
        shape => format!("{shape}:{pes}"),
    })
}

/// Returns the lengths of messages by PE; P0 has none.
pub fn lengths(pes: u64, of: impl FnMut(u64) -> u64) -> Vec<u64> {
    let mut lengths: Vec<u64> = (0..pes).map(of).collect();
    lengths[0] = 0;
    lengths
}

/// Returns P0's 0 and these lengths.
pub fn with_root(lengths: &[u64]) -> Vec<u64> {
    [0].iter().chain(lengths).copied().collect()
}

/// Predicts a round of an algorithm.
pub fn predicted(
    operation: Algorithm,
    tree: &Arc<Tree>,
    bytes: &[u64],
    model: &Model,
    timing: &Timing,
) -> Prediction {
    let schedules = operation.schedules(tree, bytes, timing);
    predict(tree, &schedules, model).expect("a schedule")
}

/// Returns when each message arrives; 0 for a null one.
pub fn arrivals(prediction: &Prediction) -> Vec<u64> {
    let arrivals = prediction.arrivals_ns.iter();
    arrivals.map(|arrival| arrival.unwrap_or(0)).collect()
}
