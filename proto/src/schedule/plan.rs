//! The whole schedule of a round, worked out without running anything: when every
//! message and every control item crosses. O(n log n); nothing recurses.
//!
//! It reads the same rules as the state machines; `tests/tests/plans.rs` holds it
//! against the simulator, item by item.

use std::sync::Arc;

use super::certification::{self as rules, Certificate, Child, Slot, Sync};
use super::pace::{Passage, Timing};
use super::{bounds, scatter, shoulder_tap};
use crate::pe::{Control, Message, Operation};
use crate::trace::{Crossing, Item};
use crate::{PeId, Tree};

/// When a message crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePlan {
    /// M_i's PE.
    pub pe: PeId,
    /// L_i.
    pub flits: u64,
    /// The step in which its first flit crosses its first link.
    pub first_step: u64,
    /// The step in which its last flit reaches its destination.
    pub arrival_step: u64,
}

/// When a control item crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPlan {
    /// The step.
    pub step: u64,
    /// Its sender.
    pub from: PeId,
    /// Its receiver.
    pub to: PeId,
    /// What it is.
    pub item: Control,
}

/// The schedule of a round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// On which tree.
    pub tree: Arc<Tree>,
    /// Which operation.
    pub operation: Operation,
    /// The nonnull messages, by PE.
    pub messages: Vec<MessagePlan>,
    /// All control items, by step, then by sender.
    pub control: Vec<ControlPlan>,
    /// The time of the operation: the last arrival, 0 if there is nothing to send.
    pub time_steps: u64,
    /// No schedule takes less: see [`bounds`].
    pub lower_bound_steps: u64,
}

/// Plans a scatter in the given order of destinations: the nonnull messages, each
/// once.
pub fn plan_scatter(tree: &Arc<Tree>, flits: &[u64], order: &[PeId]) -> Plan {
    let arrivals = scatter::arrival_steps(tree, flits, order);
    let messages = order.iter().zip(arrivals).map(|(&pe, arrival_step)| {
        let flits = flits[pe.index()];
        MessagePlan {
            pe,
            flits,
            // All flits but the first, and all edges but the first, come after it.
            first_step: arrival_step + 2 - flits - u64::from(tree.depth(pe)),
            arrival_step,
        }
    });
    finish(
        tree,
        Operation::Scatter,
        flits,
        messages.collect(),
        Vec::new(),
    )
}

/// Plans an operation; a scatter farthest destination first.
///
/// # Panics
///
/// If Shoulder-Tap is asked for on a tree that is no path, or what users know from
/// elsewhere: [`crate::baseline`] works that out.
pub fn plan(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) -> Plan {
    match operation {
        Operation::Scatter => plan_scatter(tree, flits, &scatter::farthest_first(tree, flits)),
        Operation::ShoulderTap => plan_shoulder_tap(tree, flits),
        Operation::Certification(sync) => plan_certification(tree, sync, flits),
        baseline => panic!("{baseline:?} has no schedule to plan"),
    }
}

fn finish(
    tree: &Arc<Tree>,
    operation: Operation,
    flits: &[u64],
    mut messages: Vec<MessagePlan>,
    mut control: Vec<ControlPlan>,
) -> Plan {
    messages.sort_unstable_by_key(|message| message.pe);
    control.sort_unstable_by_key(|item| (item.step, item.from, item.to));
    let lower_bound_steps = match operation {
        Operation::Scatter => scatter::optimal_steps(tree, flits),
        _ => bounds::gather_steps(tree, flits),
    };
    Plan {
        tree: tree.clone(),
        operation,
        time_steps: messages.iter().map(|m| m.arrival_step).max().unwrap_or(0),
        messages,
        control,
        lower_bound_steps,
    }
}

fn plan_shoulder_tap(tree: &Arc<Tree>, flits: &[u64]) -> Plan {
    assert!(tree.is_path(), "Shoulder-Tap works on paths");
    let mut messages = Vec::new();
    let mut control = Vec::new();
    let along = tree.top_down();
    let mut after = shoulder_tap::FIRST_WAKEUP;
    for (position, pair) in (1..).zip(along.windows(2)) {
        let (from, pe) = (pair[0], pair[1]);
        let item = Control::Wakeup { after };
        control.push(ControlPlan {
            step: position,
            from,
            to: pe,
            item,
        });
        let own = flits[pe.index()];
        let pace = Timing::LOCK_STEP.pace(tree, pe);
        if own > 0 {
            // All but the end PE pass the call on first.
            let start = match tree.children(pe).is_empty() {
                true => after - 1,
                false => shoulder_tap::start(&pace, after, own),
            };
            messages.push(gathered(tree, pe, own, position + start + 1));
        }
        after = shoulder_tap::next_wakeup(&pace, after, own);
    }
    finish(tree, Operation::ShoulderTap, flits, messages, control)
}

/// M_i on its way to P0.
fn gathered(tree: &Tree, pe: PeId, flits: u64, first_step: u64) -> MessagePlan {
    let arrival_step = first_step + flits - 1 + u64::from(tree.depth(pe)) - 1;
    MessagePlan {
        pe,
        flits,
        first_step,
        arrival_step,
    }
}

