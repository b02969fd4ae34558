//! What a run came to: figures over its rounds, or a failure.

mod failure;

use std::time::Duration;

use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::ops::Operation;
use flitcast_proto::wire::control::Report;
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use crate::job::model::since;
use crate::rounds::conducted::Rounds;
use crate::text::figures::as_micros;

#[cfg(test)]
pub use failure::WHY_CHARS;
pub use failure::{Aftermath, Failure, Lacking, Whereabouts};

/// The spread of one figure over the rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The least.
    #[serde(serialize_with = "as_micros")]
    pub min: u64,
    /// The middle one; of an even number, the mean of the middle two.
    #[serde(serialize_with = "as_micros")]
    pub median: u64,
    /// 95 % of the values are at most this; see [`percentile`]. Only a bench has rounds enough.
    #[serde(skip)]
    pub p95: u64,
    /// The greatest.
    #[serde(serialize_with = "as_micros")]
    pub max: u64,
}

/// By nearest rank: the least of these values, which are at least one and in rising
/// order, that `percent` (1 to 100) of them do not exceed. It is always a value that
/// was measured.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank - 1]
}

impl Spread {
    /// Of at least one value; `None` of none.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Spread> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => u64::midpoint(values[middle - 1], values[middle]),
        };
        let p95 = percentile(&values, 95);
        Some(Spread {
            min,
            median,
            p95,
            max,
        })
    }
}

/// When a round began, which the root's report tells, and no other.
pub fn started_ns(reports: &[Report]) -> u64 {
    let told = reports.iter().map(|report| report.started_ns);
    told.max().unwrap_or(0)
}

/// What a round took: from the root's trigger to the last byte of the last message; `None`
/// if there was nothing to send. `reports` are the PEs', by index, and so are their `clocks`.
pub fn round_ns(reports: &[Report], clocks: &[ClockOffset]) -> Option<u64> {
    let started_ns = started_ns(reports);
    let arrivals = reports.iter().zip(clocks).flat_map(|(report, clock)| {
        let arrivals = report.arrivals.iter();
        arrivals.map(|arrival| since(started_ns, arrival.at_ns, *clock))
    });
    arrivals.max()
}

/// The latest of the times of each PE's deliveries, by PE index: of those in its row of a report.
/// `times_ns` is by delivery.
pub fn by_row(operation: Operation, tree: &Tree, times_ns: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut latest = vec![None; tree.len()];
    for delivery in operation.all_deliveries(tree) {
        let row = &mut latest[operation.row(tree, delivery).index()];
        *row = (*row).max(times_ns[delivery.index()]);
    }
    latest
}

/// One PE's part: the deliveries in its row.
#[derive(Clone, Debug)]
pub struct PeOutcome {
    /// Which PE.
    pub pe: PeId,
    /// Bytes of them all.
    pub bytes: u64,
    /// When the last of them was expected; `None` if it has none.
    pub predicted_ns: Option<u64>,
    /// When the last of them arrived, over the rounds.
    pub measured: Option<Spread>,
    /// The process's largest resident set.
    pub peak_resident_bytes: u64,
    /// Packets that TCP has sent again from here along the tree's edges, in all rounds.
    pub retransmitted_packets: u64,
}

/// What was predicted of something, and what it took over the rounds; in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// As predicted.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// As measured.
    #[serde(rename = "measured_us")]
    pub measured: Spread,
}

/// Of rounds with files, where their time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// From the root's trigger until every message is durable and visible.
    pub whole: Beside,
    /// From the root's trigger to the last byte of the last message.
    pub transfer: Beside,
    /// Of that, the longest that any PE waits for its files.
    pub disk: Beside,
    /// From the last byte until every message is durable and visible.
    pub commit: Beside,
}

impl Phases {
    /// Of these rounds; `None` without files, or with nothing to send.
    fn of(rounds: &Rounds, rounds_ns: &[u64]) -> Option<Phases> {
        rounds.files.as_ref()?;
        let clocks = &rounds.measured.clocks;
        let beside = |predicted_ns, measured: Vec<u64>| {
            let measured = Spread::of(measured)?;
            Some(Beside {
                predicted_ns,
                measured,
            })
        };
        let waited = |round: &Vec<Report>| round.iter().map(|report| report.files_ns).max();
        let visible = |round: &Vec<Report>| {
            let started_ns = started_ns(round);
            let each = round.iter().zip(clocks).flat_map(|(report, clock)| {
                let arrivals = report.arrivals.iter();
                arrivals.map(|arrival| since(started_ns, arrival.delivered_ns, *clock))
            });
            each.max()
        };
        let whole: Vec<u64> = rounds.reports.iter().filter_map(visible).collect();
        let commits = whole
            .iter()
            .zip(rounds_ns)
            .map(|(visible, arrived)| visible.saturating_sub(*arrived));
        let predicted = &rounds.prediction;
        Some(Phases {
            whole: beside(predicted.round_ns() + predicted.commit_ns(), whole.clone())?,
            transfer: beside(predicted.round_ns(), rounds_ns.to_vec())?,
            disk: beside(
                predicted.disk_ns(),
                rounds.reports.iter().filter_map(waited).collect(),
            )?,
            commit: beside(predicted.commit_ns(), commits.collect())?,
        })
    }
}

