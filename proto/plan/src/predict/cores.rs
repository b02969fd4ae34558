//! The cores for which PEs and their file threads wait in virtual time, and the threads of other
//! programs that always have work and take turns with them.

use std::collections::VecDeque;

use crate::cost::Host;

/// Time slice of a thread while others wait: Linux has slices of 1 to 3 ms, and checks them every
/// 1 to 4 ms.
pub(super) const SLICE_NS: u64 = 3_000_000;

/// A thread of the round that has run less than this beyond the time that it slept gets a core from another
/// program as soon as it wakes, if no thread of the round has one: the scheduler owes it that time. Otherwise
/// it is queued on the core of the thread that woke it.
const CREDIT_NS: u64 = SLICE_NS / 2;

/// A thread that needs a core: a PE by its index, followed by the threads that read or write files.
pub(super) type Thread = usize;

/// A thread of another program. It runs for a time slice, and then waits until the threads of the round
/// had theirs.
#[derive(Clone, Copy, Debug)]
enum Other {
    /// Has had a core since this time.
    Runs(u64),
    /// Takes a core that nothing else needs, or from this time on the first one that is given up.
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

/// The time that a thread of the round has had a core.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Since when it has a core.
    since: Option<u64>,
    /// When it gave up its core, or requested one after that.
    without_since: u64,
    /// Time on a core, less the time without.
    used_ns: u64,
}

