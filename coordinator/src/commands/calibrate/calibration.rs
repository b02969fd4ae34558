//! A valid calibration, its requests, the profile that begins it, and the result, rounded to the digits that were
//! measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flitcast_node::dates;
use flitcast_plan::Algorithm;
use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::Host;
use flitcast_proto::Tree;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::Payload;
use serde::Serialize;

use flitcast_cluster::algorithms::method::Method;
use flitcast_cluster::files::profile::{Fit, Profile, parents};
use flitcast_cluster::job::model::{Measurement, assumed_host, ports};
use flitcast_cluster::job::request::{Messages, Request, Site, gather_operation};
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::transfer::PictureArgs;
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::figures::as_micros;
use flitcast_cluster::tuning::BUFFER_BYTES;

#[derive(Debug)]
pub struct Calibration {
    pub topology: Topology,
    pub link: Option<LinkSpec>,
    pub flit_bytes: u32,
    pub output: Option<PathBuf>,
    /// Approximate duration.
    pub seconds: f64,
    pub guard: Guard,
    pub format: Format,
}

#[derive(Debug)]
pub struct Calibrated {
    pub profile: Profile,
    pub workloads: Vec<Ran>,
    /// Names of the workloads that were not run because time was short.
    pub left_out: Vec<String>,
    pub announced: Duration,
    pub took: Duration,
    pub guard: Guard,
    pub written: Option<PathBuf>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// Name, such as `gather equal:1031`.
    pub name: String,
    pub rounds: u64,
    #[serde(rename = "measured_us", serialize_with = "as_micros")]
    pub measured_ns: u64,
    /// Predicted duration with the fitted costs.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    pub error_pct: f64,
}

impl Calibration {
    pub fn gather(&self, tree: &Tree) -> Algorithm {
        gather_operation(tree, &self.topology.name, None, None)
            .expect("every tree has a gather of its own")
    }

    pub fn request(
        &self,
        operation: Algorithm,
        pacing: Pacing,
        lengths: Vec<u64>,
        profile: Option<Profile>,
    ) -> Request {
        let bytes = std::iter::once(0).chain(lengths.iter().copied()).collect();
        Request {
            site: Site::of(self.topology.clone(), self.link, self.guard.clone()),
            way: Method {
                pacing: operation.gives_orders().then_some(pacing),
                flit_bytes: Some(self.flit_bytes),
                ..Method::of(operation)
            },
            choice: None,
            others: Vec::new(),
            messages: Messages::new(Payload::Synthetic { lengths }, bytes),
            retries: 0,
            again: true,
            commands: false,
            timeouts: self.topology.settings.timeouts,
            rounds: 1,
            profile: profile.map(Arc::new),
            format: self.format,
            pictures: PictureArgs::default(),
        }
    }

    /// Returns the profile after the edges have been measured.
    pub fn profile(&self, measured: Measurement, request: &Request) -> Profile {
        let edges = measured.edges.into_iter().map(rounded_edge);
        Profile {
            measured: dates::text(SystemTime::now()),
            tree_name: self.topology.name.clone(),
            parents: parents(&self.topology.tree),
            links: request.site.links_name(),
            encrypted: self.guard.is_encrypted(),
            pacing: Pacing::default(),
            flit_bytes: self.flit_bytes,
            host: Host {
                shared_cores: measured.shared_cores,
                ..assumed_host()
            },
            ports: ports(&request.site),
            buffer_bytes: BUFFER_BYTES,
            relay: None,
            fit: Fit::default(),
            edges: edges.collect(),
            clocks: measured.clocks,
        }
    }
}

/// Rounds a value to this number of significant digits.
pub fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let exponent = digits - 1 - value.abs().log10().floor() as i32;
    match exponent >= 0 {
        true => (value * 10f64.powi(exponent)).round() / 10f64.powi(exponent),
        false => (value / 10f64.powi(-exponent)).round() * 10f64.powi(-exponent),
    }
}

/// Rounds the values of an edge.
fn rounded_edge(edge: MeasuredEdge) -> MeasuredEdge {
    let each = |estimate: Estimate, round: &dyn Fn(f64) -> f64| Estimate {
        value: round(estimate.value),
        low: round(estimate.low),
        high: round(estimate.high),
    };
    // Noise must not reduce the time of a byte below a thousandth of a nanosecond.
    let rate = |ns_per_byte: f64| significant(ns_per_byte, 5).max(1e-3);
    let link = |link: MeasuredLink| MeasuredLink {
        latency_ns: each(link.latency_ns, &f64::round),
        setup_ns: each(link.setup_ns, &f64::round),
        ns_per_byte: each(link.ns_per_byte, &rate),
        burst_bytes: each(link.burst_bytes, &f64::round),
    };
    MeasuredEdge {
        down: link(edge.down),
        up: link(edge.up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insignificant_digits_are_dropped() {
        for (value, digits, rounded) in [
            (0.0, 3, 0.0),
            (0.234_567, 3, 0.235),
            (15_432.9, 4, 15_430.0),
            (9_999.6, 4, 10_000.0),
            (0.001_234_5, 2, 0.001_2),
            (f64::NAN, 4, 0.0),
        ] {
            assert_eq!(significant(value, digits), rounded, "{value}");
        }
    }
}
