//! The cores for which PEs and their file threads wait in virtual time, and the threads of other
//! programs that always have work and take turns with them.

use std::collections::VecDeque;

use crate::cost::Host;

/// Time slice of a thread while others wait: Linux has slices of 1 to 3 ms, and checks them every
/// 1 to 4 ms.
pub(super) const SLICE_NS: u64 = 3_000_000;

/// Time for which a thread of another program lets those of a round have its core: they sleep often, and
/// get no more than they use.
const TURN_NS: u64 = SLICE_NS / 3;

/// A thread that needs a core: a PE by its index, followed by the threads that read or write files.
pub(super) type Thread = usize;

/// A thread of another program. It has a core for at least a time slice, and then waits for a turn of
/// others that have work.
#[derive(Clone, Copy, Debug)]
enum Other {
    /// Has had a core since this time.
    Runs(u64),
    /// Takes the first core that is free, or from this time on is given up.
    Waits(u64),
}

impl Other {
    /// Returns when another thread gets its core, if it has one.
    fn yields_at(self) -> Option<u64> {
        match self {
            Other::Runs(since) => Some(since.saturating_add(SLICE_NS)),
            Other::Waits(_) => None,
        }
    }

    fn is_due(self, now: u64) -> bool {
        matches!(self, Other::Waits(until) if until <= now)
    }
}

/// Cores that threads share. A thread keeps its core while it has work, so a receiver with a full
/// socket continues to read for any number of ready senders. When its time slice ends, the thread
/// that has waited longest runs.
#[derive(Debug)]
pub(super) struct Cores {
    /// Number of free cores; `None` if each thread has its own.
    free: Option<u32>,
    /// For each thread, since when it has had a core.
    since: Vec<Option<u64>>,
    /// The waiting threads of the round.
    waiting: VecDeque<Thread>,
    /// Threads of other programs.
    others: Vec<Other>,
}

impl Cores {
    /// Creates the cores of a host at the begin of a round.
    pub(super) fn new(host: &Host) -> Cores {
        let count = host.shared_cores.map(|cores| cores.max(1));
        let others = count.map_or(0, |_| host.busy_threads);
        let running = others.min(count.unwrap_or(0));
        let other = |place: u32| match place < running {
            true => Other::Runs(0),
            false => Other::Waits(0),
        };
        Cores {
            free: count.map(|count| count - running),
            since: Vec::new(),
            waiting: Default::default(),
            others: (0..others).map(other).collect(),
        }
    }

    /// Gives a core to the thread that is triggered at the begin of a round, and runs already.
    pub(super) fn give_first(&mut self, thread: Thread) {
        if self.free == Some(0)
            && let Some(other) = self.others.first_mut()
        {
            *other = Other::Waits(TURN_NS);
            self.since.resize(thread + 1, None);
            self.since[thread] = Some(0);
        }
    }

    /// Returns whether a thread with work has a core for it. If not, it is queued, and must not ask
    /// again.
    pub(super) fn take(&mut self, now: u64, thread: Thread) -> bool {
        let Some(free) = &mut self.free else {
            return true;
        };
        if self.since.len() <= thread {
            self.since.resize(thread + 1, None);
        }
        if self.since[thread].is_some() {
            return true;
        }
        match free.checked_sub(1) {
            Some(left) => *free = left,
            None if self.displaces_other(now) => {}
            None => {
                self.waiting.push_back(thread);
                return false;
            }
        }
        self.since[thread] = Some(now);
        true
    }

    /// Takes the core of another program whose time slice is over; returns whether there was one.
    fn displaces_other(&mut self, now: u64) -> bool {
        let is_over = |other: &&mut Other| other.yields_at().is_some_and(|at| at <= now);
        let over = self.others.iter_mut().find(is_over);
        let found = over.map(|other| *other = Other::Waits(now.saturating_add(TURN_NS)));
        found.is_some()
    }

    /// Returns when another program yields its core, if a thread waits for one.
    pub(super) fn next_turn(&self) -> Option<u64> {
        let turns = self.others.iter().filter_map(|other| other.yields_at());
        turns.min().filter(|_| !self.waiting.is_empty())
    }

