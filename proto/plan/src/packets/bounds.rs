//! Lower bounds of the time of any schedule of packets on a tree (not in the paper).
//!
//! [`of_rest`] holds for any order, split, interleaving and queueing; [`from_the_beginning`] for relays
//! that serve packets in the order of arrival.

use super::caps::{Caps, caps};
use super::model::{LinkCost, Message, Ticks, best_alone, time_alone};
use super::tree::Scatter;

/// Limit of messages below a relay times caps that are examined: a quarter of a second.
const MOST_LOOKS: u64 = 10_000_000;
/// Limit of caps of each relay.
const MOST_CAPS: u64 = 3000;

/// A factor that covers many times the rounding errors of doubles.
const SAFETY: f64 = 1.0 - 1e-9;

/// Returns a lower bound for `left[i]` flits of each message, farthest first, that P0 sends from
/// `start` on; 0 if nothing is left.
pub fn of_rest(cost: LinkCost, messages: &[Message], left: &[u64], start: Ticks) -> Ticks {
    let (mut flits, mut count, mut tail, mut bound) = (0, 0, Ticks::MAX, 0);
    for (place, (message, &own)) in messages.iter().zip(left).enumerate() {
        if own > 0 {
            flits += own;
            count += 1;
            tail = tail.min(least_tail(cost, message.hops, own));
        }
        let next = messages.get(place + 1);
        let is_last_of_depth = next.is_none_or(|next| next.hops < message.hops);
        if is_last_of_depth && count > 0 {
            let whole = cost.stream(count, flits) + tail;
            let grown = growing(cost, message.hops, count, flits);
            bound = bound.max(start + whole.max(grown));
        }
    }
    bound
}

/// Returns the least remaining time of a message's last packet after it has left P0: the message is one
/// packet, or has at least one more, of at least one flit.
fn least_tail(cost: LinkCost, hops: u64, flits: u64) -> Ticks {
    let behind = |flits| cost.packet(flits) * Ticks::from(hops - 1);
    match flits {
        1 => behind(1),
        _ => behind(flits).min(cost.setup + behind(1)),
    }
}

/// Returns a bound for `flits` flits in at least `messages` packets at this depth and below it. From
/// the last packet backwards, sizes grow by the factor `depth / (depth - 1)` at most, or an earlier
/// packet would be late. So the schedule begins with small packets or ends with a long tail.
pub(super) fn growing(cost: LinkCost, depth: u64, messages: u64, flits: u64) -> Ticks {
    if depth == 1 {
        return cost.stream(messages, flits);
    }
    let (setup, one) = (cost.setup as f64, cost.packet(1) as f64);
    let decay = (-1.0 / depth as f64).ln_1p();
    let dispatch = |packets: u64| cost.stream(packets, flits) as f64;
    let left = |packets: u64| (decay * packets as f64).exp();
    let by_growth = |packets: u64| dispatch(packets) / -(decay * packets as f64).exp_m1();
    let by_tail = |packets: u64| dispatch(packets) + one * (depth - 1) as f64;
    // The greater of both falls with the number of packets up to where one of these conditions holds,
    // then it rises.
    let rises = |packets: u64| {
        let slope = setup - left(packets) * (setup - decay * dispatch(packets));
        slope >= 0.0 || by_tail(packets) >= by_growth(packets)
    };
    let (mut low, mut high) = (messages, flits);
    while low < high {
        let middle = low + (high - low) / 2;
        match rises(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    let greater = |packets: u64| by_growth(packets).max(by_tail(packets));
    let least = greater(low).min(greater(messages.max(low - 1)));
    (least * SAFETY).ceil() as Ticks
}

/// Returns the greatest lower bound of a whole scatter.
pub fn from_the_beginning(scatter: &Scatter) -> Ticks {
    let (cost, messages) = (scatter.cost, &scatter.messages);
    let left: Vec<u64> = messages.iter().map(|message| message.flits).collect();
    let rest = of_rest(cost, messages, &left, 0);
    let alone = messages.iter().fold(rest, |bound, message| {
        // The best number of packets is never worse than no split.
        match time_alone(cost, message, 1) <= bound {
            true => bound,
            false => bound.max(time_alone(cost, message, best_alone(cost, message))),
        }
    });
    alone.max(below_relays(scatter))
}

/// Returns a bound from each relay at depth h and each depth D, for the messages to PEs below the relay
/// at D or deeper. If b is the largest of their packets, the relay's send port has sent them all when
/// all have crossed a link one by one, and b another h; and the last one still has `D - h - 1` links
/// ahead. Returns 0 if there are too many to examine.
fn below_relays(scatter: &Scatter) -> Ticks {
    let (cost, messages) = (scatter.cost, &scatter.messages);
    let at_most = (MOST_LOOKS / scatter.hops().max(1)).min(MOST_CAPS) as usize;
    if at_most < 2 {
        return 0;
    }
    let mut of_relay: Vec<Vec<&Message>> = vec![Vec::new(); scatter.relays()];
    for (message, way) in messages.iter().zip(&scatter.ways) {
        for &relay in way {
            of_relay[relay as usize].push(message);
        }
    }
    let all = of_relay.iter().zip(&scatter.relay_depths);
    let bounds = all.map(|(messages, &depth)| below(cost, messages, depth, at_most));
    bounds.max().unwrap_or(0)
}

/// Returns the bound from one relay; its messages are farthest first.
fn below(cost: LinkCost, messages: &[&Message], depth: u64, at_most: usize) -> Ticks {
    let lengths = messages.iter().map(|message| message.flits);
    let Caps { tried, .. } = caps(lengths, at_most);
    let mut streams = vec![0; tried.len()];
    let mut bound = 0;
    for message in messages {
        let onward = cost.packet(1) * Ticks::from(message.hops - depth - 1);
        let times = streams.iter_mut().zip(&tried).map(|(stream, cap)| {
            *stream += cost.capped(message.flits, cap.most);
            *stream + cost.packet(cap.least) * Ticks::from(depth)
        });
        bound = bound.max(times.min().unwrap_or(0) + onward);
    }
    bound
}