/// A run that ended well.
#[derive(Debug)]
pub struct Outcome {
    /// How long it took until all processes had registered.
    pub launching: Duration,
    /// All that was planned and measured.
    pub rounds: Rounds,
    /// Those that there are, in index order.
    pub pes: Vec<PeOutcome>,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Nonnull messages.
    pub messages: u64,
    /// What a round was expected to take.
    pub predicted_ns: u64,
    /// What it took: from the root's trigger to the last byte of the last message.
    pub measured: Option<Spread>,
    /// Where that goes, with files.
    pub phases: Option<Phases>,
    /// What it took, round by round; empty if there is nothing to send.
    pub rounds_ns: Vec<u64>,
    /// How far the clock of any PE may be off P0's in this: 0 where all are one.
    pub clock_uncertainty_ns: u64,
    /// Flits that had to wait for a busy port, in the worst round.
    pub collisions: u64,
    /// Flits of passing messages in one PE's user memory, at most.
    pub peak_buffered_flits: u64,
    /// Frames of earlier rounds that were dropped, in all rounds.
    pub late_frames: u64,
    /// Frames that came more than once and were dropped, in all rounds.
    pub repeated_frames: u64,
}

/// Flits that had to wait for a busy port in a round.
pub fn round_collisions(reports: &[Report]) -> u64 {
    reports.iter().map(|report| report.collisions).sum()
}

/// How far a predicted time is from a measured one, in percent of the latter, which is
/// above 0.
pub fn error_pct(predicted_ns: u64, measured_ns: u64) -> f64 {
    let measured = measured_ns as f64;
    (predicted_ns as f64 - measured) / measured * 100.0
}

/// How many times longer than predicted a round takes, or took, if that is worth a word.
pub fn slowdown(elapsed: Duration, predicted_ns: u64) -> Option<f64> {
    const WORTH_A_WORD: f64 = 2.0;
    const SHORTEST: Duration = Duration::from_secs(1);
    let times = elapsed.as_nanos() as f64 / predicted_ns.max(1) as f64;
    (times >= WORTH_A_WORD && elapsed >= SHORTEST).then_some(times)
}

impl Outcome {
    /// Works out the figures.
    pub fn new(launching: Duration, tree: &Tree, operation: Operation, rounds: Rounds) -> Outcome {
        let started = |round: usize| started_ns(&rounds.reports[round]);
        let arrivals: Vec<Vec<Option<u64>>> = (0..rounds.reports.len())
            .map(|round| {
                let mut arrivals = vec![None; operation.deliveries(tree)];
                let reports = rounds.reports[round].iter().zip(&rounds.measured.clocks);
                for (report, clock) in reports {
                    for arrival in &report.arrivals {
                        let (message, at) = (arrival.message, arrival.destination);
                        let delivery = operation.delivery(tree, message, at);
                        // A PE may tell of what there is not.
                        if let Some(told) = arrivals.get_mut(delivery.index()) {
                            *told = Some(since(started(round), arrival.at_ns, *clock));
                        }
                    }
                }
                by_row(operation, tree, &arrivals)
            })
            .collect();
        let predicted_ns = by_row(operation, tree, &rounds.prediction.arrivals_ns);
        let mut bytes = vec![0u64; tree.len()];
        for delivery in operation.all_deliveries(tree) {
            let row = &mut bytes[operation.row(tree, delivery).index()];
            *row = row.saturating_add(rounds.bytes[delivery.index()]);
        }
        let reports = || rounds.reports.iter().flatten();
        let pes = tree
            .pes()
            .map(|pe| {
                let i = pe.index();
                let of_pe = || rounds.reports.iter().map(|round| &round[i]);
                let resident = of_pe().map(|report| report.peak_resident_bytes);
                PeOutcome {
                    pe,
                    bytes: bytes[i],
                    predicted_ns: predicted_ns[i],
                    measured: Spread::of(arrivals.iter().filter_map(|round| round[i])),
                    peak_resident_bytes: resident.max().unwrap_or(0),
                    retransmitted_packets: of_pe().map(|r| r.retransmitted_packets).sum(),
                }
            })
            .collect();
        let clocks = &rounds.measured.clocks;
        let of_rounds = rounds.reports.iter().filter_map(|r| round_ns(r, clocks));
        let rounds_ns: Vec<u64> = of_rounds.collect();
        Outcome {
            launching,
            pes,
            bytes: operation.total(tree, &rounds.bytes),
            messages: operation.lengths(tree, &rounds.bytes).count() as u64,
            predicted_ns: rounds.prediction.round_ns(),
            measured: Spread::of(rounds_ns.iter().copied()),
            phases: Phases::of(&rounds, &rounds_ns),
            rounds_ns,
            clock_uncertainty_ns: rounds
                .measured
                .clocks
                .iter()
                .map(|clock| clock.uncertainty_ns)
                .max()
                .unwrap_or(0),
            collisions: rounds
                .reports
                .iter()
                .map(|round| round_collisions(round))
                .max()
                .unwrap_or(0),
            late_frames: reports().map(|r| r.late_frames).sum(),
            repeated_frames: reports().map(|r| r.repeated_frames).sum(),
            peak_buffered_flits: reports().map(|r| r.peak_buffered_flits).max().unwrap_or(0),
            rounds,
        }
    }

