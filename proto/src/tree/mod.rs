//! Trees of PEs.

/// A rooted tree of PEs.
#[derive(Debug)]
pub struct Tree;
