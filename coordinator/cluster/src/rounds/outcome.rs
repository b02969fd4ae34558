//! The result of a run: the raw results of its rounds and statistics over them, or a failure.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_plan::Algorithm;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::predict::Prediction;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::spans::Span;
use flitcast_proto::wire::control::{Arrival, Report, SkippedFiles};
use flitcast_proto::{DeliveryId, PeId, RoundId, Tree, Unkept};
use serde::Serialize;

use crate::job::decisions::Decisions;
use crate::job::host_costs::HostCosts;
use crate::job::host_costs::files::KnownFiles;
use crate::job::model::{Measurement, since};
use crate::rounds::versions::SeenVersions;
use crate::text::figures::as_micros;
use crate::tuning::{SLOW_LEAST, SLOW_RATIO};

mod failure;

pub use failure::{AftermathOf, DeliverySummary, Failure, MissingDelivery, PeLocation, WHY_CHARS};

/// The messages and files that are not sent because the output has them, and attributes that are not.
#[derive(Clone, Debug, Default)]
pub struct Unsent {
    /// The lengths of the messages by delivery, with what is not sent.
    pub lengths: Vec<u64>,
    /// Deliveries that equal what is at their destinations.
    pub messages: Vec<DeliveryId>,
    /// Number and bytes of the files that are left out of other messages.
    pub files: SkippedFiles,
    /// The entries some of whose attributes are not sent, or could not be set in the last round.
    pub unkept: Unkept,
}

/// The plan and the measurements of rounds.
#[derive(Debug)]
pub struct RoundsResult {
    /// The lengths by delivery of what the rounds sent, in bytes.
    pub bytes: Vec<u64>,
    /// The lengths of the whole messages, by delivery: the rounds sent nothing of a prefix that an
    /// earlier run had left.
    pub whole: Vec<u64>,
    /// Deliveries that were not sent because they existed with a receipt.
    pub found: Vec<DeliveryId>,
    /// The messages, files and attributes that were not sent.
    pub unsent: Unsent,
    /// The versions of messages made of files.
    pub seen: SeenVersions,
    /// The edges and the clocks; the clocks' uncertainty is that after the last round.
    pub measured: Measurement,
    /// The assumed costs of processes.
    pub costs: HostCosts,
    /// The assumed costs of files; `None` without files.
    pub files: Option<KnownFiles>,
    pub decisions: Decisions,
    /// The schedule of each PE, by PE index.
    pub schedules: Vec<PeSchedule>,
    pub prediction: Prediction,
    /// The threads of other programs that were busy on this machine before the rounds, as in the
    /// prediction.
    pub busy_threads: u32,
    /// Duration of the edges' measurement; `None` if a profile replaces it.
    pub probing: Option<Duration>,
    /// For each round, the PEs' reports by PE index, without their spans.
    pub reports: Vec<Vec<Report>>,
    /// The spans of the median round, if spans were requested.
    pub recorded: Option<MeasuredRound>,
}

/// The spans of a round.
#[derive(Debug)]
pub struct MeasuredRound {
    pub round: RoundId,
    pub round_ns: u64,
    /// When P0 was triggered, on the clock of the spans.
    pub started_ns: u64,
    /// The spans of each PE, by PE index.
    pub spans: Vec<Vec<Span>>,
}

/// Writes the record of a run; it may block on the disk.
pub type Record = Box<dyn FnOnce() + Send>;

/// Returns the function that writes the record, from the state before the first round; `None` if
/// the run has no record.
pub type Recorder<'a> = &'a dyn Fn(&DeliverySummary) -> Option<Record>;

/// The distribution of one figure over the rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MedianMinMax {
    #[serde(serialize_with = "as_micros")]
    pub min: u64,
    /// The median; of an even number of values, the mean of the middle two.
    #[serde(serialize_with = "as_micros")]
    pub median: u64,
    /// The 95th percentile, see [`percentile`]; used by benchmarks only, which have enough rounds.
    #[serde(skip)]
    pub p95: u64,
    #[serde(serialize_with = "as_micros")]
    pub max: u64,
}

/// Returns the percentile by nearest rank: the least of these values, at least one and in
/// increasing order, that is not exceeded by `percent` (1 to 100) percent of them.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank - 1]
}

