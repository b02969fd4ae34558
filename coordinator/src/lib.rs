//! The `flitcast` command: `src/bin/flitcast.rs` only calls it, and tests use [`parsers`] and
//! [`machines`].
//!
//! The folders are layers, each of which imports only earlier ones: `system`, `text`, `tuning`,
//! `options`, `files`, `site`, `algorithms`, `job`, `observe`, `launch`, `rounds`, `retry`,
//! `render`, `commands`, `cli`.
//!
//! Exit status: 0 when all went well, 1 when a run failed, 2 when the command
//! line or its input is wrong (nothing was launched or written then), 130 after
//! Ctrl-C.
//!
//! User input is parsed completely, and all its errors are reported at once:
//!
//! ```
//! use flitcast_coordinator::parsers;
//!
//! assert!(parsers::link("rate=200mbit,latency=1ms").is_ok());
//! let faults = parsers::link("rate=fast,latency=soon").unwrap_err();
//! assert_eq!(faults.len(), 2, "{faults:?}");
//! ```

mod algorithms;
mod cli;
mod commands;
mod files;
mod job;
mod launch;
pub mod machines;
mod observe;
mod options;
pub mod parsers;
mod render;
mod retry;
mod rounds;
mod site;
mod system;
mod text;
mod tuning;

pub use cli::main;
