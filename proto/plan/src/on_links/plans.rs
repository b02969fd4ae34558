//! The crossings of plans of each kind.

use std::collections::BTreeMap;

use flitcast_proto::PeId;
use flitcast_proto::items::{Packing, ScheduledHop};

use super::{Load, Sent};
use crate::baseline::Transfer;
use crate::gossip::{Gossip, Piece};
use crate::trace::{Crossing, Item};

/// Returns the crossings of a plan that lists flits and control items step by step.
pub fn of_crossings(crossings: &[Crossing]) -> Vec<Sent> {
    let all = crossings.iter().map(|crossing| {
        let load = match crossing.item {
            Item::Control(_) => Load::Control,
            Item::Flit { message, index } => Load::Flits {
                flits: vec![Piece {
                    message: message.id,
                    offset: index - 1,
                    flits: 1,
                }],
                is_whole: false,
            },
        };
        Sent::new(crossing.step, [crossing.from, crossing.to], load)
    });
    all.collect()
}

/// Returns the crossings of a static schedule. With `are_whole`, its packets are whole, whatever the
/// links.
pub fn of_hops(hops: &[ScheduledHop], are_whole: bool) -> Vec<Sent> {
    let mut all: Vec<Sent> = Vec::new();
    // The last packet of each sender to each receiver.
    let mut last: BTreeMap<[PeId; 2], usize> = BTreeMap::new();
    for hop in hops {
        let ends = [hop.from, hop.to];
        let flits = |place, flits| Piece {
            message: hop.message,
            offset: hop.offset + place,
            flits,
        };
        let packet = |place, number| {
            let load = Load::Flits {
                flits: vec![flits(place, number)],
                is_whole: are_whole,
            };
            Sent::new(hop.first_step + place * hop.every, ends, load)
        };
        let joined = last.get(&ends).filter(|_| hop.packing == Packing::Joins);
        match (hop.packing, joined.map(|place| &mut all[*place].load)) {
            (_, Some(Load::Flits { flits: joined, .. })) => joined.push(flits(0, hop.flits)),
            (Packing::Flits, _) => all.extend((0..hop.flits).map(|place| packet(place, 1))),
            _ => {
                last.insert(ends, all.len());
                all.push(packet(0, hop.flits));
            }
        }
    }
    all
}

/// Returns the packets of a gossip on a network; each goes from its first PE directly to its last.
/// With `are_whole`, a packet leaves when all of it is there, whatever the links.
pub fn of_gossip(gossip: &Gossip, are_whole: bool) -> Vec<Sent> {
    let steps = (1..).zip(gossip.steps());
    let all = steps.flat_map(|(step, packets)| {
        packets.packets.into_iter().map(move |packet| {
            let pieces = gossip.blocks.pieces(packet.class, &packet.flits);
            let load = Load::Flits {
                flits: pieces.collect(),
                is_whole: are_whole,
            };
            Sent::new(step, [packet.from, packet.to], load)
        })
    });
    all.collect()
}

/// Returns the crossings of a baseline, whose ends are neighbours. A step here is the number of
/// transfers that one waits for in succession.
pub fn of_transfers(transfers: &[Transfer]) -> Vec<Sent> {
    let mut all: Vec<Sent> = Vec::new();
    for transfer in transfers {
        let before = transfer.after.iter().map(|before| all[*before].step);
        all.push(Sent {
            step: 1 + before.max().unwrap_or(0),
            from: transfer.from,
            to: transfer.to,
            load: match transfer.control {
                true => Load::Control,
                false => Load::Count(transfer.flits),
            },
            after: transfer.after.clone(),
        });
    }
    all
}
