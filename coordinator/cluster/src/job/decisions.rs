//! The decisions for a round, each with its reason: one value, from the request to the report.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flitcast_plan::algorithms::cover_plan::SplitPolicy;
use flitcast_proto::schedule::pace::Pacing;
use serde::Serialize;

use crate::algorithms::method::Method;
use crate::options::names::pacing_name;
use crate::options::packets::Packets;
use crate::text::figures::as_micros;
use crate::text::phrases::counted;
use crate::text::title::title;
use crate::text::units::{Bytes, Nanos};
use crate::tuning::{EQUAL_DURATIONS, USUAL_FLIT_BYTES};

/// The decisions for a round. A request makes the first ones, and the prediction of the round the others.
#[derive(Clone, Debug)]
pub struct Decisions {
    pub tree: String,
    /// The algorithm and its settings.
    pub way: Method,
    /// The choice of the algorithm and the tree, if they were chosen.
    pub choice: Option<Arc<Choice>>,
    /// Pacing of orders.
    pub pacing: Pacing,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// The choice of that size, if it was chosen and is not the default.
    pub flit_size: Option<FlitSize>,
    /// The choice of packets, if they were requested.
    pub packets: Option<PacketChoice>,
    /// The choice of the order of messages, if one was given or searched for.
    pub order: Option<OrderChoice>,
    /// The choice of the number of trees, if several were possible.
    pub trees: Option<LaneChoice>,
    /// The choice whether flits are compressed, if that was requested and possible.
    pub compression: Option<CompressionChoice>,
}

impl Decisions {
    /// Creates the decisions of a request; its flits have the requested size or the default one.
    pub fn new(
        tree: String,
        way: Method,
        choice: Option<Arc<Choice>>,
        pacing: Pacing,
    ) -> Decisions {
        Decisions {
            tree,
            flit_bytes: way.flit_bytes.unwrap_or(USUAL_FLIT_BYTES),
            way,
            choice,
            pacing,
            flit_size: None,
            packets: None,
            order: None,
            trees: None,
            compression: None,
        }
    }

    /// Returns the title of the run or the plan: `gather on path:6 by certification, serial, turns`.
    pub fn title(&self) -> String {
        let way = &self.way;
        // A static schedule sends as planned unless a pacing holds it back.
        let paces = |pacing: &Pacing| !way.operation.is_static() || *pacing != Pacing::Eager;
        let pacing = pacing_name(self.pacing_of_orders().filter(paces));
        let parts = [Some(way.algorithm()), way.sync(), pacing];
        let algorithm = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        title(way.operation.collective().name(), &self.tree, &algorithm)
    }

    /// Returns the pacing of orders; `None` if the algorithm gives no orders.
    pub fn pacing_of_orders(&self) -> Option<Pacing> {
        self.way.operation.gives_orders().then_some(self.pacing)
    }

    /// Returns the reason for each decision of the prediction, with the label of its line in a report.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let reasons = [
            ("flits", self.flit_size.map(|it| it.to_string())),
            ("packets", self.packets.map(|it| it.to_string())),
            ("order", self.order.map(|it| it.to_string())),
            ("trees", self.trees.as_ref().map(LaneChoice::to_string)),
            ("compression", self.compression.map(|it| it.to_string())),
        ];
        let given = reasons.into_iter();
        let given = given.filter_map(|(label, reason)| Some((label, reason?)));
        given.collect()
    }
}

#[cfg(test)]
impl Decisions {
    /// Creates the decisions for rounds of an operation, without a request.
    pub fn of(operation: flitcast_plan::Algorithm, pacing: Pacing) -> Decisions {
        let way = crate::algorithms::candidates::Candidate::new("", operation, None).way(None);
        Decisions::new("a tree".to_owned(), way, None, pacing)
    }
}

/// The chosen payload of a full flit, and the predictions for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlitSize {
    #[serde(skip)]
    pub bytes: u32,
    /// Predicted duration of a round with this size, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// Predicted duration of a round with the default size.
    #[serde(rename = "usual_us", serialize_with = "as_micros")]
    pub usual_ns: u64,
    /// The default size.
    #[serde(skip)]
    pub usual_bytes: u32,
}

impl fmt::Display for FlitSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {}: {} instead of {} at {}",
            Bytes(self.bytes.into()),
            Nanos(self.predicted_ns),
            Nanos(self.usual_ns),
            Bytes(self.usual_bytes.into())
        )
    }
}