fn plan_certification(tree: &Arc<Tree>, sync: Sync, flits: &[u64]) -> Plan {
    let mut control = Vec::with_capacity(3 * tree.len());
    let certified = synchronise(tree, sync, &mut control);
    let certificates = certify(tree, sync, flits);
    for item in &mut control {
        if let Control::Certificate(certificate) = &mut item.item {
            *certificate = certificates[item.from.index()];
        }
    }
    let mut messages = Vec::new();
    // When a PE's order reaches it, and its s.
    let mut ordered = vec![None; tree.len()];
    ordered[0] = Some((certified, 0));
    for &pe in tree.top_down() {
        let Some((at, after)) = ordered[pe.index()] else {
            continue;
        };
        let own = flits[pe.index()];
        if own > 0 {
            messages.push(gathered(tree, pe, own, at + after));
        }
        let children = promises(tree, sync, &certificates, pe);
        let slots = match pe {
            PeId::ROOT => rules::root_orders(1, &children),
            _ => rules::orders(sync, &Passage::LOCK_STEP, after, own, &children),
        };
        for slot in slots {
            let Slot { pe: to, after, .. } = slot;
            let step = at + slot.ordered;
            let item = Control::Order { after };
            control.push(ControlPlan {
                step,
                from: pe,
                to,
                item,
            });
            ordered[to.index()] = Some((step, after));
        }
    }
    finish(
        tree,
        Operation::Certification(sync),
        flits,
        messages,
        control,
    )
}

/// The children of `pe` that get an order.
fn promises(tree: &Tree, sync: Sync, certificates: &[Certificate], pe: PeId) -> Vec<Child> {
    let children = match sync {
        Sync::Serial | Sync::Parallel => tree.children(pe),
        Sync::Pipelined => tree.token_broadcast().order(pe),
    };
    rules::places(
        sync,
        1,
        children
            .iter()
            .map(|&child| (child, 1, certificates[child.index()])),
    )
}

/// Every PE's certificate.
fn certify(tree: &Tree, sync: Sync, flits: &[u64]) -> Vec<Certificate> {
    let mut certificates = vec![Certificate::default(); tree.len()];
    for &pe in tree.top_down().iter().rev() {
        let children = promises(tree, sync, &certificates, pe);
        let own = flits[pe.index()];
        certificates[pe.index()] = rules::certificate(sync, &Passage::LOCK_STEP, own, &children);
    }
    certificates
}

/// When tokens and certificates cross (what is in a certificate is filled in
/// later); the step in which P0 has the last one.
fn synchronise(tree: &Tree, sync: Sync, control: &mut Vec<ControlPlan>) -> u64 {
    let unknown = Control::Certificate(Certificate::default());
    let mut both_ways = |from: PeId, to: PeId, down: u64, up: u64| {
        control.push(ControlPlan {
            step: down,
            from,
            to,
            item: Control::Token,
        });
        control.push(ControlPlan {
            step: up,
            from: to,
            to: from,
            item: unknown,
        });
    };
    match sync {
        // The token's walk: down an edge, all that is below, up again.
        Sync::Serial => {
            let edges_below = tree.subtree_sums(|_| 1);
            let mut entered = vec![0; tree.len()];
            for &pe in tree.top_down() {
                let mut at = entered[pe.index()];
                for &child in tree.children(pe) {
                    let walk = 2 * edges_below[child.index()];
                    entered[child.index()] = at + 1;
                    both_ways(pe, child, at + 1, at + walk);
                    at += walk;
                }
            }
            2 * (tree.count() as u64 - 1)
        }
        Sync::Pipelined => {
            let broadcast = tree.token_broadcast();
            for pe in tree.pes().skip(1) {
                let received = broadcast.received_step(pe);
                if let Some(parent) = tree.parent(pe) {
                    both_ways(parent, pe, received, 2 * broadcast.steps() + 1 - received);
                }
            }
            2 * broadcast.steps()
        }
        // A PE certifies in the step after its last child did.
        Sync::Parallel => {
            let mut certified = vec![0; tree.len()];
            for &pe in tree.top_down().iter().rev() {
                let below = tree
                    .children(pe)
                    .iter()
                    .map(|child| certified[child.index()]);
                let depth = u64::from(tree.depth(pe));
                certified[pe.index()] = below.max().unwrap_or(depth) + 1;
                if let Some(parent) = tree.parent(pe) {
                    both_ways(parent, pe, depth, certified[pe.index()]);
                }
            }
            certified[0] - 1
        }
    }
}

impl Plan {
    /// Every flit and control item, as the simulator records them: by step, then by
    /// sender. As many as there are flits times edges on their way.
    pub fn crossings(&self) -> Vec<Crossing> {
        let tree = &self.tree;
        let mut all: Vec<Crossing> = Vec::new();
        for &ControlPlan {
            step,
            from,
            to,
            item,
        } in &self.control
        {
            all.push(Crossing {
                step,
                from,
                to,
                item: Item::Control(item),
            });
        }
        for plan in &self.messages {
            let mut way = vec![plan.pe];
            while let Some(parent) = way.last().and_then(|&pe| tree.parent(pe)) {
                way.push(parent);
            }
            if self.operation.is_scatter() {
                way.reverse();
            }
            let (source, destination) = (way[0], way[way.len() - 1]);
            let message = Message {
                source,
                destination,
                bytes: plan.flits,
            };
            for (edge, hop) in (0..).zip(way.windows(2)) {
                for index in 1..=plan.flits {
                    all.push(Crossing {
                        step: plan.first_step + edge + index - 1,
                        from: hop[0],
                        to: hop[1],
                        item: Item::Flit { message, index },
                    });
                }
            }
        }
        all.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
        all
    }

    /// How many crossings [`Plan::crossings`] would give; `u64::MAX` if that cannot be
    /// counted.
    pub fn crossing_count(&self) -> u64 {
        let flits = self.messages.iter().map(|message| {
            let edges = u64::from(self.tree.depth(message.pe));
            message.flits.saturating_mul(edges)
        });
        flits.fold(self.control.len() as u64, u64::saturating_add)
    }
}
