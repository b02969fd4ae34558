//! Errors of plans in packets.

use thiserror::Error;

/// The reason why messages cannot be planned in packets, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketPlanError {
    /// Messages that are too long, or cross too many links.
    #[error("{0}")]
    Lengths(String),
    /// A cut of messages that does not suit them.
    #[error("{0}")]
    Split(String),
}