    /// How many times longer it took than was predicted; `None` where it did not, or was
    /// too short to tell what a machine's own pauses do to it.
    pub fn slowdown(&self) -> Option<f64> {
        let measured_ns = self.measured?.median;
        slowdown(Duration::from_nanos(measured_ns), self.predicted_ns)
    }

    /// Packets that TCP has sent again along the tree's edges, in all rounds.
    pub fn retransmitted_packets(&self) -> u64 {
        self.pes.iter().map(|pe| pe.retransmitted_packets).sum()
    }

    /// How far the prediction is from what was measured, in percent of the latter.
    pub fn error_pct(&self) -> Option<f64> {
        let measured = self.measured.filter(|spread| spread.median > 0)?;
        Some(error_pct(self.predicted_ns, measured.median))
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::wire::control::{Arrival, Report};
    use flitcast_proto::{MessageId, RoundId};

    use super::*;

    #[test]
    fn percentiles_go_by_nearest_rank() {
        let p95 = |values: Vec<u64>| Spread::of(values).map(|spread| spread.p95);
        assert_eq!(p95(vec![]), None);
        assert_eq!(p95(vec![7]), Some(7));
        assert_eq!(p95(vec![9, 7]), Some(9));
        assert_eq!(p95((1..=19).collect()), Some(19), "18 are only 94.7 %");
        assert_eq!(p95((1..=20).rev().collect()), Some(19));
        assert_eq!(p95((1..=100).collect()), Some(95));
        assert_eq!(p95((1..=101).collect()), Some(96));
    }

    #[test]
    fn an_even_number_has_two_middles() {
        let median = |values: &[u64]| Spread::of(values.iter().copied()).map(|s| s.median);
        assert_eq!(median(&[30, 10, 20]), Some(20));
        assert_eq!(median(&[40, 10, 20, 31]), Some(25));
    }

    #[test]
    fn another_hosts_clock_is_never_subtracted_bare() {
        let ahead = ClockOffset {
            offset_ns: 5_000_000_000,
            uncertainty_ns: 20_000,
        };
        let behind = ClockOffset {
            offset_ns: -5_000_000_000,
            ..ahead
        };
        let started = 6_000_000_000;
        assert_eq!(since(started, 6_000_700_000, ClockOffset::SHARED), 700_000);
        assert_eq!(since(started, 11_000_700_000, ahead), 700_000);
        assert_eq!(since(started, 1_000_700_000, behind), 700_000);
        assert_eq!(since(started, 10_999_999_000, ahead), 0);

        let mut reports = vec![Report::blank(RoundId(1), Vec::new()); 2];
        reports[0].started_ns = started;
        let clocks = [ClockOffset::SHARED, behind];
        assert_eq!(round_ns(&reports, &clocks), None);
        reports[1].arrivals = vec![Arrival {
            message: MessageId(1),
            source: PeId::ROOT,
            destination: PeId(1),
            bytes_received: 7,
            bytes_total: 7,
            delivered: true,
            at_ns: 1_000_700_000,
            delivered_ns: 0,
        }];
        assert_eq!(round_ns(&reports, &clocks), Some(700_000));
    }
}
