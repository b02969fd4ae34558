//! The offset between the clocks of two processes, estimated from exchanges between them, with its
//! uncertainty.
//!
//! In an exchange, the lower end reads its clock at an unknown moment between the two readings of
//! the upper end: one direction may take all of the round trip and the other nothing. So the
//! exchange with the shortest round trip determines the offset best, with half of that round trip
//! as uncertainty, whatever the delays are. Along a tree, offsets and uncertainties add up.

use flitcast_proto::{PeId, Tree};

use super::Exchange;

/// Maximum drift between two clocks, in parts per million: 50 for each crystal, the usual worst
/// case.
const DRIFT_PPM: u64 = 100;

/// The offset of a clock from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Reading of this clock minus that of the other at the same moment.
    pub offset_ns: i64,
    /// Maximum error of `offset_ns`; 0 only if the two are one clock.
    pub uncertainty_ns: u64,
}

impl ClockOffset {
    /// Offset between two processes that read the same clock.
    pub const SHARED: ClockOffset = ClockOffset {
        offset_ns: 0,
        uncertainty_ns: 0,
    };

    /// Returns whether the two are one clock.
    pub fn is_shared(&self) -> bool {
        *self == ClockOffset::SHARED
    }

    /// Returns the offset of the lower end from the upper end of the exchanges, at any moment
    /// between the first and the last of them; `None` if no exchange is plausible.
    pub fn between(exchanges: &[Exchange]) -> Option<ClockOffset> {
        let sound = || exchanges.iter().filter(|exchange| exchange.is_sound());
        let least = sound().min_by_key(|exchange| exchange.round_trip_ns())?;
        let first = sound().map(|exchange| exchange.sent_ns).min()?;
        let last = sound().map(|exchange| exchange.returned_ns).max()?;
        let way_down = i128::from(least.received_ns) - i128::from(least.sent_ns);
        let way_up = i128::from(least.returned_ns) - i128::from(least.answered_ns);
        Some(ClockOffset {
            offset_ns: i64::try_from((way_down - way_up) / 2).ok()?,
            uncertainty_ns: least.round_trip_ns().div_ceil(2) + 1 + drift_ns(last - first),
        })
    }

    /// Returns the offset a time `by_ns` later, with more uncertainty because clocks drift.
    pub fn aged(self, by_ns: u64) -> ClockOffset {
        match self.is_shared() {
            true => self,
            false => ClockOffset {
                uncertainty_ns: self.uncertainty_ns.saturating_add(drift_ns(by_ns)),
                ..self
            },
        }
    }

    /// Returns the offset of this clock to a third one; `other` is the other clock's offset to the
    /// third.
    fn beyond(self, other: ClockOffset) -> ClockOffset {
        ClockOffset {
            offset_ns: self.offset_ns.saturating_add(other.offset_ns),
            uncertainty_ns: self.uncertainty_ns.saturating_add(other.uncertainty_ns),
        }
    }

    /// Converts a reading of this clock to a reading of the other.
    pub fn on_the_other(&self, reading_ns: u64) -> i128 {
        i128::from(reading_ns) - i128::from(self.offset_ns)
    }
}

fn drift_ns(over_ns: u64) -> u64 {
    (over_ns / 1_000_000 + 1).saturating_mul(DRIFT_PPM)
}

