//! Trees and links for tests.

use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::tree::TreeSpec;

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
