//! The best number of packets of one message (paper 003, section 5.1; this module solves its integer
//! problem exactly).

use super::model::{LinkCost, Message, Ticks};

/// Returns the smallest r in `1..=flits` that minimises `per_packet * r + per_size * ceil(flits / r)`.
///
/// It tries about `2 * sqrt(2) * flits^(1/4)` values at most: every best r is between the roots of the
/// same expression without the rounding, minus a value that is known to be reached, and so is its
/// `ceil(flits / r)`; the fewer of both are tried. Products of the arguments, times 4, must fit into
/// 128 bits.
pub fn best_count(per_packet: Ticks, per_size: Ticks, flits: u64) -> u64 {
    if per_size == 0 {
        return 1;
    }
    if per_packet == 0 {
        return flits;
    }
    let product = per_packet * per_size * Ticks::from(flits);
    let value = |r: u64| per_packet * Ticks::from(r) + per_size * Ticks::from(flits.div_ceil(r));
    let near = (per_size * Ticks::from(flits) / per_packet).isqrt();
    let near = near.clamp(1, flits.into()) as u64;
    let reached = value(near).min(value(flits.min(near + 1)));
    // Not less than 0 except for rounding: a sum is not less than twice the root of the product.
    let width = (reached * reached).saturating_sub(4 * product).isqrt() + 1;
    let range = |factor: Ticks| {
        let ends = [reached.saturating_sub(width), reached + width];
        let [low, high] = ends.map(|end| (end / (2 * factor)).clamp(1, flits.into()) as u64);
        low..=flits.min(high + 1)
    };
    let best = match per_packet >= per_size {
        true => range(per_packet).min_by_key(|&r| (value(r), r)),
        false => {
            let counts = range(per_size).map(|size| flits.div_ceil(size));
            counts.min_by_key(|&r| (value(r), r))
        }
    };
    best.unwrap_or(near)
}

/// Returns the best packet count of a message that is the only one on its path.
pub fn best_alone(cost: LinkCost, message: &Message) -> u64 {
    let per_size = cost.flit * Ticks::from(message.hops - 1);
    best_count(cost.setup, per_size, message.flits)
}

/// Returns the time when the last of `packets` even packets of a single message is complete at its
/// destination: alpha of Lemma 12.
pub fn time_alone(cost: LinkCost, message: &Message, packets: u64) -> Ticks {
    let largest = message.flits.div_ceil(packets);
    let behind = cost.packet(largest) * Ticks::from(message.hops - 1);
    cost.stream(packets, message.flits) + behind
}