    /// Gives the core of another program whose time slice is over to the thread that has waited
    /// longest, and returns that thread.
    pub(super) fn turn(&mut self, now: u64) -> Option<Thread> {
        if self.waiting.is_empty() || !self.displaces_other(now) {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.since[next] = Some(now);
        Some(next)
    }

    /// Returns whether a thread has to yield its core: its time slice is over and another thread
    /// waits.
    pub(super) fn is_over(&self, now: u64, thread: Thread) -> bool {
        let since = self.since.get(thread).copied().flatten();
        let is_over = since.is_some_and(|since| now >= since.saturating_add(SLICE_NS));
        let other_waits = || self.others.iter().any(|other| other.is_due(now));
        is_over && (!self.waiting.is_empty() || other_waits())
    }

    /// Takes the core of a thread, if it has one; returns the thread that gets it.
    pub(super) fn give_up(&mut self, now: u64, thread: Thread) -> Option<Thread> {
        self.free?;
        self.since.get_mut(thread)?.take()?;
        if let Some(due) = self.others.iter_mut().find(|other| other.is_due(now)) {
            *due = Other::Runs(now);
            return None;
        }
        if let Some(next) = self.waiting.pop_front() {
            self.since[next] = Some(now);
            return Some(next);
        }
        let mut others = self.others.iter_mut();
        match others.find(|other| other.yields_at().is_none()) {
            Some(other) => *other = Other::Runs(now),
            None => self.free = self.free.map(|free| free + 1),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PES: [Thread; 4] = [0, 1, 2, 3];

    fn on(shared_cores: Option<u32>, busy_threads: u32) -> Cores {
        let host = Host {
            shared_cores,
            busy_threads,
            ..Host::NONE
        };
        Cores::new(&host)
    }

    #[test]
    fn who_has_a_core_keeps_it_and_the_others_get_theirs_in_turn() {
        let mut cores = on(Some(2), 0);
        let took = PES.map(|pe| cores.take(10, pe));
        assert_eq!(took, [true, true, false, false]);
        // Repeatedly, while two threads wait.
        assert!(cores.take(20, PES[1]));
        assert_eq!(cores.give_up(30, PES[1]), Some(PES[2]));
        assert_eq!(cores.give_up(40, PES[1]), None, "it has none any more");
        assert_eq!(cores.give_up(50, PES[0]), Some(PES[3]));
        assert_eq!(cores.give_up(60, PES[3]), None);
        assert!(cores.take(70, PES[0]), "one is free");
    }

    #[test]
    fn a_slice_ends_only_for_somebody_who_waits() {
        let mut cores = on(Some(1), 0);
        assert!(cores.take(5, PES[0]));
        assert!(!cores.is_over(5 + SLICE_NS, PES[0]));
        assert!(!cores.take(7, PES[1]));
        assert!(!cores.is_over(4 + SLICE_NS, PES[0]));
        assert!(cores.is_over(5 + SLICE_NS, PES[0]));
        // The next slice begins when its thread gets the core.
        let now = 5 + SLICE_NS;
        assert_eq!(cores.give_up(now, PES[0]), Some(PES[1]));
        assert!(!cores.take(now, PES[0]));
        assert!(!cores.is_over(now + SLICE_NS - 1, PES[1]));
        assert!(cores.is_over(now + SLICE_NS, PES[1]));
    }

    #[test]
    fn cores_of_ones_own_are_always_there() {
        let mut cores = on(None, 0);
        assert!(PES.iter().all(|&pe| cores.take(0, pe)));
        assert!(PES.iter().all(|&pe| !cores.is_over(u64::MAX, pe)));
        assert_eq!(cores.give_up(1, PES[0]), None);
    }

    #[test]
    fn another_program_takes_turns_with_the_pes() {
        let mut cores = on(Some(1), 1);
        assert!(!cores.take(5, PES[0]), "it has just begun");
        assert_eq!(cores.next_turn(), Some(SLICE_NS));
        assert_eq!(cores.turn(SLICE_NS - 1), None);
        assert_eq!(cores.turn(SLICE_NS), Some(PES[0]));
        assert!(!cores.take(SLICE_NS, PES[1]));
        assert_eq!(cores.give_up(SLICE_NS + 9, PES[0]), Some(PES[1]));
        assert!(!cores.take(SLICE_NS + 10, PES[2]));
        let over = SLICE_NS + TURN_NS;
        assert_eq!(cores.give_up(over, PES[1]), None, "it is the other's turn");
        assert_eq!(cores.turn(over + SLICE_NS), Some(PES[2]));
        // A core that no PE needs is the other's at once.
        let now = over + SLICE_NS + 1;
        assert_eq!(cores.give_up(now, PES[2]), None);
        assert!(!cores.take(now + 1, PES[3]));
        assert!(cores.take(now + SLICE_NS, PES[0]), "its slice is over");
    }

    #[test]
    fn the_pe_that_begins_a_round_has_a_core() {
        let mut cores = on(Some(2), 2);
        cores.give_first(PES[1]);
        assert!(cores.take(0, PES[1]));
        assert!(!cores.take(0, PES[2]));
        assert_eq!(cores.give_up(9, PES[1]), Some(PES[2]));
        let next = cores.give_up(TURN_NS, PES[2]);
        assert_eq!(next, None, "it is the other's turn");
    }
}
