//! Trees for tests.

use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::tree::TreeSpec;

pub fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().expect("a tree");
    Arc::new(spec.build().expect("a tree"))
}
