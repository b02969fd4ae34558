//! The profile: the measurements of a cluster by `flitcast calibrate`, stored in a file for later
//! commands.
//!
//! It contains the times of wire and software together, and separately the host's share; `model` builds
//! a model from them. `content` has `Profile::text`, `read` has `Profile::parse`.

mod content;
mod read;

pub use content::{Fit, HOST_COSTS, Profile, Relay, parents};

#[cfg(test)]
mod tests;