/// Cores that threads share. A thread keeps its core while it has work, so a receiver with a full
/// socket continues to read for any number of ready senders. When its time slice ends, the thread
/// that has waited longest runs.
#[derive(Debug)]
pub(super) struct Cores {
    /// Number of cores.
    count: u32,
    /// Number of free cores; `None` if each thread has its own.
    free: Option<u32>,
    /// The threads of the round that have had work.
    threads: Vec<Use>,
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
            count: count.unwrap_or(1),
            free: count.map(|count| count - running),
            threads: Vec::new(),
            waiting: Default::default(),
            others: (0..others).map(other).collect(),
        }
    }

    /// Returns whether a thread with work has a core for it. If not, it is queued, and must not request it
    /// again.
    pub(super) fn take(&mut self, now: u64, thread: Thread) -> bool {
        let Some(free) = &mut self.free else {
            return true;
        };
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Use::default());
        }
        let of = &mut self.threads[thread];
        if of.since.is_some() {
            return true;
        }
        of.used_ns = of
            .used_ns
            .saturating_sub(now.saturating_sub(of.without_since));
        of.without_since = now;
        let has_credit = of.used_ns < CREDIT_NS;
        match free.checked_sub(1) {
            Some(left) => *free = left,
            None if self.displaces_other(now, has_credit && self.has_none()) => {}
            None => {
                self.waiting.push_back(thread);
                return false;
            }
        }
        self.threads[thread].since = Some(now);
        true
    }

    /// Returns whether no thread of the round has a core.
    fn has_none(&self) -> bool {
        self.threads.iter().all(|it| it.since.is_none())
    }

    /// Takes the core of another program for a thread, at once or only if its time slice is over; returns
    /// whether there was one. The program gets its next slice when each thread with work may have had one.
    fn displaces_other(&mut self, now: u64, at_once: bool) -> bool {
        let yields = |other: &Other| other.yields_at().is_some_and(|at| at_once || at <= now);
        let Some(place) = self.others.iter().position(yields) else {
            return false;
        };
        let running = self.threads.iter().filter(|it| it.since.is_some());
        let with_work = 1 + running.count() + self.waiting.len();
        let turns = SLICE_NS * with_work as u64 / u64::from(self.count);
        self.others[place] = Other::Waits(now.saturating_add(turns));
        true
    }

    /// Returns when another program yields its core, if a thread waits for one.
    pub(super) fn next_turn(&self) -> Option<u64> {
        let turns = self.others.iter().filter_map(|other| other.yields_at());
        turns.min().filter(|_| !self.waiting.is_empty())
    }

    /// Gives the core of another program whose time slice is over to the thread that has waited
    /// longest, and returns that thread.
    pub(super) fn turn(&mut self, now: u64) -> Option<Thread> {
        let next = self.waiting.pop_front()?;
        if !self.displaces_other(now, false) {
            self.waiting.push_front(next);
            return None;
        }
        self.threads[next].since = Some(now);
        Some(next)
    }

    /// Returns whether a thread has to yield its core: its time slice is over and another thread
    /// waits.
    pub(super) fn is_over(&self, now: u64, thread: Thread) -> bool {
        let since = self.threads.get(thread).and_then(|of| of.since);
        let is_over = since.is_some_and(|since| now >= since.saturating_add(SLICE_NS));
        let other_waits = || self.others.iter().any(|other| other.is_due(now));
        is_over && (!self.waiting.is_empty() || other_waits())
    }

    /// Takes the core of a thread, if it has one; returns the thread that gets it.
    pub(super) fn give_up(&mut self, now: u64, thread: Thread) -> Option<Thread> {
        self.free?;
        let of = self.threads.get_mut(thread)?;
        of.used_ns += now.saturating_sub(of.since.take()?);
        of.without_since = now;
        if let Some(due) = self.others.iter_mut().find(|other| other.is_due(now)) {
            *due = Other::Runs(now);
            return None;
        }
        if let Some(next) = self.waiting.pop_front() {
            self.threads[next].since = Some(now);
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
    fn a_thread_that_has_used_its_credit_waits_for_another_program() {
        let mut cores = on(Some(1), 1);
        assert!(cores.take(5, PES[0]), "it has slept");
        let used = 5 + CREDIT_NS;
        assert_eq!(cores.give_up(used, PES[0]), None);
        assert!(cores.take(used, PES[1]), "it has slept, too");
        assert_eq!(cores.give_up(used, PES[1]), None);
        assert!(!cores.take(used, PES[0]));
        let over = used + SLICE_NS;
        assert_eq!(cores.next_turn(), Some(over));
        assert_eq!(cores.turn(over - 1), None);
        assert_eq!(cores.turn(over), Some(PES[0]));
    }

    #[test]
    fn a_thread_that_another_one_wakes_is_queued_on_its_core() {
        let mut cores = on(Some(2), 1);
        assert!(cores.take(5, PES[0]), "a core is free");
        assert!(!cores.take(6, PES[1]), "the other program keeps its core");
        assert_eq!(cores.give_up(10, PES[0]), Some(PES[1]));
        // Until its time slice is over.
        assert!(!cores.take(20, PES[2]));
        assert_eq!(cores.next_turn(), Some(SLICE_NS));
        assert_eq!(cores.turn(SLICE_NS), Some(PES[2]));
    }

    #[test]
    fn another_program_has_its_turn_after_each_thread_with_work() {
        let mut cores = on(Some(1), 1);
        assert!(cores.take(0, PES[0]));
        let turn = SLICE_NS;
        assert!(!cores.take(turn - 1, PES[1]));
        assert_eq!(
            cores.give_up(turn - 1, PES[0]),
            Some(PES[1]),
            "it is not due"
        );
        assert_eq!(cores.give_up(turn, PES[1]), None, "it is due");
        // Two have work when the other program yields its core.
        let over = turn + SLICE_NS;
        for pe in [PES[0], PES[1]] {
            cores.threads[pe].used_ns = 9 * SLICE_NS;
            assert!(!cores.take(turn + 1, pe));
        }
        assert_eq!(cores.turn(over), Some(PES[0]));
        assert_eq!(cores.give_up(over + 2 * SLICE_NS - 1, PES[0]), Some(PES[1]));
        assert_eq!(cores.give_up(over + 2 * SLICE_NS, PES[1]), None);
    }
}
