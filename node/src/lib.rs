//! Plays one PE.

pub mod payload;
