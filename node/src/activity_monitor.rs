//! The current activity of a PE: written by the links and the round, read by the task that answers the
//! coordinator's pings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{Doing, Pong};

use crate::counters::Counters;
use crate::system::clock;
use crate::system::process::{canonical, unacknowledged};
use crate::system::retransmissions::Ends;

/// The current activity of a PE. An update is cheap: an addition and two stores for each system call.
#[derive(Debug)]
pub struct ActivityMonitor {
    /// Time of the last byte read from an edge or written to it, on the coarse clock.
    moved_ms: AtomicU64,
    /// Time when an entry of a message was last finished on the disk, or found in the input.
    worked_ms: AtomicU64,
    /// A kind of activity, combined with a neighbour.
    doing: AtomicU64,
    /// Whether a received frame waits for its arrival time: the PE then waits for the clock and not for
    /// a neighbour.
    on_clock: AtomicBool,
    edges: Mutex<Vec<(PeId, Ends)>>,
    counters: Arc<Counters>,
}

impl Default for ActivityMonitor {
    fn default() -> ActivityMonitor {
        ActivityMonitor {
            moved_ms: AtomicU64::new(clock::coarse_ms()),
            worked_ms: AtomicU64::new(clock::coarse_ms()),
            doing: AtomicU64::new(code(Doing::Idle)),
            on_clock: AtomicBool::new(false),
            edges: Mutex::new(Vec::new()),
            counters: Arc::default(),
        }
    }
}

impl ActivityMonitor {
    /// Creates a pulse that also reports these counters.
    pub fn with(counters: Arc<Counters>) -> ActivityMonitor {
        ActivityMonitor {
            counters,
            ..ActivityMonitor::default()
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn moved(&self) {
        self.moved_ms.store(clock::coarse_ms(), Relaxed);
    }

    /// Records that a file, folder or link of a message is finished or was found: the PE makes progress
    /// with its files, though no byte may move for as long as all of them take.
    pub fn worked(&self) {
        self.worked_ms.store(clock::coarse_ms(), Relaxed);
    }

    /// Sets the activity until the guard is dropped.
    ///
    /// Guards of several trees do not end in the order in which they began. The activity of another
    /// guard is never restored, since it may be over by then: the PE is at work.
    pub fn doing(&self, doing: Doing) -> ActivityGuard<'_> {
        let before = match meaning(self.doing.swap(code(doing), Relaxed)) {
            Doing::Idle => Doing::Idle,
            _ => Doing::Working,
        };
        ActivityGuard {
            pulse: self,
            before: code(before),
        }
    }

    /// Sets whether a received frame waits for its arrival time.
    pub fn on_clock(&self, is_so: bool) {
        self.on_clock.store(is_so, Relaxed);
    }

    /// Records the connection to a neighbour.
    pub fn has_edge(&self, peer: PeId, ends: Ends) {
        if let Ok(mut edges) = self.edges.lock() {
            edges.push((peer, canonical(ends)));
        }
    }

    /// Returns the answer to a ping; with `look` it includes the unreachable neighbours.
    pub fn pong(&self, look: bool) -> Pong {
        let doing = match meaning(self.doing.load(Relaxed)) {
            Doing::Receiving(_) | Doing::Listening if self.on_clock.load(Relaxed) => Doing::Working,
            doing => doing,
        };
        let since = |when: &AtomicU64| clock::coarse_ms().saturating_sub(when.load(Relaxed));
        let mut unreached = Vec::new();
        if look && let Ok(edges) = self.edges.lock() {
            let open = unacknowledged();
            let silent = edges.iter().filter(|(_, edge)| open.contains(edge));
            unreached.extend(silent.map(|(peer, _)| *peer));
        }
        Pong {
            quiet_ms: since(&self.moved_ms),
            files_quiet_ms: since(&self.worked_ms),
            doing,
            unreached,
            counts: self.counters.counts(),
        }
    }
}

/// A guard that restores the previous activity when it is dropped.
#[derive(Debug)]
pub struct ActivityGuard<'a> {
    pulse: &'a ActivityMonitor,
    before: u64,
}

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.pulse.doing.store(self.before, Relaxed);
    }
}

fn code(doing: Doing) -> u64 {
    let (kind, peer) = doing.code();
    ((kind as u64) << 32) | u64::from(peer.0)
}

fn meaning(code: u64) -> Doing {
    Doing::of((code >> 32) as i32, PeId(code as u32)).unwrap_or(Doing::Idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_give_back_what_was_before_in_any_order() {
        let pulse = ActivityMonitor::default();
        let doing = || pulse.pong(false).doing;
        assert_eq!(doing(), Doing::Idle);
        let round = pulse.doing(Doing::Working);
        for inner in [
            Doing::Sending(PeId(u32::MAX)),
            Doing::Receiving(PeId(0)),
            Doing::Listening,
        ] {
            let guard = pulse.doing(inner);
            assert_eq!(doing(), inner);
            drop(guard);
            assert_eq!(doing(), Doing::Working);
        }
        // Several trees.
        let [one, other] = [1, 2].map(|to| pulse.doing(Doing::Sending(PeId(to))));
        drop(one);
        assert_eq!(doing(), Doing::Working);
        drop(other);
        assert_eq!(doing(), Doing::Working, "nothing is sent any more");
        drop(round);
        assert_eq!(doing(), Doing::Idle);
    }

    #[test]
    fn who_waits_for_a_frame_to_arrive_waits_for_the_clock() {
        let pulse = ActivityMonitor::default();
        pulse.on_clock(true);
        let _listening = pulse.doing(Doing::Listening);
        assert_eq!(pulse.pong(false).doing, Doing::Working);
        let _sending = pulse.doing(Doing::Sending(PeId(1)));
        assert_eq!(pulse.pong(false).doing, Doing::Sending(PeId(1)));
    }
}
