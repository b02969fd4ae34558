//! Clusters as a library: what a user requests, where its PEs run, launching them, conducting their
//! rounds, and continuing without the dead.
//!
//! The folders are layers, each of which imports only earlier ones: `system`, `text`, `tuning`,
//! `options`, `files`, `site`, `algorithms`, `job`, `observe`, `launch`, `rounds`, `retry`. The
//! `flitcast` command drives them; tests use [`parsers`] and [`machines`].
//!
//! User input is parsed completely, and all its errors are reported at once:
//!
//! ```
//! use flitcast_cluster::parsers;
//!
//! assert!(parsers::link("rate=200mbit,latency=1ms").is_ok());
//! let faults = parsers::link("rate=fast,latency=soon").unwrap_err();
//! assert_eq!(faults.len(), 2, "{faults:?}");
//! ```

pub mod algorithms;
pub mod files;
pub mod job;
pub mod launch;
pub mod machines;
pub mod observe;
pub mod options;
pub mod parsers;
pub mod retry;
pub mod rounds;
pub mod site;
pub mod system;
pub mod text;
pub mod tuning;
