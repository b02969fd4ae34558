//! The spans of the round that a chart shows: the choice of the round, and the spans that are kept
//! until it is known.

use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_proto::wire::control::Report;

use crate::rounds::outcome::{MeasuredRound, MedianMinMax, round_ns, started_ns};
use crate::tuning::MAX_KEPT_SPANS;

/// The spans of the rounds so far. If there are too many, those of the rounds farthest from the
/// median are dropped.
#[derive(Debug, Default)]
pub struct Recording {
    rounds: Vec<MeasuredRound>,
    /// Durations of all rounds, including those whose spans were dropped.
    rounds_ns: Vec<u64>,
    kept_spans: usize,
}

impl Recording {
    /// Moves the spans out of the PEs' reports on a round; `clocks` are the PEs' clocks.
    pub fn keep(&mut self, reports: &mut [Report], clocks: &[ClockOffset]) {
        let Some(round) = reports.first().map(|report| report.round) else {
            return;
        };
        let started_ns = started_ns(reports);
        let round_ns = round_ns(reports, clocks).unwrap_or(0);
        let spans = reports.iter_mut().map(|it| std::mem::take(&mut it.spans));
        let round = MeasuredRound {
            round,
            round_ns,
            started_ns,
            spans: spans.collect(),
        };
        self.rounds_ns.push(round_ns);
        self.kept_spans += round.len();
        self.rounds.push(round);
        if self.kept_spans > MAX_KEPT_SPANS {
            self.forget_beyond(MAX_KEPT_SPANS / 2);
        }
    }

    /// Drops spans, half of them at a time, so that rounds are sorted rarely.
    fn forget_beyond(&mut self, most: usize) {
        let median = self.median_ns();
        self.rounds
            .sort_by_key(|round| (round.round_ns.abs_diff(median), round.round));
        while self.kept_spans > most && self.rounds.len() > 1 {
            let farthest = self.rounds.pop();
            self.kept_spans -= farthest.map_or(0, |round| round.len());
        }
    }

    fn median_ns(&self) -> u64 {
        MedianMinMax::of(self.rounds_ns.iter().copied()).map_or(0, |spread| spread.median)
    }

    /// Returns the round with the median duration, or the nearest one that was kept.
    pub fn median_round(self) -> Option<MeasuredRound> {
        let median = self.median_ns();
        let rounds = self.rounds.into_iter();
        rounds.min_by_key(|round| (round.round_ns.abs_diff(median), round.round))
    }
}

impl MeasuredRound {
    fn len(&self) -> usize {
        self.spans.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::spans::{Port, Span, SpanItem};
    use flitcast_proto::wire::control::{Arrival, Begin, Report};
    use flitcast_proto::{PeId, RoundId};

    use super::*;
    use crate::job::test_tree::arrival;

    /// Returns the reports of P0 and P1 on a round of this duration.
    fn reports(round: u64, round_ns: u64) -> Vec<Report> {
        let arrival = Arrival {
            at_ns: 100 + round_ns,
            ..arrival(PeId(1))
        };
        let span = Span {
            port: Port::Send,
            peer: PeId(1),
            item: SpanItem::Token,
            begin_ns: 100,
            end_ns: 101,
        };
        let report = |started_ns, arrivals| Report {
            complete: true,
            begin: Begin {
                started_ns,
                began_ns: 0,
            },
            spans: vec![span; 10],
            ..Report::blank(RoundId(round), arrivals)
        };
        vec![report(100, Vec::new()), report(0, vec![arrival])]
    }

    fn recorded(rounds_ns: &[u64]) -> Recording {
        let mut recording = Recording::default();
        for (round, &ns) in (1..).zip(rounds_ns) {
            let mut reports = reports(round, ns);
            recording.keep(&mut reports, &[ClockOffset::SHARED; 2]);
            assert!(reports.iter().all(|report| report.spans.is_empty()));
        }
        recording
    }

    #[test]
    fn the_round_that_is_shown_took_the_median_time() {
        for (rounds_ns, shown) in [
            (&[7][..], 1),
            (&[9, 5, 7, 1, 8], 3),
            // The first of two equally near ones.
            (&[1, 8, 4, 20], 2),
            (&[5, 5, 5], 1),
        ] {
            let round = recorded(rounds_ns).median_round().unwrap();
            assert_eq!(round.round, RoundId(shown), "{rounds_ns:?}");
            assert_eq!(round.round_ns, rounds_ns[shown as usize - 1]);
            assert_eq!(round.started_ns, 100);
            assert_eq!(round.len(), 20);
        }
        assert!(Recording::default().median_round().is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_nearest_to_the_median() {
        let mut recording = recorded(&[50, 10, 48, 90, 49]);
        recording.forget_beyond(59);
        assert_eq!(recording.kept_spans, 40);
        let mut kept: Vec<u64> = recording.rounds.iter().map(|r| r.round_ns).collect();
        kept.sort_unstable();
        // 48 is as near as 50, which came first.
        assert_eq!(kept, [49, 50]);
        // Dropped rounds still count for the median.
        assert_eq!(recording.median_ns(), 49);
        recording.forget_beyond(0);
        assert_eq!(recording.rounds.len(), 1, "one round is always kept");
    }
}
