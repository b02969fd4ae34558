//! Betters a dispatch sequence by small steps, in single flits, until none helps (ours).

use super::model::Ticks;
use super::tree::{Packet, Scatter, Schedule};

/// Links that packets are sent over in all trials together: some tenths of a second.
const MOST_SENDINGS: u64 = 20_000_000;

/// Takes what is better, first come, until nothing is, `bound` is met, or there have been enough
/// trials.
pub fn improve(scatter: &Scatter, bound: Ticks, best: &mut Schedule) {
    let mut trials = Trials {
        scatter,
        best,
        left: MOST_SENDINGS,
    };
    while trials.best.time > bound
        && (trials.moves() || trials.shifts() || trials.splits_and_joins())
    {}
}

struct Trials<'a> {
    scatter: &'a Scatter,
    best: &'a mut Schedule,
    left: u64,
}

impl Trials<'_> {
    /// Whether this sequence is better, and then is the best; `false` when there have been enough.
    fn is_better(&mut self, packets: &[Packet]) -> bool {
        let ways = packets
            .iter()
            .map(|packet| self.scatter.way(packet.message).len() as u64);
        let sendings: u64 = ways.sum();
        if sendings > self.left {
            self.left = 0;
            return false;
        }
        self.left -= sendings;
        let time = self.scatter.time(packets);
        let is_better = time < self.best.time;
        if is_better {
            self.best.time = time;
            self.best.packets = packets.to_vec();
        }
        is_better
    }

    /// Whether the best sequence is better after one of these changes, which are to be tried at
    /// all pairs of places.
    fn pairs(&mut self, change: impl Fn(&mut Vec<Packet>, usize, usize) -> bool) -> bool {
        let count = self.best.packets.len();
        for from in 0..count {
            for to in (0..count).filter(|&to| to != from) {
                if self.left == 0 {
                    return false;
                }
                let mut packets = self.best.packets.clone();
                if change(&mut packets, from, to) && self.is_better(&packets) {
                    return true;
                }
            }
        }
        false
    }

    /// A packet to another place.
    fn moves(&mut self) -> bool {
        self.pairs(|packets, from, to| {
            let packet = packets.remove(from);
            packets.insert(to, packet);
            true
        })
    }

    /// Flits from one packet of a message to another: one of them, or half.
    fn shifts(&mut self) -> bool {
        let shift = |half: bool| {
            move |packets: &mut Vec<Packet>, from: usize, to: usize| {
                let flits = if half { packets[from].flits / 2 } else { 1 };
                let is_sound = packets[from].message == packets[to].message
                    && (1..packets[from].flits).contains(&flits);
                if is_sound {
                    packets[from].flits -= flits;
                    packets[to].flits += flits;
                }
                is_sound
            }
        };
        self.pairs(shift(false)) || self.pairs(shift(true))
    }

    /// Half a packet, or one flit of it, to another place; or one packet of a message into another.
    fn splits_and_joins(&mut self) -> bool {
        let split = |half: bool| {
            move |packets: &mut Vec<Packet>, from: usize, to: usize| {
                let Packet { message, flits } = packets[from];
                let off = if half { flits / 2 } else { 1 };
                let is_sound = (1..flits).contains(&off);
                if is_sound {
                    packets[from].flits -= off;
                    packets.insert(
                        to,
                        Packet {
                            message,
                            flits: off,
                        },
                    );
                }
                is_sound
            }
        };
        let join = |packets: &mut Vec<Packet>, from: usize, to: usize| {
            let is_sound = packets[from].message == packets[to].message;
            if is_sound {
                packets[to].flits += packets[from].flits;
                packets.remove(from);
            }
            is_sound
        };
        self.pairs(split(true)) || self.pairs(split(false)) || self.pairs(join)
    }
}
