//! Gathering on a path by Shoulder-Tap (paper 000, section III-A).
//!
//! Positions are counted along the path: the PE at position i is i edges from
//! P0, whatever its index. `flits[i]` is the message of the PE at position i.

use super::pace::{Pace, Packets};

/// s_1, the value in P0's wakeup call to its only child.
pub const FIRST_WAKEUP: u64 = 1;

/// Returns when a PE with a child begins its own message, in ticks after its wakeup call: its call to
/// the child is sent first.
pub fn start(pace: &Pace, after: u64, own: Packets) -> u64 {
    let due = after.saturating_sub(pace.up.first_packet(own.first));
    due.max(pace.control)
}

/// Returns s_{i+1}, from the s_i in the PE's own wakeup call and its own message: the child's first
/// flit arrives when the own message has been sent. In steps that is max(1, L_i + max(0, s_i - 2)).
pub fn next_wakeup(pace: &Pace, after: u64, own: Packets) -> u64 {
    let out = start(pace, after, own).saturating_add(pace.up.message(own));
    let reach = pace.below.first().map_or(0, |child| child.reach);
    out.saturating_sub(reach).max(1)
}

/// Returns, for pacing in turns, how much of its message a PE has sent when it calls its child, so that
/// the child's first flit arrives when the rest has been sent.
pub fn call_mark(pace: &Pace, own: Packets) -> u64 {
    let ahead = pace.below.first().map_or(0, |child| {
        child.reach.saturating_add(child.up.first_packet(0))
    });
    let bytes_per_tick = own.bytes as f64 / pace.up.stream(own) as f64;
    own.bytes
        .saturating_sub((ahead as f64 * bytes_per_tick) as u64)
}

/// Returns the paper's lower bound (7) on the time of any distributed gather on a path, in steps;
/// Shoulder-Tap reaches it. 0 if every message is null.
///
/// (7) bounds the step in which each message's first flit crosses its first link, nearest PE first: not
/// before i + 2 (i + 1 for the end PE, which has no call to send), and not before the message ahead has
/// cleared the way.
pub fn bound_steps(flits: &[u64]) -> u64 {
    let end = flits.len().saturating_sub(1);
    // Time when the last flit so far reaches P0.
    let mut clear = 0u64;
    for (i, &own) in flits.iter().enumerate().skip(1).filter(|(_, l)| **l > 0) {
        let position = i as u64;
        let called = if i < end { position + 2 } else { position + 1 };
        let first = called.max((clear + 2).saturating_sub(position));
        clear = first + own - 1 + position - 1;
    }
    clear
}
