//! The complete schedule of a round, computed without simulation: when every message and every
//! control item crosses. It takes O(n log n) time without recursion.
//!
//! It uses the same rules as the state machines; `tests/tests/plans.rs` compares it with the
//! simulator, item by item.

use std::sync::Arc;

use flitcast_proto::items::{Destination, Message};
use flitcast_proto::ops::Direction;
use flitcast_proto::{PeId, Tree};

use super::algorithm::Algorithm;
use super::certification::{self, order_on};
use super::farthest_first::one_by_one;
use super::gather_order::{GatherOrderError, child_ranks};
use super::lock_step::{LockStep, Steps, on_its_way};
use crate::on_links::{Sent, of_crossings};
use crate::timing::Timing;
use crate::trace::{Crossing, Item};

pub use super::certification::{StreamPlan, streams};
pub use super::farthest_first::{hops_of, plan_scatter_by_branch};
pub use super::lock_step::{ControlPlan, MessagePlan};

/// The schedule of a round.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tree: Arc<Tree>,
    pub operation: Algorithm,
    /// The nonnull messages, by PE.
    pub messages: Vec<MessagePlan>,
    /// All control items, by step, then by sender.
    pub control: Vec<ControlPlan>,
    /// The time of the operation: the last arrival, 0 if there is nothing to send.
    pub time_steps: u64,
    /// Lower bound on the steps of any schedule.
    pub lower_bound_steps: u64,
}

/// Plans an operation; a scatter farthest destination first.
///
/// # Panics
///
/// Panics if the algorithm is Shoulder-Tap and the tree is not a path, or if it is a baseline,
/// which [`crate::baseline`] plans.
pub fn plan(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) -> Plan {
    match operation.spec.plan {
        LockStep::Messages(steps) => Plan::of(tree, operation, flits, steps(tree, flits)),
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
        Some(sync) => {
            let steps = certification::steps(tree, sync, flits, &ranks);
            Plan::of(tree, operation, flits, steps)
        }
        // On a path there is one order.
        None => plan(tree, operation, flits),
    })
}

/// Plans a scatter in the given order of destinations: the nonnull messages, each once.
pub fn plan_scatter(tree: &Arc<Tree>, flits: &[u64], order: &[PeId]) -> Plan {
    let steps = Steps {
        messages: one_by_one(tree, flits, order),
        control: Vec::new(),
    };
    Plan::of(tree, Algorithm::FARTHEST_FIRST, flits, steps)
}

impl Plan {
    /// Creates the plan of a round in which messages and control items cross in these steps.
    fn of(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64], steps: Steps) -> Plan {
        let Steps {
            mut messages,
            mut control,
        } = steps;
        messages.sort_unstable_by_key(|message| message.pe);
        control.sort_unstable_by_key(|item| (item.step, item.from, item.to));
        Plan {
            tree: tree.clone(),
            operation,
            time_steps: messages.iter().map(|m| m.arrival_step).max().unwrap_or(0),
            messages,
            control,
            lower_bound_steps: operation.least_steps(tree, flits),
        }
    }

    /// Returns every crossing of a flit or control item as the simulator records them: by step,
    /// then by sender. Their number is the number of flits times the edges on their way.
    pub fn crossings(&self) -> Vec<Crossing> {
        let tree = &self.tree;
        let control = self.control.iter();
        let control =
            control.map(|it| Crossing::new(it.step, [it.from, it.to], Item::Control(it.item)));
        let mut all: Vec<Crossing> = control.collect();
        for plan in &self.messages {
            let mut way = tree.way_to(plan.pe);
            if self.operation.collective().direction() != Direction::Down {
                way.reverse();
            }
            let message = Message {
                id: plan.pe.into(),
                source: way[0],
                destination: Destination::One(way[way.len() - 1]),
                bytes: plan.flits,
            };
            for (edge, hop) in (0..).zip(way.windows(2)) {
                for index in 1..=plan.flits {
                    let step = plan.first_step + edge + index - 1;
                    let item = Item::Flit { message, index };
                    all.push(Crossing::new(step, [hop[0], hop[1]], item));
                }
            }
        }
        all.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
        all
    }

    /// Returns the number of crossings that [`Plan::crossings`] would return, at most `u64::MAX`.
    pub fn crossing_count(&self) -> u64 {
        let flits = self.messages.iter().map(|message| {
            let edges = u64::from(self.tree.depth(message.pe));
            message.flits.saturating_mul(edges)
        });
        flits.fold(self.control.len() as u64, u64::saturating_add)
    }

    /// Returns the crossings of the plan on links with these times. In a gather by certification, the
    /// order in which P0 receives the messages depends on them.
    pub fn on_links(&self, timing: &Timing) -> Vec<Sent> {
        let Some(sync) = self.operation.certification_sync() else {
            return of_crossings(&self.crossings());
        };
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
        arrives += u64::from(tree.height());
        for pe in order_on(tree, sync, &bytes, timing) {
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
