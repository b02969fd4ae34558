//! Detects a stalled round and the PE at fault, from the PEs' answers to pings. A PE that does not
//! answer at all is detected by the timeout of its channel.
//!
//! A false alarm is worse than a late one. A long wait for a neighbour is not an error, because
//! streams wait for their turn. So no PE is at fault while any byte moves anywhere or any PE works
//! on files, and an unreachable host is distinguished from a stalled process.

use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_proto::wire::control::{Doing, Pong};
use flitcast_proto::{PeId, Time};

use super::clock::{before, between};

/// A reason why a round does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// A PE's host does not acknowledge data from a neighbour.
    Unreached { pe: PeId, from: PeId },
    /// A PE does not receive from a neighbour, and waits for no other PE that could be at fault.
    TakesNothing { pe: PeId, from: PeId },
    /// A PE has not sent the rest of a message, and waits for no other PE that could be at fault.
    SendsNothing { pe: PeId, to: PeId },
    /// A PE's work on files takes too long.
    Busy { pe: PeId },
    /// Every PE waits for another one.
    StandsStill,
}

impl Stall {
    /// Returns the PE at fault, if it can be determined.
    pub fn pe(&self) -> Option<PeId> {
        match *self {
            Stall::Unreached { pe, .. }
            | Stall::TakesNothing { pe, .. }
            | Stall::SendsNothing { pe, .. }
            | Stall::Busy { pe } => Some(pe),
            Stall::StandsStill => None,
        }
    }
}

/// The state of the PEs of a round.
#[derive(Debug)]
pub struct StallDetector {
    timeouts: Timeouts,
    seen: Vec<Seen>,
    /// When a byte last moved, or the round began.
    moved_at: Time,
    /// When a PE last worked on files, or a byte moved.
    active_at: Time,
}

/// The last answer of a PE.
#[derive(Clone, Debug)]
struct Seen {
    doing: Doing,
    /// When it last finished work on a file, or the round began.
    worked_at: Time,
    /// Neighbours whose hosts do not answer, and since when.
    unreached: Vec<(PeId, Time)>,
}

impl StallDetector {
    /// Creates the state of `pes` PEs at the begin of a round.
    pub fn new(timeouts: Timeouts, pes: usize, now: Time) -> StallDetector {
        let idle = Seen {
            doing: Doing::Idle,
            worked_at: now,
            unreached: Vec::new(),
        };
        StallDetector {
            timeouts,
            seen: vec![idle; pes],
            moved_at: now,
            active_at: now,
        }
    }

    /// Handles a PE's answer to a ping.
    pub fn observe(&mut self, pe: PeId, pong: &Pong, now: Time) {
        let moved_at = before(now, Duration::from_millis(pong.quiet_ms));
        self.moved_at = self.moved_at.max(moved_at.unwrap_or(self.moved_at));
        self.active_at = self.active_at.max(self.moved_at);
        if pong.doing == Doing::Working {
            self.active_at = now;
        }
        let Some(seen) = self.seen.get_mut(pe.index()) else {
            return;
        };
        seen.doing = pong.doing;
        let worked_at = before(now, Duration::from_millis(pong.files_quiet_ms));
        seen.worked_at = seen.worked_at.max(worked_at.unwrap_or(seen.worked_at));
        let since = |peer: &PeId| {
            let known = seen.unreached.iter().find(|(known, _)| known == peer);
            (*peer, known.map_or(now, |(_, since)| *since))
        };
        seen.unreached = pong.unreached.iter().map(since).collect();
    }

    /// Returns for how long nothing has moved.
    pub fn quiet(&self, now: Time) -> Duration {
        between(self.moved_at, now)
    }

    /// Returns whether pings should request the PEs' unreachable neighbours.
    pub fn wants_look(&self, now: Time) -> bool {
        self.quiet(now) >= self.timeouts.silence / 3
    }

    /// Returns the reason if the round has stalled.
    pub fn check(&self, now: Time) -> Option<Stall> {
        let quiet = self.quiet(now);
        if quiet >= self.timeouts.silence
            && let Some(unreached) = self.unreached(now)
        {
            return Some(unreached);
        }
        let idle = between(self.active_at, now);
        if idle >= self.timeouts.within(self.timeouts.write) {
            return Some(self.end_of_chain());
        }
        // A message may have a million files, each with its own time limit.
        let disk = self.timeouts.disk;
        let is_busy = |seen: &Seen| {
            let stands = between(seen.worked_at, now);
            seen.doing == Doing::Working && stands >= disk
        };
        let busy = (quiet >= disk).then(|| self.first(is_busy)).flatten();
        busy.map(|pe| Stall::Busy { pe })
    }

