//! The measurements that a link's parameters were fitted to, for the report page.

use flitcast_proto::PeId;
use flitcast_proto::cost::Link;
use serde_json::{Value, json};

/// The fit of one direction of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeFit {
    /// The edge between this PE and its parent.
    pub edge: PeId,
    /// From parent to child; else from child to parent.
    pub down: bool,
    /// The measurements.
    pub points: Vec<FitPoint>,
    /// The fitted parameters.
    pub link: Link,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitPoint {
    /// Bytes sent.
    pub bytes: u64,
    /// Time they took.
    pub ns: f64,
    /// Whether the fit used it; false for an outlier.
    pub used: bool,
}

impl EdgeFit {
    /// Returns the fit as JSON for the page's script.
    pub fn data(&self) -> Value {
        let point = |p: &FitPoint| json!({ "bytes": p.bytes, "ns": p.ns, "used": p.used });
        json!({
            "edge": self.edge.0,
            "direction": if self.down { "down" } else { "up" },
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
            "latency_ns": self.link.latency_ns,
            "ns_per_byte": self.link.ns_per_byte,
            "burst_bytes": self.link.burst_bytes,
        })
    }
}
