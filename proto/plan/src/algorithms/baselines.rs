//! Baselines: scatter and gather in which each PE combines the messages of its subtree, and a gather
//! from one PE after the other.

use flitcast_proto::ops::{PeRole, largest_first};
use flitcast_proto::{MessageId, PeId, Tree};

use super::farthest_first;
use super::lock_step::LockStep;
use super::spec::{AlgorithmSpec, AllPorts, BASE, Offer, TreeRequirement};
use crate::timing::Timing;

/// Gather on a star, one PE after the other.
pub(super) const LINEAR: AlgorithmSpec = AlgorithmSpec {
    name: "linear",
    fits: TreeRequirement::Stars,
    role: PeRole::Linear { window: 1 },
    ..BASE
};

/// Gather in which each PE holds all messages of its subtree before it forwards them.
pub(super) const COMBINING: AlgorithmSpec = AlgorithmSpec {
    name: "combining",
    ..BASE
};

/// Scatter in which each PE holds all messages for its subtree before it forwards them.
pub(super) const SCATTER: AlgorithmSpec = AlgorithmSpec {
    name: "combining",
    offer: Offer::INTERNAL,
    all_ports: AllPorts::Never,
    role: PeRole::Combining,
    order: block_order,
    plan: LockStep::None,
    ..farthest_first::SPEC
};

/// Returns the order in which a combining scatter sends the messages: block by block.
fn block_order(tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let blocks = largest_first(tree, tree.root());
    let place = |pe: PeId| {
        let block = tree.child_toward(tree.root(), pe);
        blocks.iter().position(|&child| Some(child) == block)
    };
    let pes = tree.below_root();
    let mut order: Vec<PeId> = pes.filter(|pe| bytes[pe.index()] > 0).collect();
    order.sort_by_cached_key(|&pe| (place(pe), pe));
    order.into_iter().map(MessageId::from).collect()
}
