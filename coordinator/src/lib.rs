//! The `flitcast` command: `src/bin/flitcast.rs` only calls it.
//!
//! The modules are layers, each of which imports only earlier ones: `faults`, `render`, `commands`,
//! `cli`. They drive the crate `flitcast_cluster`.
//!
//! Exit status: 0 when all went well, 1 when a run failed, 2 when the command
//! line or its input is wrong (nothing was launched or written then), 130 after
//! Ctrl-C.

mod cli;
mod commands;
mod render;

pub use cli::main;
