//! Checks of the schedules that a PE receives before the rounds.

use std::sync::Arc;

use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::{Assignment, Prepare};
use flitcast_proto::{PeId, Tree};

/// Returns the schedules of this PE, one for each tree, or a description of the first mismatch with the
/// assignment. A round may use fewer trees than were assigned.
pub fn checked(
    pe: PeId,
    assignment: &Assignment,
    prepare: Prepare,
) -> Result<Vec<PeSchedule>, &'static str> {
    let trees = assignment.lanes.iter().map(|lane| &lane.tree);
    let trees: Vec<&Arc<Tree>> = std::iter::once(&assignment.tree).chain(trees).collect();
    let schedules = std::iter::once(prepare.schedule).chain(prepare.lanes);
    let schedules: Vec<PeSchedule> = schedules.collect();
    if schedules.len() > trees.len() {
        return Err("for more trees than were assigned");
    }
    for (tree, schedule) in trees.iter().zip(&schedules) {
        check(pe, assignment, tree, schedule)?;
    }
    Ok(schedules)
}

/// Checks that a schedule fits this PE: the collective and the tree are those that were assigned; each
/// message starts or ends here, is nonnull, occurs once and is not left out; and the crossings are
/// possible, over connections that this PE has.
fn check(
    pe: PeId,
    assignment: &Assignment,
    tree: &Tree,
    schedule: &PeSchedule,
) -> Result<(), &'static str> {
    let collective = assignment.collective;
    let children = tree.children(pe).len();
    let is_known = |message: &Message| {
        let known = collective.address_of_part(tree, message.id, schedule.parts as usize);
        known == Some(message.address()) && message.bytes > 0
    };
    let is_unique = |messages: &[Message]| {
        let mut ids: Vec<_> = messages.iter().map(|message| message.id).collect();
        ids.sort_unstable();
        ids.is_sorted_by(|a, b| a < b)
    };
    let is_sent = |message: &Message| {
        let starts_here = message.source == pe && is_known(message);
        starts_here && assignment.has_receiver(message.address())
    };
    let is_received = |message: &Message| {
        let ends_here = message.is_for(pe) && is_known(message);
        ends_here && assignment.must_receive(message.id, pe)
    };
    let peers = assignment.peers.iter().map(|peer| peer.pe);
    let in_tree = tree.children(pe).iter().copied().chain(tree.parent(pe));
    let mut connected: Vec<PeId> = peers.chain(in_tree).collect();
    connected.sort_unstable();
    let has_counts = schedule.child_messages.len() == children
        && schedule.pace.below.len() == children
        && (schedule.child_ranks.is_empty() || schedule.child_ranks.len() == children);
    if schedule.collective != collective || !has_counts {
        return Err("for another collective or tree");
    }
    let has_messages = schedule.sends.iter().all(is_sent)
        && schedule.receives.iter().all(is_received)
        && is_unique(&schedule.sends)
        && is_unique(&schedule.receives);
    if !has_messages {
        return Err("with messages that neither start nor end here");
    }
    schedule.check_hops(pe, tree, &connected)
}
