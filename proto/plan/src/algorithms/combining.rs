//! Baselines: scatter and gather in which each PE combines the messages of its subtree.

use flitcast_proto::ops::{Collective, PeRole, largest_first};
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::spec::{AlgorithmSpec, AllPorts, TreeRequirement, by_id, no_hops, no_peers};
use crate::schedule::bounds::gather_steps;
use crate::schedule::scatter as rules;
use crate::timing::Timing;

const GATHER: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Gather,
    name: "combining",
    sync: None,
    ways: &[],
    fits: TreeRequirement::Trees,
    gives_orders: false,
    all_ports: AllPorts::Never,
    peers: no_peers,
    parts: |_| 1,
    order: by_id,
    hops: no_hops,
    plan: None,
    bound: gather_steps,
    role: PeRole::Combining,
};

const SCATTER: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Scatter,
    name: "combining",
    sync: None,
    ways: &[],
    fits: TreeRequirement::Trees,
    gives_orders: false,
    all_ports: AllPorts::Never,
    peers: no_peers,
    parts: |_| 1,
    order: block_order,
    hops: no_hops,
    plan: None,
    bound: rules::optimal_steps,
    role: PeRole::Combining,
};

impl Algorithm {
    /// Gather in which each PE holds all messages of its subtree before it forwards them.
    pub const COMBINING_GATHER: Algorithm = Algorithm::of(&GATHER);

    /// Scatter in which each PE holds all messages for its subtree before it forwards them.
    pub const COMBINING_SCATTER: Algorithm = Algorithm::of(&SCATTER);
}

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