impl MedianMinMax {
    /// Computes the distribution of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<MedianMinMax> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => u64::midpoint(values[middle - 1], values[middle]),
        };
        let p95 = percentile(&values, 95);
        Some(MedianMinMax {
            min,
            median,
            p95,
            max,
        })
    }
}

/// Returns when a round began, which only the root's report contains.
pub fn started_ns(reports: &[Report]) -> u64 {
    let starts = reports.iter().map(|report| report.begin.started_ns);
    starts.max().unwrap_or(0)
}

/// Returns the arrivals that the PEs have reported, each with a time of it after the root's trigger.
/// `reports` and `clocks` are by PE index.
fn arrivals<'a>(
    reports: &'a [Report],
    clocks: &'a [ClockOffset],
    at_ns: fn(&Arrival) -> u64,
) -> impl Iterator<Item = (&'a Arrival, u64)> {
    let started_ns = started_ns(reports);
    let reports = reports.iter().zip(clocks);
    reports.flat_map(move |(report, clock)| {
        let time = move |of| (of, since(started_ns, at_ns(of), *clock));
        report.arrivals.iter().map(time)
    })
}

/// Returns the duration of a round, from the root's trigger to the last byte of the last message;
/// `None` if there was nothing to send. `reports` and `clocks` are by PE index.
pub fn round_ns(reports: &[Report], clocks: &[ClockOffset]) -> Option<u64> {
    let times = arrivals(reports, clocks, |arrival| arrival.at_ns);
    times.map(|(_, ns)| ns).max()
}

/// Returns the time from the common begin of a round until the last PE began; `None` if P0 alone was
/// triggered.
fn begun_within_ns(reports: &[Report], clocks: &[ClockOffset]) -> Option<u64> {
    let started_ns = started_ns(reports);
    let began = reports.iter().zip(clocks);
    let began = began.filter(|(report, _)| report.begin.began_ns > 0);
    let within = began.map(|(report, clock)| since(started_ns, report.begin.began_ns, *clock));
    within.clone().nth(1)?;
    within.max()
}

/// Returns for each PE index the latest time of the deliveries in the PE's row of a report.
/// `times_ns` is by delivery.
pub fn by_row(operation: Algorithm, tree: &Tree, times_ns: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut latest = vec![None; tree.len()];
    for delivery in operation.collective().all_deliveries(tree) {
        let row = &mut latest[operation.collective().row(tree, delivery).index()];
        *row = (*row).max(times_ns[delivery.index()]);
    }
    latest
}

/// Returns for each PE index the bytes of the deliveries in the PE's row of a report. `bytes` is by
/// delivery.
pub fn bytes_by_row(operation: Algorithm, tree: &Tree, bytes: &[u64]) -> Vec<u64> {
    let mut sums = vec![0u64; tree.len()];
    for delivery in operation.collective().all_deliveries(tree) {
        let row = &mut sums[operation.collective().row(tree, delivery).index()];
        *row = row.saturating_add(bytes[delivery.index()]);
    }
    sums
}

/// The results of one PE: the deliveries in its row.
#[derive(Clone, Debug)]
pub struct PeOutcome {
    pub pe: PeId,
    /// The host that it has joined from, if it has.
    pub host: Option<String>,
    /// Bytes of all deliveries.
    pub bytes: u64,
    /// Predicted time of the last delivery; `None` if there is none.
    pub predicted_ns: Option<u64>,
    /// Measured time of the last delivery, over the rounds.
    pub measured: Option<MedianMinMax>,
    /// Largest resident set of the process; `None` if it has run no round.
    pub peak_resident_bytes: Option<u64>,
    /// Packets that TCP has retransmitted from this PE on the tree's edges, in all rounds.
    pub retransmitted_packets: u64,
}

/// A predicted and a measured duration, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PredictedVsMeasured {
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The measurements over the rounds; `None` if no round was run.
    #[serde(rename = "measured_us")]
    pub measured: Option<MedianMinMax>,
}

/// The durations of the phases of rounds with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// From the root's trigger until every message is durable and visible.
    pub whole: PredictedVsMeasured,
    /// From the root's trigger to the last byte of the last message.
    pub transfer: PredictedVsMeasured,
    /// The longest wait of a PE for its files during the transfer.
    pub disk: PredictedVsMeasured,
    /// From the last byte until every message is durable and visible.
    pub commit: PredictedVsMeasured,
}

