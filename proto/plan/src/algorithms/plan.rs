//! The complete schedule of a round, computed without simulation: when every message and every
//! control item crosses. It takes O(n log n) time without recursion.
//!
//! It uses the same rules as the state machines; `tests/tests/plans.rs` compares it with the
//! simulator, item by item.

use std::sync::Arc;

use flitcast_proto::{PeId, Tree};

use super::algorithm::Algorithm;
use super::certification::{order_on, plan_by_rank};
use super::gather_order::{GatherOrderError, child_ranks};
use super::lock_step::LockStep;
use super::steps::on_its_way;
use crate::on_links::{Sent, of_crossings};
use crate::timing::Timing;

pub use super::certification::{StreamPlan, streams};
pub use super::farthest_first::{plan_scatter, plan_scatter_by_branch};
pub use super::listed_scatter::hops_of;
pub use super::steps::{ControlPlan, MessagePlan, Plan};

/// Plans an operation; a scatter farthest destination first.
///
/// # Panics
///
/// Panics if the algorithm is Shoulder-Tap and the tree is not a path, or if it is a baseline,
/// which [`crate::baseline`] plans.
pub fn plan(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) -> Plan {
    match operation.spec.plan {
        LockStep::Messages(plan) => plan(tree, operation, flits),
        _ => panic!("{operation:?} has no schedule to plan"),
    }
}

/// Plans a gather by Shoulder-Tap or certification in which P0 takes the messages in the given order of
/// their sources: the nonnull messages, each once.
pub fn plan_gather(
    tree: &Arc<Tree>,
    operation: Algorithm,
    flits: &[u64],
    order: &[PeId],
) -> Result<Plan, GatherOrderError> {
    let ranks = child_ranks(tree, order)?;
    Ok(match operation.certification_sync() {
        Some(_) => plan_by_rank(tree, operation, flits, &ranks),
        // On a path there is one order.
        None => plan(tree, operation, flits),
    })
}

impl Plan {
    /// Returns the crossings of the plan on links with these times. In a gather by certification, the
    /// order in which P0 receives the messages depends on them.
    pub fn on_links(&self, timing: &Timing) -> Vec<Sent> {
        if self.operation.certification_sync().is_none() {
            return of_crossings(&self.crossings());
        }
        let mut flits = vec![0; self.tree.len()];
        for message in &self.messages {
            flits[message.pe.index()] = message.flits;
        }
        let bytes = flits.iter().map(|it| it * u64::from(timing.flit_bytes()));
        let bytes: Vec<u64> = bytes.collect();
        let tree = &self.tree;
        let depth = |pe: PeId| u64::from(tree.depth(pe));
        let mut messages = Vec::new();
        // In steps, without a gap at P0, after all control items. PEs of one depth send in this order.
        let mut arrives = self.control.last().map_or(0, |item| item.step);
        arrives += tree.pes().map(depth).max().unwrap_or(0);
        for pe in order_on(tree, self.operation, &bytes, timing) {
            let flits = flits[pe.index()];
            messages.push(on_its_way(tree, pe, flits, arrives + 2 - depth(pe)));
            arrives += flits;
        }
        let plan = Plan {
            messages,
            ..self.clone()
        };
        of_crossings(&plan.crossings())
    }
}