/// The requested packets, and their predicted effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PacketChoice {
    /// The requested packets.
    #[serde(serialize_with = "as_typed")]
    pub asked: Packets,
    /// The number of packets of all messages.
    pub count: u64,
    /// The largest one, in bytes.
    pub largest_bytes: u32,
    /// The predicted duration of a round with these packets, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration with flits of the default size.
    #[serde(rename = "usual_us", serialize_with = "as_micros")]
    pub usual_ns: u64,
}

fn as_typed<S: serde::Serializer>(packets: &Packets, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(packets)
}

impl fmt::Display for PacketChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of at most {}, {}: {} instead of {} at {}",
            self.count,
            Bytes(self.largest_bytes.into()),
            match self.asked {
                Packets::Auto => "predicted to be the best".to_owned(),
                Packets::Mixed => "with flits of several messages".to_owned(),
                Packets::Count(count) =>
                    format!("{} a message at most", counted(count, "packet", "packets")),
                Packets::Size(bytes) => format!("none above {}", Bytes(bytes.into())),
            },
            Nanos(self.predicted_ns),
            Nanos(self.usual_ns),
            Bytes(USUAL_FLIT_BYTES.into())
        )
    }
}

/// The predicted effect of compressing flits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CompressionChoice {
    /// The format of compressed flits.
    pub format: &'static str,
    /// The bytes of compressed flits, as a share of those before.
    pub share: f64,
    /// The predicted duration of a round with compressed flits, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration without compression.
    #[serde(rename = "plain_us", serialize_with = "as_micros")]
    pub plain_ns: u64,
}

impl CompressionChoice {
    pub fn compresses(&self) -> bool {
        self.predicted_ns < self.plain_ns
    }
}

impl fmt::Display for CompressionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.share * 100.0).ceil();
        let format = self.format;
        let [compressed, plain] = [self.predicted_ns, self.plain_ns].map(Nanos);
        match self.compresses() {
            true => write!(
                f,
                "{format}, to {percent} % of the bytes: {compressed} instead of {plain}"
            ),
            false => write!(
                f,
                "none: {plain}, and {compressed} if {format} compressed flits to {percent} % of the bytes"
            ),
        }
    }
}

/// The choice of trees, where there could be several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneChoice {
    /// The number of trees.
    pub count: usize,
    /// How messages are distributed over the trees; `None` on one tree.
    #[serde(serialize_with = "as_named")]
    pub dealt: Option<SplitPolicy>,
    /// The predicted duration of a round, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration on one tree.
    #[serde(rename = "one_us", serialize_with = "as_micros")]
    pub one_ns: u64,
    /// The reason why one tree was chosen.
    pub why_one: Option<&'static str>,
}

fn as_named<S: serde::Serializer>(deal: &Option<SplitPolicy>, to: S) -> Result<S::Ok, S::Error> {
    deal.map(|deal| deal.to_string()).serialize(to)
}

impl fmt::Display for LaneChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = Nanos(self.one_ns);
        match (self.dealt, self.why_one) {
            (Some(deal), _) => {
                let takes = Nanos(self.predicted_ns);
                write!(
                    f,
                    "{} at once, {deal}: {takes} instead of {one} on one",
                    self.count
                )
            }
            (None, Some(why)) => write!(f, "one: {why}"),
            (None, None) => f.write_str("one"),
        }
    }
}

/// The chosen algorithm, and its alternatives.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The number of predictions.
    pub ways: usize,
    pub alternatives: usize,
    /// The number of alternatives that a lower bound of their time excluded.
    pub excluded: usize,
    /// The number of alternatives for which there was no time.
    pub skipped: usize,
    /// The time that the choice took.
    #[serde(rename = "took_us", serialize_with = "as_micros")]
    pub took_ns: u64,
    pub chosen: Forecast,
    /// The number of alternatives that take about as long, and more memory or more edges one after the other.
    pub alike: usize,
    /// The next best on another tree or by another algorithm, if there is one.
    pub runner_up: Option<Forecast>,
    /// The best prediction of each algorithm on each tree, the quickest first; with their steps if all
    /// alternatives are predicted.
    #[serde(skip)]
    pub all: Vec<Forecast>,
}

/// The predicted duration of a round by one algorithm on one tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    pub algorithm: &'static str,
    pub tree: String,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Predicted duration in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// Steps in the papers' model, if they were computed.
    #[serde(rename = "time_steps", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flit = Bytes(self.flit_bytes.into());
        write!(f, "{} on {}, flits of {flit}", self.algorithm, self.tree)
    }
}