impl Phases {
    /// Computes the phases of these rounds; `None` without files, or with nothing to send.
    fn of(rounds: &RoundsResult, rounds_ns: &[u64]) -> Option<Phases> {
        let predicted = &rounds.prediction;
        rounds.files.as_ref()?;
        predicted.arrivals_ns.iter().flatten().next()?;
        let clocks = &rounds.measured.clocks;
        let beside = |predicted_ns, measured: Vec<u64>| PredictedVsMeasured {
            predicted_ns,
            measured: MedianMinMax::of(measured),
        };
        let waited = |round: &Vec<Report>| round.iter().map(|report| report.files_ns).max();
        let visible = |round: &Vec<Report>| {
            let times = arrivals(round, clocks, |arrival| arrival.delivered_ns);
            times.map(|(_, ns)| ns).max()
        };
        let whole: Vec<u64> = rounds.reports.iter().filter_map(visible).collect();
        let commits = whole.iter().zip(rounds_ns);
        let commits = commits.map(|(visible, arrived)| visible.saturating_sub(*arrived));
        let waits = rounds.reports.iter().filter_map(waited);
        Some(Phases {
            commit: beside(predicted.commit_ns(), commits.collect()),
            whole: beside(predicted.round_ns() + predicted.commit_ns(), whole),
            transfer: beside(predicted.round_ns(), rounds_ns.to_vec()),
            disk: beside(predicted.disk_ns(), waits.collect()),
        })
    }
}

/// The result of a successful run.
#[derive(Debug)]
pub struct Outcome {
    /// Time until all processes had registered.
    pub launching: Duration,
    pub rounds: RoundsResult,
    /// Results of the present PEs, in index order.
    pub pes: Vec<PeOutcome>,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Number of nonnull messages.
    pub messages: u64,
    /// Predicted duration of a round.
    pub predicted_ns: u64,
    /// Measured duration, from the root's trigger to the last byte of the last message; `None` if no
    /// round was run, or there is nothing to send.
    pub measured: Option<MedianMinMax>,
    /// Durations of the phases, with files.
    pub phases: Option<Phases>,
    /// Measured duration of each round; empty if there is nothing to send.
    pub rounds_ns: Vec<u64>,
    /// Time from the common begin of a round until the last PE began; `None` if P0 alone is
    /// triggered, or no round was run.
    pub begun_within: Option<MedianMinMax>,
    /// Maximum uncertainty of a PE's clock relative to P0's; 0 if all use the same clock.
    pub clock_uncertainty_ns: u64,
    /// Flits that had to wait for a busy port, in the worst round.
    pub collisions: u64,
    /// Maximum number of flits of other PEs' messages in the memory of one PE.
    pub peak_buffered_flits: u64,
    /// Frames of earlier rounds that were dropped, in all rounds.
    pub late_frames: u64,
    /// Frames that arrived more than once and were dropped, in all rounds.
    pub repeated_frames: u64,
}

/// Returns the number of flits that had to wait for a busy port in a round.
pub fn round_collisions(reports: &[Report]) -> u64 {
    reports.iter().map(|report| report.collisions).sum()
}

/// Returns the deviation of a predicted time from a measured one, which is above 0, in percent of
/// the latter.
pub fn error_pct(predicted_ns: u64, measured_ns: u64) -> f64 {
    let measured = measured_ns as f64;
    (predicted_ns as f64 - measured) / measured * 100.0
}

/// Returns the ratio of the elapsed to the predicted time of a round if it should be reported.
pub fn slowdown(elapsed: Duration, predicted_ns: u64) -> Option<f64> {
    let times = elapsed.as_nanos() as f64 / predicted_ns.max(1) as f64;
    (times >= SLOW_RATIO && elapsed >= SLOW_LEAST).then_some(times)
}

