//! What a link's parameters were fitted from, as the page shows it.

use flitcast_proto::PeId;
use flitcast_proto::cost::Link;
use serde_json::{Value, json};

/// One direction of an edge, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeFit {
    /// The edge between this PE and its parent.
    pub edge: PeId,
    /// From parent to child; else from child to parent.
    pub down: bool,
    /// What was measured.
    pub points: Vec<FitPoint>,
    /// What came of it.
    pub link: Link,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitPoint {
    /// So many bytes
    pub bytes: u64,
    /// took so long.
    pub ns: f64,
    /// False for what was taken for an outlier.
    pub used: bool,
}

impl EdgeFit {
    /// As the page's code reads it.
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
