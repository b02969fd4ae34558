//! The reason why an algorithm does not support a tree.

use thiserror::Error;

#[derive(Clone, Debug, Error)]
#[error("{why}")]
pub struct NotApplicable {
    /// The reason, a phrase that follows "is".
    pub why: String,
    /// The option to use instead.
    pub instead: &'static str,
}

impl NotApplicable {
    /// Returns the error of an algorithm that builds its own tree in a complete network.
    pub fn incomplete(tree: &str) -> NotApplicable {
        NotApplicable {
            why: format!("for PEs that can all reach each other, which {tree} does not guarantee"),
            instead: "--network complete:N",
        }
    }
}