    fn first(&self, is: impl Fn(&Seen) -> bool) -> Option<PeId> {
        let place = self.seen.iter().position(is)?;
        Some(PeId(place as u32))
    }

    /// Returns the neighbour that became unreachable first. A single lost segment is retransmitted
    /// and acknowledged before the limit.
    fn unreached(&self, now: Time) -> Option<Stall> {
        let long = self.timeouts.silence / 2;
        let all = (0..).map(PeId).zip(&self.seen);
        let lost = all.flat_map(|(from, seen)| seen.unreached.iter().map(move |it| (from, it)));
        let lost = lost.filter(|(_, (_, since))| between(*since, now) >= long);
        let (from, (pe, _)) = lost.min_by_key(|(_, (_, since))| *since)?;
        Some(Stall::Unreached { pe: *pe, from })
    }

    /// Returns the PE at the end of the chain of waits, when nothing moves and no PE works on
    /// files.
    fn end_of_chain(&self) -> Stall {
        let waits = |seen: &Seen| matches!(seen.doing, Doing::Sending(_) | Doing::Receiving(_));
        let Some(mut pe) = self.first(waits) else {
            return Stall::StandsStill;
        };
        let mut blame = Stall::StandsStill;
        // A longer chain is a cycle.
        for _ in 0..self.seen.len() {
            let Some(seen) = self.seen.get(pe.index()) else {
                break;
            };
            (pe, blame) = match seen.doing {
                Doing::Sending(to) => (to, Stall::TakesNothing { pe: to, from: pe }),
                Doing::Receiving(from) => (from, Stall::SendsNothing { pe: from, to: pe }),
                Doing::Idle | Doing::Working | Doing::Listening => break,
            };
        }
        blame
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::wire::control::Doing::{Idle, Listening, Receiving, Sending, Working};

    use super::*;

    const P0: PeId = PeId(0);
    const P1: PeId = PeId(1);
    const P2: PeId = PeId(2);
    const P3: PeId = PeId(3);

    /// Returns a point in time in seconds.
    fn at(seconds: f64) -> Time {
        Time(Duration::from_secs_f64(seconds).as_nanos() as u64)
    }

    /// A round of four PEs that began at second 100, with answers at times in seconds.
    struct Observed(StallDetector);

    impl Observed {
        fn new() -> Observed {
            Observed(StallDetector::new(Timeouts::default(), 4, at(100.0)))
        }

        fn answers(&mut self, now: f64, pe: PeId, quiet: f64, doing: Doing, lost: &[PeId]) {
            self.works(now, pe, [quiet, quiet], doing, lost);
        }

        /// Adds an answer of a PE; `quiet` has the seconds since anything moved, and since a file was
        /// finished.
        fn works(&mut self, now: f64, pe: PeId, quiet: [f64; 2], doing: Doing, lost: &[PeId]) {
            let [quiet_ms, files_quiet_ms] = quiet.map(|quiet| (quiet * 1000.0) as u64);
            let pong = Pong {
                quiet_ms,
                files_quiet_ms,
                doing,
                unreached: lost.to_vec(),
                counts: Default::default(),
            };
            self.0.observe(pe, &pong, at(now));
        }

        fn stall(&self, now: f64) -> Option<Stall> {
            self.0.check(at(now))
        }
    }

    #[test]
    fn a_round_in_which_anything_moves_is_not_stalled() {
        let mut observed = Observed::new();
        for second in 100..200 {
            let now = f64::from(second);
            observed.answers(now, P0, 0.2, Receiving(P1), &[]);
            observed.answers(now, P2, now, Sending(P0), &[]);
            observed.answers(now, P3, now, Listening, &[]);
            assert_eq!(observed.stall(now + 0.9), None, "at {now}");
            assert!(!observed.0.wants_look(at(now + 0.7)));
        }
        assert!(observed.0.wants_look(at(200.0)));
    }

    #[test]
    fn work_on_files_stalls_a_round_only_after_minutes() {
        let mut observed = Observed::new();
        for second in 100..400 {
            let at = f64::from(second);
            observed.answers(at, P0, 500.0, Receiving(P1), &[]);
            observed.answers(at, P1, 500.0, Working, &[]);
            assert_eq!(observed.stall(at), None, "at {at}");
        }
        assert_eq!(observed.stall(400.0), Some(Stall::Busy { pe: P1 }));
    }

    #[test]
    fn finished_files_prevent_a_stall() {
        let mut observed = Observed::new();
        for second in 100..1000 {
            let at = f64::from(second);
            observed.works(at, P1, [at - 100.0, f64::from(second % 290)], Working, &[]);
            assert_eq!(observed.stall(at), None, "at {at}");
        }
        // Another PE's files do not count.
        for (pe, files) in [(P1, 3.0), (P2, 900.0)] {
            observed.works(1000.0, pe, [900.0, files], Working, &[]);
        }
        assert_eq!(observed.stall(1000.0), Some(Stall::Busy { pe: P2 }));
    }

    #[test]
    fn a_pe_has_time_after_work_on_files() {
        let mut observed = Observed::new();
        observed.answers(150.0, P1, 50.0, Working, &[]);
        observed.answers(150.4, P1, 50.4, Sending(P0), &[]);
        assert_eq!(observed.stall(158.9), None);
        let stalled = Stall::TakesNothing { pe: P0, from: P1 };
        assert_eq!(observed.stall(159.0), Some(stalled));
    }

    #[test]
    fn the_end_of_the_chain_is_to_blame() {
        let takes_nothing = |pe, from| Stall::TakesNothing { pe, from };
        let sends_nothing = Stall::SendsNothing { pe: P3, to: P2 };
        let stranger = PeId(77);
        let end = takes_nothing(P3, P2);
        let owed = [Listening, Receiving(P2), Receiving(P3), Listening];
        let outside = [Listening, Listening, Listening, Sending(stranger)];
        for (doing, expected) in [
            ([Receiving(P1), Sending(P2), Sending(P3), Idle], end),
            (owed, sends_nothing),
            ([Listening; 4], Stall::StandsStill),
            (outside, takes_nothing(stranger, P3)),
        ] {
            let mut observed = Observed::new();
            for (pe, doing) in (0..).map(PeId).zip(doing) {
                observed.answers(101.0, pe, 0.5, doing, &[]);
            }
            assert_eq!(observed.stall(109.4), None);
            assert_eq!(observed.stall(109.6), Some(expected));
        }
    }

    #[test]
    fn one_pe_of_a_cycle_is_to_blame() {
        let mut observed = Observed::new();
        observed.answers(101.0, P1, 1.0, Sending(P2), &[]);
        observed.answers(101.0, P2, 1.0, Sending(P1), &[]);
        let stall = observed.stall(111.0);
        assert!(matches!(stall, Some(Stall::TakesNothing { .. })));
    }

    #[test]
    fn a_host_that_acknowledges_nothing_is_found_sooner() {
        let mut observed = Observed::new();
        observed.answers(101.0, P1, 0.5, Sending(P2), &[]);
        observed.answers(101.6, P1, 1.1, Sending(P2), &[P2]);
        observed.answers(102.6, P1, 2.1, Sending(P2), &[P2]);
        observed.answers(103.1, P1, 2.6, Sending(P2), &[P2]);
        assert_eq!(observed.stall(103.4), None);
        let lost = Stall::Unreached { pe: P2, from: P1 };
        assert_eq!(observed.stall(103.5), Some(lost));
    }

    /// A lost segment is retransmitted after a moment.
    #[test]
    fn a_host_that_acknowledges_late_is_not_lost() {
        let mut observed = Observed::new();
        observed.answers(103.0, P1, 3.0, Listening, &[P2]);
        observed.answers(103.5, P1, 3.5, Listening, &[]);
        observed.answers(104.0, P1, 4.0, Listening, &[P2]);
        assert_eq!(observed.stall(104.5), None);
        observed.answers(104.5, P1, 4.5, Listening, &[P2]);
        let lost = Stall::Unreached { pe: P2, from: P1 };
        assert_eq!(observed.stall(105.5), Some(lost));
    }
}
