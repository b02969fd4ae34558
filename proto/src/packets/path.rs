//! Messages whose destinations lie on one way from P0: the best schedule, whatever their lengths.
//!
//! Farthest destination first is optimal there (paper 003, Theorem 2). The last packet of M_i is
//! whole at P_i when all packets up to it have left and the largest of them has crossed the other
//! links, so that only the largest packet so far matters, message by message (ours).

use super::caps::{Cap, Caps, caps};
use super::model::{LinkCost, Message, Run, Ticks, even};
use crate::Tree;

/// Times that are worked out, of a message with a cap: what a second is enough for.
const MOST_TIMES: usize = 100_000_000;
/// Caps of a message: of more, those that are left out change next to nothing.
const MOST_CAPS: usize = 1 << 18;

/// A schedule, and what none takes less than.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What leaves P0, in order.
    pub sequence: Vec<Run>,
    /// When the last packet is whole at its destination.
    pub time: Ticks,
    /// The same time, but where caps were too many to try them all.
    pub bound: Ticks,
}

/// Whether all these messages, farthest first, lie on one way from P0.
pub fn is_one_way(tree: &Tree, messages: &[Message]) -> bool {
    let Some(farthest) = messages.first() else {
        return true;
    };
    let mut at = farthest.pe;
    messages.iter().all(|message| {
        while tree.depth(at) > tree.depth(message.pe) {
            match tree.parent(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        at == message.pe
    })
}

/// The best schedule of messages on one way, farthest first.
pub fn plan(cost: LinkCost, messages: &[Message]) -> Planned {
    let at_most = (MOST_TIMES / messages.len().max(1)).min(MOST_CAPS);
    let Caps {
        tried: caps,
        are_all,
    } = caps(messages.iter().map(|message| message.flits), at_most);
    let (time, better) = least_time(cost, messages, &caps, |cap| cap.least);
    let bound = match are_all {
        true => time,
        false => least_time(cost, messages, &caps, |cap| cap.most).0,
    };
    let mut sequence = Vec::new();
    let mut chosen = 0;
    for (message, better) in messages.iter().zip(better.iter().rev()) {
        // A nearer message has a cap no smaller, and this is the best of those.
        chosen = better.first_from(chosen);
        let packets = message.flits.div_ceil(caps[chosen].least);
        sequence.extend(even(message.pe, message.flits, packets));
    }
    Planned {
        sequence,
        time,
        bound,
    }
}

/// Of one message: the caps that are better than all larger ones, a bit for each.
struct Better(Vec<u64>);

impl Better {
    fn insert(&mut self, cap: usize) {
        self.0[cap / 64] |= 1 << (cap % 64);
    }

    /// The first of them from this one on; the largest cap is always one.
    fn first_from(&self, cap: usize) -> usize {
        let is_in = |cap: &usize| self.0[cap / 64] & (1 << (cap % 64)) != 0;
        (cap..self.0.len() * 64).find(is_in).unwrap_or(cap)
    }
}

/// The least time, the packets of a message counted with the cap that `counted` takes; and the caps
/// that are worth having, message by message from the nearest.
fn least_time(
    cost: LinkCost,
    messages: &[Message],
    caps: &[Cap],
    counted: impl Fn(&Cap) -> u64,
) -> (Ticks, Vec<Better>) {
    // By cap: what the messages nearer than this one take, their caps no smaller.
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

/// When the last packet is whole if no packet is larger than `cap`: as [`plan`] counts, for one
/// cap.
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