impl Outcome {
    /// Computes the result; `hosts` has those that PEs have joined from.
    pub fn new(
        launching: Duration,
        tree: &Tree,
        operation: Algorithm,
        rounds: RoundsResult,
        mut hosts: BTreeMap<PeId, String>,
    ) -> Outcome {
        let (collective, clocks) = (operation.collective(), &rounds.measured.clocks);
        let each = || rounds.reports.iter();
        let rows = |round: &Vec<Report>| {
            let mut times = vec![None; collective.deliveries(tree)];
            for (arrival, ns) in arrivals(round, clocks, |arrival| arrival.at_ns) {
                let delivery = collective.delivery(tree, arrival.message, arrival.destination);
                // A PE may report a delivery that does not exist.
                if let Some(time) = times.get_mut(delivery.index()) {
                    *time = Some(ns);
                }
            }
            by_row(operation, tree, &times)
        };
        let measured: Vec<Vec<Option<u64>>> = each().map(rows).collect();
        let predicted_ns = by_row(operation, tree, &rounds.prediction.arrivals_ns);
        let bytes = bytes_by_row(operation, tree, &rounds.bytes);
        let pes = tree.pes().map(|pe| {
            let i = pe.index();
            let of_pe = || each().map(|round| &round[i]);
            let resident = of_pe().map(|report| report.peak_resident_bytes);
            PeOutcome {
                pe,
                host: hosts.remove(&pe),
                bytes: bytes[i],
                predicted_ns: predicted_ns[i],
                measured: MedianMinMax::of(measured.iter().filter_map(|round| round[i])),
                peak_resident_bytes: resident.max(),
                retransmitted_packets: of_pe().map(|r| r.retransmitted_packets).sum(),
            }
        });
        let pes = pes.collect();
        let rounds_ns: Vec<u64> = each().filter_map(|r| round_ns(r, clocks)).collect();
        let begun_within = each().filter_map(|round| begun_within_ns(round, clocks));
        let uncertainties = clocks.iter().map(|clock| clock.uncertainty_ns);
        let collisions = each().map(|round| round_collisions(round));
        let reports = || each().flatten();
        Outcome {
            launching,
            pes,
            bytes: collective.total(tree, &rounds.bytes),
            messages: collective.lengths(tree, &rounds.bytes).count() as u64,
            predicted_ns: rounds.prediction.round_ns(),
            measured: MedianMinMax::of(rounds_ns.iter().copied()),
            phases: Phases::of(&rounds, &rounds_ns),
            rounds_ns,
            begun_within: MedianMinMax::of(begun_within),
            clock_uncertainty_ns: uncertainties.max().unwrap_or(0),
            collisions: collisions.max().unwrap_or(0),
            late_frames: reports().map(|r| r.late_frames).sum(),
            repeated_frames: reports().map(|r| r.repeated_frames).sum(),
            peak_buffered_flits: reports().map(|r| r.peak_buffered_flits).max().unwrap_or(0),
            rounds,
        }
    }

    /// Returns the ratio of the measured to the predicted time; `None` if it is small, or if rounds
    /// are too short to distinguish it from pauses of the machine.
    pub fn slowdown(&self) -> Option<f64> {
        let measured_ns = self.measured?.median;
        slowdown(Duration::from_nanos(measured_ns), self.predicted_ns)
    }

    /// Returns the packets that TCP has retransmitted on the tree's edges, in all rounds.
    pub fn retransmitted_packets(&self) -> u64 {
        self.pes.iter().map(|pe| pe.retransmitted_packets).sum()
    }

    /// Returns the deviation of the prediction from the measurement, in percent of the latter.
    pub fn error_pct(&self) -> Option<f64> {
        let measured = self.measured.filter(|spread| spread.median > 0)?;
        Some(error_pct(self.predicted_ns, measured.median))
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::RoundId;

    use super::*;
    use crate::job::test_tree::arrival;

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let p95 = |values: Vec<u64>| MedianMinMax::of(values).map(|spread| spread.p95);
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
        let median = |values: &[u64]| MedianMinMax::of(values.iter().copied()).map(|s| s.median);
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
        reports[0].begin.started_ns = started;
        let clocks = [ClockOffset::SHARED, behind];
        assert_eq!(round_ns(&reports, &clocks), None);
        reports[1].arrivals = vec![Arrival {
            at_ns: 1_000_700_000,
            ..arrival(PeId(1))
        }];
        assert_eq!(round_ns(&reports, &clocks), Some(700_000));
    }
}
