//! Messages whose destinations are on one path from P0: the best schedule, whatever their lengths.
//!
//! Farthest destination first is optimal there (paper 003, Theorem 2). The last packet of M_i is
//! complete at P_i when all packets up to it have left and the largest of them has crossed the other
//! links, so that only the largest packet so far matters, message by message (not in the paper).

use flitcast_proto::Tree;

use super::caps::{Cap, Caps, caps};
use super::model::{LinkCost, Message, Ticks, even};
use super::{Method, PacketPlan};

/// Limit of computed times, each of a message with a cap: a second.
const MOST_TIMES: usize = 100_000_000;
/// Limit of caps of a message; omitting further ones has almost no effect.
const MOST_CAPS: usize = 1 << 18;

/// Returns whether all these messages, farthest first, are on one path from P0.
pub fn is_one_way(tree: &Tree, messages: &[Message]) -> bool {
    let farthest = messages.first().map(|message| message.pe);
    let mut above = farthest.into_iter().flat_map(|pe| tree.up_from(pe));
    messages
        .iter()
        .all(|message| above.any(|pe| pe == message.pe))
}

/// Returns the best schedule of messages on one path, farthest first. The bound is the time, unless there
/// are too many caps to try them all.
pub fn plan(cost: LinkCost, messages: &[Message]) -> PacketPlan {
    let at_most = (MOST_TIMES / messages.len().max(1)).min(MOST_CAPS);
    let Caps { tried, are_all } = caps(messages.iter().map(|message| message.flits), at_most);
    let (time, better) = least_time(cost, messages, &tried, |cap| cap.least);
    let bound = match are_all {
        true => time,
        false => least_time(cost, messages, &tried, |cap| cap.most).0,
    };
    let mut sequence = Vec::new();
    let mut chosen = 0;
    for (message, better) in messages.iter().zip(better.iter().rev()) {
        // A nearer message has a cap no smaller, and this is the best of those.
        chosen = better.first_from(chosen);
        let packets = message.flits.div_ceil(tried[chosen].least);
        sequence.extend(even(message.pe, message.flits, packets));
    }
    PacketPlan {
        sequence,
        time,
        bound,
        method: Method::OneWay,
    }
}

/// The caps of one message that are better than all larger ones, one bit for each.
struct Better(Vec<u64>);

impl Better {
    fn insert(&mut self, cap: usize) {
        self.0[cap / 64] |= 1 << (cap % 64);
    }

    /// Returns the first of them from this one on; the largest cap is always one.
    fn first_from(&self, cap: usize) -> usize {
        let is_in = |cap: &usize| self.0[cap / 64] & (1 << (cap % 64)) != 0;
        (cap..self.0.len() * 64).find(is_in).unwrap_or(cap)
    }
}

/// Returns the least time, if the packets of a message are counted with the cap that `counted` returns,
/// and the useful caps of each message from the nearest on.
fn least_time(
    cost: LinkCost,
    messages: &[Message],
    caps: &[Cap],
    counted: impl Fn(&Cap) -> u64,
) -> (Ticks, Vec<Better>) {
    // By cap: the time of the messages nearer than this one, with caps no smaller.
    let mut nearer = vec![0; caps.len()];
    let of_message = |message: &Message| {
        let mut better = Better(vec![0; caps.len().div_ceil(64)]);
        let mut least = Ticks::MAX;
        for (place, cap) in caps.iter().enumerate().rev() {
            let behind = cost.packet(cap.least) * Ticks::from(message.hops - 1);
            let dispatch = cost.capped(message.flits, counted(cap));
            let time = dispatch + behind.max(nearer[place]);
            if time < least {
                least = time;
                better.insert(place);
            }
            nearer[place] = least;
        }
        better
    };
    let better = messages.iter().rev().map(of_message).collect();
    (nearer.first().copied().unwrap_or(0), better)
}

/// Returns the time when the last packet is complete if no packet is larger than `cap`, counted as in
/// [`plan`].
pub fn time_with_cap(cost: LinkCost, messages: &[Message], cap: u64) -> Ticks {
    let (mut out, mut largest, mut time) = (0, 0, 0);
    for message in messages {
        out += cost.capped(message.flits, cap);
        let packets = message.flits.div_ceil(cap);
        largest = message.flits.div_ceil(packets).max(largest);
        time = time.max(out + cost.packet(largest) * Ticks::from(message.hops - 1));
    }
    time
}
