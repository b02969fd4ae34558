//! An estimate of the time until all commands of a map have ended.

use std::time::Duration;

/// The durations of the commands that have run to their ends.
#[derive(Debug, Default)]
pub struct Durations {
    /// In increasing order.
    all: Vec<Duration>,
    total: Duration,
}

impl Durations {
    pub fn add(&mut self, took: Duration) {
        let place = self.all.partition_point(|shorter| *shorter < took);
        self.all.insert(place, took);
        self.total = self.total.saturating_add(took);
    }

    /// Returns the median, the longer one of two.
    pub fn median(&self) -> Option<Duration> {
        self.all.get(self.all.len() / 2).copied()
    }

    /// Estimates the time until `waiting` commands and those that run have ended, `slots` at once, if each
    /// takes the mean duration. `running` has the time since the begin of each that runs. Returns `None`
    /// before a command has ended, and when each that runs has taken longer than the others.
    pub fn remaining(
        &self,
        waiting: usize,
        running: impl Iterator<Item = Duration>,
        slots: usize,
    ) -> Option<Duration> {
        let count = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let mean = self.total.checked_div(count)?;
        let left: Vec<Duration> = running.map(|ran| mean.saturating_sub(ran)).collect();
        let waiting_for = u32::try_from(waiting).unwrap_or(u32::MAX);
        let work = mean.saturating_mul(waiting_for);
        let work = left
            .iter()
            .fold(work, |work, left| work.saturating_add(*left));
        let slots = slots.clamp(1, (waiting + left.len()).max(1));
        let remaining = work / u32::try_from(slots).unwrap_or(u32::MAX);
        (!remaining.is_zero()).then_some(remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_mean_of_the_commands_that_ended_is_expected() {
        let mut durations = Durations::default();
        assert_eq!(durations.remaining(3, [].into_iter(), 2), None);
        assert_eq!(durations.median(), None);
        durations.add(SECOND * 5);
        durations.add(SECOND * 3);
        assert_eq!(durations.median(), Some(SECOND * 5));
        for (waiting, running, slots, expected) in [
            (6, &[][..], 2, 12),
            (6, &[SECOND, SECOND * 3], 2, 14),
            (1, &[], 8, 4),
            (0, &[SECOND * 9, SECOND * 2], 2, 1),
        ] {
            let remaining = durations.remaining(waiting, running.iter().copied(), slots);
            assert_eq!(remaining, Some(SECOND * expected), "{waiting} {running:?}");
        }
        assert_eq!(durations.remaining(0, [SECOND * 4].into_iter(), 2), None);
    }
}
