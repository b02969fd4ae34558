//! The reason why an algorithm does not support a tree.

use flitcast_proto::PeId;
use thiserror::Error;

/// The reason why an algorithm does not support a tree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotApplicable {
    /// The algorithm needs a path.
    #[error("for paths only, and in {spec} {pe} has {children} children")]
    NoPath {
        /// Name of the tree.
        spec: String,
        /// A PE with several children.
        pe: PeId,
        /// Number of its children.
        children: usize,
    },
    /// The algorithm needs a star.
    #[error("for stars only, and in {spec} {pe} is not a child of the root")]
    NoStar {
        /// Name of the tree.
        spec: String,
        /// A PE below another PE than the root.
        pe: PeId,
    },
    /// The algorithm builds its own tree in a complete network.
    #[error("for PEs that can all reach each other, which {spec} does not guarantee")]
    NotComplete {
        /// Name of the tree.
        spec: String,
    },
    /// The algorithm builds the trees of a cube.
    #[error("for 2, 4, 8 and so on PEs, and there are {pes}")]
    NoCube {
        /// Number of PEs.
        pes: usize,
    },
}

impl NotApplicable {
    /// Returns the option to use instead.
    pub fn instead(&self) -> &'static str {
        match self {
            NotApplicable::NoPath { .. } | NotApplicable::NoStar { .. } => {
                "--algorithm certification"
            }
            NotApplicable::NotComplete { .. } => "--network complete:N",
            NotApplicable::NoCube { .. } => "--algorithm path",
        }
    }
}
