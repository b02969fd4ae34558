//! The predicted effect of a requested order of messages.

use std::fmt;

use serde::Serialize;

use crate::text::figures::as_micros;
use crate::text::units::Nanos;
use crate::tuning::EQUAL_DURATIONS;

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
    /// Whether the bound is for any packets.
    #[serde(skip)]
    pub of_any_packets: bool,
    /// Distance of the order from the bound, in percent; 0 if it is optimal.
    pub gap_pct: f64,
}

impl ScatterOrder {
    /// Returns the choice with another bound.
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
