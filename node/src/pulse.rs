//! What a PE is doing, told to whoever asks while it does it: written by the links and
//! the round, read by the task that answers the coordinator's pings.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{Doing, Pong};

use crate::counters::Counters;
use crate::system::clock;
use crate::system::process::{Connection, unacknowledged};

/// What a PE is doing. Cheap to note: an addition and two stores for each system call.
#[derive(Debug)]
pub struct Pulse {
    /// When a byte was last read from an edge or written to it, on the coarse clock.
    moved_ms: AtomicU64,
    /// When an entry of a message was last finished on the disk, or found there to be sent.
    worked_ms: AtomicU64,
    /// A kind, and behind it a neighbour.
    doing: AtomicU64,
    /// A frame that is here is not shown before its time: what looks like waiting for a
    /// neighbour is waiting for the clock.
    on_clock: AtomicBool,
    edges: Mutex<Vec<(PeId, Connection)>>,
    counters: Arc<Counters>,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse {
            moved_ms: AtomicU64::new(clock::coarse_ms()),
            worked_ms: AtomicU64::new(clock::coarse_ms()),
            doing: AtomicU64::new(code(Doing::Idle)),
            on_clock: AtomicBool::new(false),
            edges: Mutex::new(Vec::new()),
            counters: Arc::default(),
        }
    }
}

impl Pulse {
    /// One that tells of these counters as well.
    pub fn with(counters: Arc<Counters>) -> Pulse {
        Pulse {
            counters,
            ..Pulse::default()
        }
    }

    /// What the PE counts.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes have moved.
    pub fn moved(&self) {
        self.moved_ms.store(clock::coarse_ms(), Relaxed);
    }

    /// A file, folder or link of a message is finished, or found to be sent: the PE gets on
    /// with its files, though nothing may move for as long as all of them take.
    pub fn worked(&self) {
        self.worked_ms.store(clock::coarse_ms(), Relaxed);
    }

    /// From now on, until the guard goes, the PE does this.
    pub fn doing(&self, doing: Doing) -> While<'_> {
        While {
            pulse: self,
            before: self.doing.swap(code(doing), Relaxed),
        }
    }

    /// Whether a frame is here that is not shown before its time.
    pub fn on_clock(&self, is_so: bool) {
        self.on_clock.store(is_so, Relaxed);
    }

    /// The connection to a neighbour.
    pub fn has_edge(&self, peer: PeId, local: SocketAddr, remote: SocketAddr) {
        if let Ok(mut edges) = self.edges.lock() {
            edges.push((peer, Connection::new(local, remote)));
        }
    }

    /// What the coordinator is answered; `look` says whether it wants to know which
    /// neighbours cannot be reached.
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

/// While it lives, the PE does something; then what it did before.
#[derive(Debug)]
pub struct While<'a> {
    pulse: &'a Pulse,
    before: u64,
}

impl Drop for While<'_> {
    fn drop(&mut self) {
        self.pulse.doing.store(self.before, Relaxed);
    }
}

fn code(doing: Doing) -> u64 {
    let (kind, peer) = match doing {
        Doing::Idle => (0, 0),
        Doing::Working => (1, 0),
        Doing::Sending(to) => (2, to.0),
        Doing::Receiving(from) => (3, from.0),
        Doing::Listening => (4, 0),
    };
    (kind << 32) | u64::from(peer)
}

fn meaning(code: u64) -> Doing {
    let peer = PeId(code as u32);
    match code >> 32 {
        1 => Doing::Working,
        2 => Doing::Sending(peer),
        3 => Doing::Receiving(peer),
        4 => Doing::Listening,
        _ => Doing::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_gives_back_what_was_before() {
        let pulse = Pulse::default();
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
        drop(round);
        assert_eq!(doing(), Doing::Idle);
    }

    #[test]
    fn who_waits_for_a_frame_to_arrive_waits_for_the_clock() {
        let pulse = Pulse::default();
        pulse.on_clock(true);
        let _listening = pulse.doing(Doing::Listening);
        assert_eq!(pulse.pong(false).doing, Doing::Working);
        let _sending = pulse.doing(Doing::Sending(PeId(1)));
        assert_eq!(pulse.pong(false).doing, Doing::Sending(PeId(1)));
    }
}
