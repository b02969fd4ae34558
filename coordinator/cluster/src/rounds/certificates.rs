//! The certificates of a gather by certification (paper 000, section III-B): c_i, n_i and s_i of every PE,
//! as the planner has them and as its parent and the PE itself received them, and when.

use flitcast_plan::algorithms::plan::{StreamPlan, streams};
use flitcast_proto::streams::{ChildStream, Streams};
use flitcast_proto::{PeId, RoundId, Tree};
use serde_json::{Value, json};

use crate::job::model::since;
use crate::rounds::outcome::{MedianMinMax, RoundsResult, round_ns, started_ns};
use crate::text::figures::micros;

/// A PE's certificate, the s of its order, and the times of both and of the stream after the root's
/// trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFigures {
    /// c_i: time from the order until the stream's first flit is at the parent, in nanoseconds.
    pub lag_ns: u64,
    /// n_i: time that the stream takes on the edge to the parent.
    pub stream_ns: u64,
    /// Bytes of the stream according to the certificate.
    pub stream_bytes: u64,
    /// s_i: the time after the order at which the first flit is to be at the parent. `None` if the PE gets
    /// no order, like this order's time.
    pub after_ns: Option<u64>,
    /// Arrival of the certificate at the parent.
    pub certified_ns: u64,
    /// Arrival of the order at the PE.
    pub ordered_ns: Option<u64>,
    /// Arrival of the stream's first flit at the parent, and of its last; `None` if it has none.
    pub flits_ns: Option<[u64; 2]>,
}

impl StreamFigures {
    /// Returns the time from the order until the first flit was at the parent, which c_i promises and s_i
    /// orders.
    pub fn lag_taken_ns(&self) -> Option<u64> {
        Some(self.flits_ns?[0].saturating_sub(self.ordered_ns?))
    }

    /// Returns the time in which the stream arrived, from its first flit to its last.
    pub fn stream_taken_ns(&self) -> Option<u64> {
        self.flits_ns.map(|[first, last]| last - first)
    }

    fn json(&self) -> Value {
        let [first, last] = [0, 1].map(|end| self.flits_ns.map(|flits| micros(flits[end])));
        json!({
            "lag_us": micros(self.lag_ns),
            "stream_us": micros(self.stream_ns),
            "stream_bytes": self.stream_bytes,
            "after_us": self.after_ns.map(micros),
            "certified_us": micros(self.certified_ns),
            "ordered_us": self.ordered_ns.map(micros),
            "first_flit_us": first,
            "last_flit_us": last,
            "lag_taken_us": self.lag_taken_ns().map(micros),
        })
    }
}

/// The figures of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeCertificate {
    /// c_i, n_i and s_i from the planner, and the predicted times.
    pub planned: StreamFigures,
    /// The figures in the shown round; `None` if there was none, or if the PE did not certify.
    pub received: Option<StreamFigures>,
}

impl PeCertificate {
    pub fn json(&self) -> Value {
        json!({
            "planned": self.planned.json(),
            "received": self.received.as_ref().map(StreamFigures::json),
        })
    }
}

#[derive(Debug, Default)]
pub struct Certificates {
    /// The round whose received figures are shown: the one nearest to the median.
    pub round: Option<RoundId>,
    /// The figures by PE index; `None` for the root and absent PEs, and of other operations.
    pub pes: Vec<Option<PeCertificate>>,
}

impl Certificates {
    /// Returns the certificates of rounds; none unless these are gathers by certification.
    pub fn of(tree: &Tree, rounds: &RoundsResult) -> Certificates {
        let Some(plans) = streams(tree, &rounds.schedules) else {
            let pes = vec![None; tree.len()];
            return Certificates { round: None, pes };
        };
        let clocks = &rounds.measured.clocks;
        let all_ns = |at: usize| round_ns(&rounds.reports[at], clocks).unwrap_or(0);
        let each = 0..rounds.reports.len();
        let median = MedianMinMax::of(each.clone().map(all_ns)).map_or(0, |spread| spread.median);
        let shown = each.min_by_key(|at| all_ns(*at).abs_diff(median));
        let shown = shown.map(|at| &rounds.reports[at]);
        let predicted: Vec<&Streams> = rounds.prediction.streams.iter().collect();
        let received: Option<Vec<&Streams>> =
            shown.map(|reports| reports.iter().map(|report| &report.streams).collect());
        let started_ns = shown.map_or(0, |reports| started_ns(reports));
        let of_pe = |pe: PeId| {
            let parent = tree.parent(pe)?;
            let at_root = |_, ns| ns;
            let planned = planned(&plans[pe.index()], figures(&predicted, parent, pe, at_root));
            let on_clock = |pe: PeId, ns| since(started_ns, ns, clocks[pe.index()]);
            let received = received.as_ref();
            let received = received.and_then(|all| figures(all, parent, pe, on_clock));
            Some(PeCertificate { planned, received })
        };
        Certificates {
            round: shown.and_then(|reports| reports.first()).map(|it| it.round),
            pes: tree.ids().map(of_pe).collect(),
        }
    }
}

/// Returns the planned figures of a PE, with the times of the prediction.
fn planned(plan: &StreamPlan, predicted: Option<StreamFigures>) -> StreamFigures {
    StreamFigures {
        lag_ns: plan.certificate.lag,
        stream_ns: plan.certificate.stream,
        stream_bytes: plan.certificate.packets.bytes,
        after_ns: plan.after,
        ..predicted.unwrap_or_default()
    }
}

/// Returns the figures that a PE and its parent received; `at` converts a time on the clock of a PE.
fn figures(
    all: &[&Streams],
    parent: PeId,
    pe: PeId,
    at: impl Fn(PeId, u64) -> u64,
) -> Option<StreamFigures> {
    let streams = &all.get(parent.index())?.children;
    let stream: &ChildStream = streams.iter().find(|stream| stream.child == pe)?;
    let order = all.get(pe.index())?.order;
    let flits = [stream.first_flit_ns, stream.last_flit_ns];
    Some(StreamFigures {
        lag_ns: stream.certificate.lag,
        stream_ns: stream.certificate.stream,
        stream_bytes: stream.certificate.packets.bytes,
        after_ns: order.map(|order| order.after),
        certified_ns: at(parent, stream.certified_ns),
        ordered_ns: order.map(|order| at(pe, order.at_ns)),
        flits_ns: (stream.bytes > 0).then(|| flits.map(|ns| at(parent, ns))),
    })
}