/// Computes each PE's offset to P0. `clocks[i]` names the clock that P_i reads: equal names mean
/// the same clock, and an empty name means a clock of P_i only. `to_parent[i]` is P_i's offset to
/// its parent; it is ignored if a PE nearer to P0 reads the same clock.
///
/// # Errors
///
/// Returns a PE whose offset to its parent is needed but missing.
pub fn offsets_to_root(
    tree: &Tree,
    clocks: &[String],
    to_parent: &[Option<ClockOffset>],
) -> Result<Vec<ClockOffset>, PeId> {
    let mut offsets = vec![ClockOffset::SHARED; tree.len()];
    let mut known: Vec<PeId> = vec![tree.root()];
    for &pe in &tree.top_down()[1..] {
        let clock = &clocks[pe.index()];
        let same = |other: &&PeId| !clock.is_empty() && clocks[other.index()] == *clock;
        let parent = tree.parent(pe).unwrap_or(tree.root());
        offsets[pe.index()] = match known.iter().find(same) {
            Some(other) => offsets[other.index()],
            None => {
                known.push(pe);
                let own = to_parent[pe.index()].ok_or(pe)?;
                own.beyond(offsets[parent.index()])
            }
        };
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use flitcast_proto::seeded::SplitMix64;

    use super::*;

    /// A lower end whose clock is ahead and drifts, with arbitrary delays.
    struct Skewed {
        ahead_ns: i64,
        drift_ppm: i64,
        random: SplitMix64,
        now_ns: u64,
    }

    impl Skewed {
        /// Returns the reading of the lower end's clock.
        fn reads(&self, at_ns: u64) -> u64 {
            (at_ns as i64 + self.offset_at(at_ns)) as u64
        }

        fn offset_at(&self, at_ns: u64) -> i64 {
            self.ahead_ns + at_ns as i64 * self.drift_ppm / 1_000_000
        }

        /// Adds a delay: at least `least_ns`, sometimes up to a hundred times that.
        fn pass(&mut self, least_ns: u64) {
            let longest = match self.random.below(10) {
                0 => 100 * least_ns,
                _ => least_ns,
            };
            self.now_ns += least_ns + self.random.below(longest + 1);
        }

        fn exchange(&mut self, down_ns: u64, up_ns: u64) -> Exchange {
            let sent_ns = self.now_ns;
            self.pass(down_ns);
            let received_ns = self.reads(self.now_ns);
            self.pass(2_000);
            let answered_ns = self.reads(self.now_ns);
            self.pass(up_ns);
            let returned_ns = self.now_ns;
            self.pass(50_000);
            exchange([sent_ns, received_ns, answered_ns, returned_ns])
        }
    }

    /// Start time for which every reading is positive.
    const START_NS: u64 = 100_000_000_000;

    #[test]
    fn the_true_offset_is_always_within_the_uncertainty() {
        for seed in 0..300 {
            let mut random = SplitMix64::new(seed);
            let ahead_ns = random.below(20_000_000_000) as i64 - 10_000_000_000;
            // At most 50 ppm, as the drift of the one clock against the other.
            let drift_ppm = random.below(101) as i64 - 50;
            let (down_ns, up_ns) = (1 + random.below(1_000_000), 1 + random.below(1_000_000));
            let count = 1 + random.below(200);
            let mut skewed = Skewed {
                ahead_ns,
                drift_ppm,
                random,
                now_ns: START_NS,
            };
            let all = (0..count).map(|_| skewed.exchange(down_ns, up_ns));
            let all: Vec<Exchange> = all.collect();
            let found = ClockOffset::between(&all).unwrap();
            let end = all[all.len() - 1].returned_ns;
            for at in [START_NS, all[all.len() / 2].sent_ns, end] {
                let wrong = found.offset_ns.abs_diff(skewed.offset_at(at));
                assert!(
                    wrong <= found.uncertainty_ns,
                    "seed {seed}: {wrong} off, {found:?}"
                );
            }
            // The uncertainty is also useful: at most half of the best round trip, plus the drift.
            let best = all.iter().map(Exchange::round_trip_ns).min().unwrap();
            let most = best / 2 + 102 + (end - START_NS) / 10_000;
            assert!(found.uncertainty_ns <= most, "{found:?}");

            let later = skewed.now_ns + 60_000_000_000;
            let aged = found.aged(60_000_000_000);
            assert!(aged.offset_ns.abs_diff(skewed.offset_at(later)) <= aged.uncertainty_ns);
        }
    }

    fn exchange([sent_ns, received_ns, answered_ns, returned_ns]: [u64; 4]) -> Exchange {
        Exchange {
            sent_ns,
            received_ns,
            answered_ns,
            returned_ns,
            ..Exchange::default()
        }
    }

    #[test]
    fn even_delays_give_the_offset_itself() {
        let even = exchange([1_000, 5_001_500, 5_001_700, 2_200]);
        let slow = Exchange {
            returned_ns: 900_000,
            ..even
        };
        let offset = ClockOffset::between(&[slow, even]).unwrap();
        assert_eq!(offset.offset_ns, 5_000_000);
        assert_eq!(offset.on_the_other(5_001_500), 1_500);
        assert_eq!(ClockOffset::between(&[]), None);
    }

    /// An exchange in which a message arrives before it was sent is ignored.
    #[test]
    fn exchanges_that_cannot_be_are_not_believed() {
        let lie = exchange([1_000, 10, 5_000, 1_100]);
        assert_eq!(ClockOffset::between(&[lie]), None);
    }

    fn offset(offset_ns: i64, uncertainty_ns: u64) -> ClockOffset {
        ClockOffset {
            offset_ns,
            uncertainty_ns,
        }
    }

    #[test]
    fn offsets_and_uncertainties_add_along_the_tree() {
        let tree = crate::tests::tree("parents:0,1,2,0");
        let clocks = ["a", "b", "", "a", "b"].map(str::to_owned);
        let measured = [
            None,
            Some(offset(1_000, 10)),
            Some(offset(-300, 20)),
            Some(offset(9, 9)),
            Some(offset(1_005, 70)),
        ];
        let offsets = offsets_to_root(&tree, &clocks, &measured).unwrap();
        // P3 is on P0's host. P4 is on P1's host; the one that is met first determines the offset
        // of both.
        assert_eq!(offsets[2], offset(700, 30));
        assert!(offsets[0].is_shared() && offsets[3].is_shared());
        assert_eq!(offsets[1], offsets[4]);
        let lacking = [None, None, measured[2], None, None];
        assert_eq!(offsets_to_root(&tree, &clocks, &lacking), Err(PeId(1)));
    }
}
