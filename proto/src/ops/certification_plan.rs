//! The schedule of a gather by Transmission-Certification, computed without simulation.

use std::sync::Arc;

use super::certification::sync_of;
use super::plan::{ControlPlan, Plan, finish, gathered};
use super::table::Operation;
use crate::items::Control;
use crate::schedule::certification::{self as rules, Certificate, Child, Slot, Sync};
use crate::schedule::pace::Passage;
use crate::{PeId, Tree};

/// Computes when all messages and control items cross.
pub(super) fn plan(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) -> Plan {
    let sync = sync_of(operation);
    let mut control = Vec::with_capacity(3 * tree.len());
    let certified = synchronise(tree, sync, &mut control);
    let certificates = certify(tree, sync, flits);
    for item in &mut control {
        if let Control::Certificate(certificate) = &mut item.item {
            *certificate = certificates[item.from.index()];
        }
    }
    let mut messages = Vec::new();
    // The step in which a PE's order reaches it, and its s.
    let mut ordered = vec![None; tree.len()];
    ordered[tree.root().index()] = Some((certified, 0));
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
            root if root == tree.root() => rules::root_orders(1, &children),
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
    finish(tree, operation, flits, messages, control)
}

/// Returns the children of `pe` that get an order.
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

/// Returns every PE's certificate.
fn certify(tree: &Tree, sync: Sync, flits: &[u64]) -> Vec<Certificate> {
    let mut certificates = vec![Certificate::default(); tree.len()];
    for &pe in tree.top_down().iter().rev() {
        let children = promises(tree, sync, &certificates, pe);
        let own = flits[pe.index()];
        certificates[pe.index()] = rules::certificate(sync, &Passage::LOCK_STEP, own, &children);
    }
    certificates
}

/// Adds the crossings of tokens and certificates, whose contents are set later; returns the step in
/// which P0 has the last certificate.
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
        // The token's walk: down an edge, through the subtree, and up again.
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
            for pe in tree.below_root() {
                let received = broadcast.received_step(pe);
                if let Some(parent) = tree.parent(pe) {
                    both_ways(parent, pe, received, 2 * broadcast.steps() + 1 - received);
                }
            }
            2 * broadcast.steps()
        }
        // A PE certifies in the step after its last child.
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
            certified[tree.root().index()] - 1
        }
    }
}
