//! Wire messages and their framing.

#[allow(missing_docs, clippy::all)]
mod generated;

/// The generated protobuf types, as `proto/flitcast.proto` defines them.
pub mod pb {
    pub use super::generated::*;
}
