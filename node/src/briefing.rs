//! Checks that the schedule of the rounds fits the PE's assignment.

use std::sync::Arc;

use flitcast_proto::items::{Message, ScheduledHop};
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::{Assignment, Prepare};
use flitcast_proto::{PeId, Tree};

/// Returns the schedules of this PE, one for each assigned tree, or `None` if they do not fit the
/// assignment.
pub fn for_all(pe: PeId, assignment: &Assignment, prepare: Prepare) -> Option<Vec<PeSchedule>> {
    let trees = assignment.lanes.iter().map(|lane| &lane.tree);
    let trees: Vec<&Arc<Tree>> = std::iter::once(&assignment.tree).chain(trees).collect();
    let briefs = std::iter::once(prepare.brief).chain(prepare.lanes);
    let briefs: Vec<PeSchedule> = briefs.collect();
    let mut each = trees.iter().zip(&briefs);
    let are_for = each.all(|(tree, brief)| is_for(pe, assignment, tree, brief));
    // A round may use fewer trees than were assigned.
    (are_for && briefs.len() <= trees.len()).then_some(briefs)
}

/// Returns whether a schedule fits this PE: the collective and the tree are those that were assigned;
/// each message starts or ends here, is nonnull, occurs once and is not left out; and all crossings of
/// a static schedule use connections of this PE.
fn is_for(pe: PeId, assignment: &Assignment, tree: &Tree, brief: &PeSchedule) -> bool {
    let collective = assignment.collective;
    let children = tree.children(pe).len();
    let is_known = |message: &Message| {
        let known = collective.address_of_part(tree, message.id, brief.parts as usize);
        known == Some(message.address()) && message.bytes > 0
    };
    let come_once = |messages: &[Message]| {
        let mut ids: Vec<_> = messages.iter().map(|message| message.id).collect();
        ids.sort_unstable();
        ids.is_sorted_by(|a, b| a < b)
    };
    let is_sent = |message: &Message| {
        let starts_here = message.source == pe && is_known(message);
        starts_here && assignment.owes_anybody(message.address())
    };
    let is_taken = |message: &Message| {
        let ends_here = message.is_for(pe) && is_known(message);
        ends_here && assignment.owes(message.id, pe)
    };
    let peers = assignment.peers.iter().map(|peer| peer.pe);
    let in_tree = tree.children(pe).iter().copied().chain(tree.parent(pe));
    let connected: Vec<PeId> = peers.chain(in_tree).collect();
    let is_edge = |hop: &ScheduledHop| {
        let is_own = hop.from == pe || hop.to == pe;
        is_own && (connected.contains(&hop.from) || connected.contains(&hop.to))
    };
    brief.collective == collective
        && brief.child_messages.len() == children
        && brief.pace.below.len() == children
        && (brief.child_ranks.is_empty() || brief.child_ranks.len() == children)
        && brief.sends.iter().all(is_sent)
        && brief.receives.iter().all(is_taken)
        && come_once(&brief.sends)
        && come_once(&brief.receives)
        && brief.hops.iter().all(is_edge)
}
