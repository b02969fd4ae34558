//! The schedules of all PEs of a round.

use std::collections::BTreeMap;

use flitcast_proto::items::Message;
use flitcast_proto::ops::parts::bytes_of_parts;
use flitcast_proto::ops::{Collective, Direction, PeSchedule};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use super::algorithm::Algorithm;
use crate::timing::Timing;

/// Returns the largest number of edges that a message crosses one after the other by static schedules; 0 without
/// such schedules.
pub fn most_hops(schedules: &[PeSchedule]) -> u64 {
    let pes = (0..).map(PeId).zip(schedules);
    let sent =
        pes.flat_map(|(pe, schedule)| schedule.hops.iter().filter(move |hop| hop.from == pe));
    let mut sent: Vec<_> = sent.collect();
    sent.sort_by_key(|hop| hop.first_step);
    let mut crossed: BTreeMap<_, u64> = BTreeMap::new();
    for hop in sent {
        let before = crossed.get(&(hop.message, hop.from)).copied();
        let here = crossed.entry((hop.message, hop.to)).or_default();
        *here = (*here).max(before.unwrap_or(0) + 1);
    }
    crossed.into_values().max().unwrap_or(0)
}

impl Algorithm {
    /// Returns the schedules of all PEs by index. `bytes` is by delivery: 0 if a PE is absent or
    /// the message is left out there. An absent PE has no messages.
    pub fn schedules(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<PeSchedule> {
        let collective = self.collective();
        let (mut sends, mut receives) = messages_of_pes(tree, self, bytes, timing);
        let subtree_messages = tree.subtree_sums(|pe| match collective.direction() {
            Direction::Down | Direction::Across => receives[pe.index()].len() as u64,
            Direction::Up => sends[pe.index()].len() as u64,
        });
        let mut hops = vec![Vec::new(); tree.len()];
        for hop in self.hops(tree, bytes, timing) {
            hops[hop.from.index()].push(hop);
            hops[hop.to.index()].push(hop);
        }
        for (pe, sends) in tree.ids().zip(&mut sends) {
            // The order of the static schedule, if there is one.
            let mut firsts = BTreeMap::new();
            for hop in hops[pe.index()].iter().filter(|hop| hop.from == pe) {
                firsts.entry(hop.message).or_insert(hop.first_step);
            }
            sends.sort_by_key(|message| firsts.get(&message.id).copied());
        }
        let schedule = |pe: PeId| {
            let children = tree.children(pe).iter();
            let sends = std::mem::take(&mut sends[pe.index()]);
            PeSchedule {
                collective,
                role: self.role(),
                parts: self.parts(tree) as u32,
                has_tail: self.has_tail(),
                flit_bytes: timing.flit_bytes(),
                pace: timing.pace(tree, pe),
                packet_bytes: timing.packet_bytes_of(sends.iter().map(|sent| sent.id)),
                sends,
                receives: std::mem::take(&mut receives[pe.index()]),
                subtree_messages: subtree_messages[pe.index()],
                child_messages: children
                    .map(|child| subtree_messages[child.index()])
                    .collect(),
                child_ranks: Vec::new(),
                hops: std::mem::take(&mut hops[pe.index()]),
                all_ports: self.uses_all_ports(timing) && (self.is_static() || pe == tree.root()),
                in_turns: false,
                in_any_order: false,
                polls_before_sleep: false,
                compression: timing.compression,
            }
        };
        let mut schedules: Vec<PeSchedule> = tree.ids().map(schedule).collect();
        for schedule in &mut schedules {
            let one_port = !timing.is_lock_step() && !schedule.all_ports;
            let is_short = schedule.has_short_messages();
            schedule.polls_before_sleep = timing.polls && is_short;
            if self.is_static() {
                let has_turns = self.gives_orders() && timing.pacing == Pacing::Turns;
                schedule.in_turns = has_turns && one_port;
                let has_order = schedule.all_ports || schedule.in_turns;
                schedule.in_any_order = timing.shares_no_port && !has_order;
            } else if [Collective::Scatter, Collective::Broadcast].contains(&collective) {
                // All short messages, or a copy of one for each child, fit into the buffers of sockets at
                // once, and would fill the queues behind these. Longer ones wait for room in their socket.
                let shares_port = !timing.shares_no_port
                    && (collective == Collective::Scatter || schedule.child_messages.len() > 1);
                schedule.in_turns = one_port && shares_port && is_short;
            }
        }
        schedules
    }
}

/// Returns the messages that each PE sends, in the order of the algorithm, and those that it
/// receives, by id; both lists are by PE index.
fn messages_of_pes(
    tree: &Tree,
    operation: Algorithm,
    bytes: &[u64],
    timing: &Timing,
) -> (Vec<Vec<Message>>, Vec<Vec<Message>>) {
    let mut sends = vec![Vec::new(); tree.len()];
    let mut receives = vec![Vec::new(); tree.len()];
    let (collective, flit_bytes) = (operation.collective(), timing.flit_bytes());
    for id in operation.order(tree, bytes, timing) {
        let Some(address) = operation.address(tree, id) else {
            continue;
        };
        let length = collective.length(tree, address, bytes);
        let takes_it = |pe: &PeId| bytes[collective.delivery(tree, id, *pe).index()] > 0;
        let flits = operation.part_flits(tree, flits_of(length, flit_bytes));
        let parts = bytes_of_parts(&flits, operation.has_tail(), length, flit_bytes.into());
        let parts = parts.into_iter().enumerate();
        for (part, bytes) in parts.filter(|(_, bytes)| *bytes > 0) {
            let message = Message {
                id: collective.part(tree, id, part),
                source: address.source,
                destination: address.destination,
                bytes,
            };
            sends[address.source.index()].push(message);
            for pe in address.ends(tree).filter(takes_it) {
                receives[pe.index()].push(message);
            }
        }
    }
    for receives in &mut receives {
        receives.sort_by_key(|message: &Message| message.id);
    }
    (sends, receives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Model;
    use crate::tests::tree;

    #[test]
    fn hops_are_counted_along_the_way_of_each_message() {
        for (algorithm, hops) in [
            (Algorithm::GOSSIP_DIRECT, 1),
            (Algorithm::GOSSIP_DISSEMINATION, 3),
            (Algorithm::GOSSIP_CIRCULATE, 7),
            (Algorithm::GOSSIP_FLOOD, 2),
            (Algorithm::FARTHEST_FIRST, 0),
        ] {
            let tree = tree("star:8");
            let bytes = vec![1000; algorithm.collective().deliveries(&tree)];
            let timing = Timing::of(&Model::unit(tree.len()), 100, Pacing::Eager);
            let schedules = algorithm.schedules(&tree, &bytes, &timing);
            assert_eq!(most_hops(&schedules), hops, "{algorithm:?}");
        }
    }
}
