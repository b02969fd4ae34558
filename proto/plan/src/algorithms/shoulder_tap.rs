//! Gather by Shoulder-Tap (paper 000, section III-A).

use flitcast_proto::Tree;
use flitcast_proto::items::Control;
use flitcast_proto::ops::PeRole;
use flitcast_proto::schedule::pace::Packets;
use flitcast_proto::schedule::shoulder_tap as rules;

use super::lock_step::{ControlPlan, LockStep, Steps, on_its_way};
use super::spec::{AlgorithmSpec, BASE, Offer, TreeRequirement, paced};
use crate::timing::Timing;

/// Gather by Shoulder-Tap; the tree must be a path.
pub(super) const SPEC: AlgorithmSpec = AlgorithmSpec {
    name: "shoulder-tap",
    offer: Offer::choice(paced!("shoulder-tap"), "Shoulder-Tap: paths only"),
    fits: TreeRequirement::Paths,
    gives_orders: true,
    role: PeRole::ShoulderTap,
    plan: LockStep::Messages(steps),
    ..BASE
};

fn steps(tree: &Tree, flits: &[u64]) -> Steps {
    assert!(tree.is_path(), "Shoulder-Tap works on paths");
    let mut messages = Vec::new();
    let mut control = Vec::new();
    let along = tree.top_down();
    let mut after = rules::FIRST_WAKEUP;
    for (position, pair) in (1..).zip(along.windows(2)) {
        let (from, pe) = (pair[0], pair[1]);
        let call = Control::Wakeup { after };
        control.push(ControlPlan::new(position, [from, pe], call));
        let own = Packets::of(flits[pe.index()], 1);
        let pace = Timing::LOCK_STEP.pace(tree, pe);
        if own.bytes > 0 {
            // All but the end PE forward the call first.
            let start = match tree.children(pe).is_empty() {
                true => after - 1,
                false => rules::start(&pace, after, own),
            };
            messages.push(on_its_way(tree, pe, own.bytes, position + start + 1));
        }
        after = rules::next_wakeup(&pace, after, own);
    }
    Steps { messages, control }
}
