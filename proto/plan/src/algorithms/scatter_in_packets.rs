//! A scatter in packets that mix messages (`crate::packets::mixed`), as a static schedule.
//!
//! P0 sends the packets in a given order. A packet has flits for PEs on one path; each of them keeps its
//! own flits and forwards the rest as one smaller packet, when it has all of it. So each PE sends and
//! receives the packets that pass it in P0's order, and no packet waits for a later one.

use std::collections::BTreeMap;

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::{MessageId, Tree};

use super::timetable::hop;
use crate::packets::model::{LinkCost, Run, Timetable};

/// Returns the crossings of packets that P0 sends in this order, the flits of each message in order.
/// Steps are those of links without a set-up time.
pub fn hops(tree: &Tree, sequence: &[Run]) -> Vec<ScheduledHop> {
    let mut hops = Vec::new();
    let mut sent = vec![0; tree.len()];
    let mut timetable = Timetable::new(tree, LinkCost { setup: 0, flit: 1 });
    for run in sequence {
        let way = tree.way_to(run.pe);
        let parts: Vec<_> = run.parts().collect();
        for _ in 0..run.packets {
            let links = timetable.dispatch(run).links;
            for ((ends, depth), [begin, _]) in way.windows(2).zip(0..).zip(links) {
                let (mut packing, mut first_step) = (Packing::Begins, begin as u64 + 1);
                let parts = parts.iter();
                for part in parts.take_while(|part| tree.depth(part.pe) > depth) {
                    let flits = [sent[part.pe.index()], part.flits];
                    let hop = hop(part.pe.into(), [ends[0], ends[1]], flits, first_step);
                    hops.push(ScheduledHop { packing, ..hop });
                    packing = Packing::Joins;
                    first_step += part.flits;
                }
            }
            for part in &parts {
                sent[part.pe.index()] += part.flits;
            }
        }
    }
    hops.sort_by_key(|hop| hop.first_step);
    hops
}

/// Replaces the static schedules of a scatter by one in these packets.
pub fn set_packets(tree: &Tree, schedules: &mut [PeSchedule], sequence: &[Run]) {
    for schedule in schedules.iter_mut() {
        schedule.hops.clear();
    }
    let mut firsts: BTreeMap<MessageId, u64> = BTreeMap::new();
    for hop in hops(tree, sequence) {
        firsts.entry(hop.message).or_insert(hop.first_step);
        schedules[hop.from.index()].hops.push(hop);
        schedules[hop.to.index()].hops.push(hop);
    }
    let sends = &mut schedules[tree.root().index()].sends;
    sends.sort_by_key(|message| firsts.get(&message.id).copied());
}