impl Choice {
    /// Creates a choice among these forecasts, at least one and the best first, the first `alike` of which are
    /// about equal.
    pub fn of(all: Vec<Forecast>, alike: usize, took: Duration) -> Choice {
        Choice {
            ways: all.len(),
            alternatives: all.len(),
            excluded: 0,
            skipped: 0,
            took_ns: took.as_nanos() as u64,
            chosen: all[0].clone(),
            alike: alike - 1,
            runner_up: all.get(alike).cloned(),
            all,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, took] = [self.chosen.predicted_ns, self.took_ns].map(Nanos);
        let (chosen, ways) = (&self.chosen, self.ways);
        write!(
            f,
            "{chosen}: {time} predicted, the least of {ways} predictions"
        )?;
        write!(f, " in {took}")?;
        if self.skipped > 0 {
            let skipped = counted(self.skipped as u64, "alternative", "alternatives");
            write!(f, " (no time for {skipped} more)")?;
        }
        if self.alike > 0 {
            let alike = counted(self.alike as u64, "other", "others");
            write!(f, ", {alike} about equal")?;
        }
        if let Some(next) = &self.runner_up {
            let more = next.predicted_ns as f64 / self.chosen.predicted_ns.max(1) as f64 - 1.0;
            let time = Nanos(next.predicted_ns);
            write!(f, "; next {next}: {time} ({:+.1} %)", more * 100.0)?;
        }
        Ok(())
    }
}

/// The effect of a requested order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OrderChoice {
    Scatter(ScatterOrder),
    /// On a gather, in the order in which P0 takes the messages.
    Gather {
        /// `given`.
        asked: &'static str,
        /// The predicted duration of a round in this order, in nanoseconds.
        #[serde(rename = "predicted_us", serialize_with = "as_micros")]
        predicted_ns: u64,
        /// The predicted duration with each stream as early as it can come.
        #[serde(rename = "earliest_first_us", serialize_with = "as_micros")]
        earliest_first_ns: u64,
    },
}

impl fmt::Display for OrderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderChoice::Scatter(choice) => choice.fmt(f),
            OrderChoice::Gather {
                predicted_ns,
                earliest_first_ns,
                ..
            } => write!(
                f,
                "as given: {}, and {} with each stream as early as it can come",
                Nanos(*predicted_ns),
                Nanos(*earliest_first_ns),
            ),
        }
    }
}

/// The effect of an order that was given or searched for, on a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScatterOrder {
    /// `given` or `search`.
    pub asked: &'static str,
    /// The predicted duration of a round in the order, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration with the largest tail first.
    #[serde(rename = "tail_first_us", serialize_with = "as_micros")]
    pub tail_first_ns: u64,
    /// The predicted duration farthest destination first.
    #[serde(rename = "farthest_first_us", serialize_with = "as_micros")]
    pub farthest_first_ns: u64,
    /// A lower bound of the duration in any order of these flits; of any packets, if they were chosen
    /// as well.
    #[serde(rename = "bound_us", serialize_with = "as_micros")]
    pub bound_ns: u64,
    #[serde(skip)]
    pub of_any_packets: bool,
    /// Distance of the order from the bound, in percent; 0 if it is optimal.
    pub gap_pct: f64,
}

impl ScatterOrder {
    pub fn bounded(self, bound_ns: f64) -> ScatterOrder {
        let gap = self.predicted_ns as f64 / bound_ns.max(1.0) - 1.0;
        ScatterOrder {
            bound_ns: bound_ns as u64,
            gap_pct: if gap > EQUAL_DURATIONS {
                gap * 100.0
            } else {
                0.0
            },
            ..self
        }
    }
}

impl fmt::Display for ScatterOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [predicted, tail_first] = [self.predicted_ns, self.tail_first_ns].map(Nanos);
        match self.asked {
            "given" => write!(
                f,
                "as given: {predicted}, {tail_first} largest tail first, {} farthest first",
                Nanos(self.farthest_first_ns)
            )?,
            _ => write!(
                f,
                "searched for: {predicted} instead of {tail_first} largest tail first"
            )?,
        }
        if self.bound_ns == 0 {
            return Ok(());
        }
        write!(
            f,
            "; {} no less than {}, ",
            match self.of_any_packets {
                true => "any packets take",
                false => "flits of this size take",
            },
            Nanos(self.bound_ns),
        )?;
        match self.gap_pct > 0.0 {
            true => write!(f, "gap {:.1} %", self.gap_pct),
            false => write!(f, "optimal"),
        }
    }
}
