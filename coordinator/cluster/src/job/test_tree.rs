//! Trees, links and arrivals for tests.

use std::sync::Arc;

use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::wire::control::Arrival;
use flitcast_proto::{PeId, Tree};

pub fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().expect("a tree");
    Arc::new(spec.build().expect("a tree"))
}

/// Returns an edge whose directions take this time per byte, and nothing else.
pub fn edge(ns_per_byte: f64) -> Edge {
    let down = Link {
        ns_per_byte,
        ..Link::default()
    };
    Edge { down, up: down }
}

/// Returns the arrival of a PE's message of a scatter, of one byte.
pub fn arrival(pe: PeId) -> Arrival {
    Arrival {
        message: pe.into(),
        source: PeId::ROOT,
        destination: pe,
        bytes_received: 1,
        bytes_total: 1,
        delivered: true,
        at_ns: 1,
        delivered_ns: 1,
        digest: None,
    }
}
