//! A scatter in packets that mix messages (`crate::packets::mixed`), as a static schedule.
//!
//! P0 sends the packets in a given order. A packet has flits for PEs on one path; each of them keeps its
//! own flits and forwards the rest as one smaller packet, when it has all of it. So each PE sends and
//! receives the packets that pass it in P0's order, and no packet waits for a later one.

use std::collections::BTreeMap;

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::{MessageId, PeId, Tree};

use super::timetable::hop;
use crate::packets::model::{Run, way};

/// Returns the crossings of packets that P0 sends in this order, the flits of each message in order.
/// Steps are those of links without a set-up time.
pub fn hops(tree: &Tree, sequence: &[Run]) -> Vec<ScheduledHop> {
    let mut hops = Vec::new();
    let mut sent = vec![0; tree.len()];
    // The first step in which each PE's send port is free.
    let mut free = vec![1; tree.len()];
    for run in sequence {
        let way = way(tree, run.pe);
        let parts: Vec<_> = run.parts().collect();
        for _ in 0..run.packets {
            let mut here = 1;
            for (depth, sender) in way.iter().enumerate() {
                let to = way.get(depth + 1).map_or(run.pe, |next| PeId(*next));
                let free = &mut free[*sender as usize];
                let mut first_step = here.max(*free);
                let parts = parts.iter();
                let forwarded = parts.take_while(|part| tree.depth(part.pe) as usize > depth);
                let mut packing = Packing::Begins;
                for part in forwarded {
                    let flits = [sent[part.pe.index()], part.flits];
                    let hop = hop(part.pe.into(), [PeId(*sender), to], flits, first_step);
                    hops.push(ScheduledHop { packing, ..hop });
                    packing = Packing::Joins;
                    first_step += part.flits;
                }
                (*free, here) = (first_step, first_step);
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
