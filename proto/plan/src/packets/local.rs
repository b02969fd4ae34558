//! Local search: improves a dispatch sequence by small changes, down to single flits, until none helps
//! (not in the paper).

use super::model::Ticks;
use super::tree::{Packet, Scatter, Schedule};

/// Limit of link crossings in all trials: some tenths of a second.
const MOST_SENDINGS: u64 = 20_000_000;

/// Accepts each improvement found, until there is none, `bound` is reached, or the limit of trials is.
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
    /// Makes this sequence the best if it is better, and returns whether it is.
    fn is_better(&mut self, packets: Vec<Packet>) -> bool {
        let messages = packets.iter().map(|it| &self.scatter.messages[it.message]);
        let sendings = messages.map(|message| message.hops).sum();
        self.left = self.left.saturating_sub(sendings);
        let time = self.scatter.time(&packets);
        let is_better = time < self.best.time;
        if is_better {
            *self.best = Schedule { packets, time };
        }
        is_better
    }

    /// Tries a change at all pairs of places, and returns whether the best sequence has improved.
    fn pairs(&mut self, change: impl Fn(&[Packet], usize, usize) -> Option<Vec<Packet>>) -> bool {
        let count = self.best.packets.len();
        for from in 0..count {
            for to in (0..count).filter(|&to| to != from) {
                if self.left == 0 {
                    return false;
                }
                self.left -= 1;
                let changed = change(&self.best.packets, from, to);
                if changed.is_some_and(|packets| self.is_better(packets)) {
                    return true;
                }
            }
        }
        false
    }

    /// Moves a packet to another place.
    fn moves(&mut self) -> bool {
        self.pairs(|packets, from, to| {
            let mut packets = packets.to_vec();
            let packet = packets.remove(from);
            packets.insert(to, packet);
            Some(packets)
        })
    }

    /// Moves flits from one packet of a message to another: one of them, or half.
    fn shifts(&mut self) -> bool {
        let shift = |half| {
            move |packets: &[Packet], from: usize, to: usize| {
                let is_one_message = packets[from].message == packets[to].message;
                let flits = part(packets[from], half).filter(|_| is_one_message)?;
                let mut packets = packets.to_vec();
                packets[from].flits -= flits;
                packets[to].flits += flits;
                Some(packets)
            }
        };
        self.pairs(shift(false)) || self.pairs(shift(true))
    }

    /// Moves one flit of a packet, or half of it, to another place; or joins two packets of a message.
    fn splits_and_joins(&mut self) -> bool {
        let split = |half| {
            move |packets: &[Packet], from: usize, to: usize| {
                let message = packets[from].message;
                let flits = part(packets[from], half)?;
                let mut packets = packets.to_vec();
                packets[from].flits -= flits;
                // After a later packet, so that it may be the last as well as the first.
                let place = if to > from { to + 1 } else { to };
                packets.insert(place, Packet { message, flits });
                Some(packets)
            }
        };
        let join = |packets: &[Packet], from: usize, to: usize| {
            let is_one_message = packets[from].message == packets[to].message;
            is_one_message.then(|| {
                let mut packets = packets.to_vec();
                packets[to].flits += packets[from].flits;
                packets.remove(from);
                packets
            })
        };
        self.pairs(split(true)) || self.pairs(split(false)) || self.pairs(join)
    }
}

/// Returns the number of flits that can be taken from a packet without emptying it: half, or one.
fn part(packet: Packet, half: bool) -> Option<u64> {
    let flits = if half { packet.flits / 2 } else { 1 };
    (1..packet.flits).contains(&flits).then_some(flits)
}
