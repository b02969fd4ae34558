//! The common begin of a round in which all PEs are sources. The PEs read their clocks, and the
//! trigger of each PE contains the begin on its own clock, late enough for the trigger to arrive
//! before.

use std::time::Duration;

use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_proto::Time;

use super::clock::between;
use crate::tuning::BEGIN_MARGIN;

/// The answers to requests for the time.
#[derive(Debug)]
pub struct Readings {
    requested_at: Time,
    /// The longest time until an answer.
    longest: Duration,
    /// P0's reading, and when its answer arrived.
    root: Option<(u64, Time)>,
}

impl Readings {
    /// Creates an empty set of answers to requests that are sent now.
    pub fn new(now: Time) -> Readings {
        Readings {
            requested_at: now,
            longest: Duration::ZERO,
            root: None,
        }
    }

    pub fn add(&mut self, now: Time, is_root: bool, at_ns: u64) {
        self.longest = self.longest.max(between(self.requested_at, now));
        if is_root {
            self.root = Some((at_ns, now));
        }
    }

    /// Returns the begin on the clock of each PE; `clocks` are offsets from P0's. The error of P0's
    /// reading shifts all of them alike.
    pub fn begins(&self, now: Time, clocks: &[ClockOffset]) -> Vec<u64> {
        let (reading, arrived_at) = self.root.unwrap_or((0, now));
        let lead = 2 * self.longest + BEGIN_MARGIN;
        let lead_ns = between(arrived_at, now).saturating_add(lead).as_nanos() as u64;
        let at_root = i128::from(reading.saturating_add(lead_ns));
        let of_clock = |clock: &ClockOffset| {
            let at = at_root + i128::from(clock.offset_ns);
            u64::try_from(at).unwrap_or(0).max(1)
        };
        clocks.iter().map(of_clock).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All begin at one moment, after the slowest answer would have arrived once more, whatever
    /// their clocks show.
    #[test]
    fn every_clock_shows_its_own_time_of_the_same_moment() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut readings = Readings::new(ms(100));
        // P0's clock shows 5 s more than the coordinator's.
        readings.add(ms(101), true, 5_100_500_000);
        readings.add(ms(110), false, 7);
        let behind = ClockOffset {
            offset_ns: -5_000_000_000,
            uncertainty_ns: 1,
        };
        let before_boot = ClockOffset {
            offset_ns: i64::MIN,
            ..behind
        };
        let clocks = [ClockOffset::SHARED, behind, before_boot];
        // 9 ms since P0's answer, twice 10 ms, and the margin of 2 ms.
        let at_root = 5_100_500_000 + 31_000_000;
        let begins = readings.begins(ms(110), &clocks);
        assert_eq!(begins, [at_root, at_root - 5_000_000_000, 1]);
    }
}
