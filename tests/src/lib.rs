//! Helpers for the tests of the whole program: the `flitcast` binary, its runs and their reports, its
//! processes, trees of files, misbehaving PEs, the network lab, and clusters in virtual time. This
//! crate contains no tests of Flitcast.
//!
//! ```no_run
//! let report = flitcast_tests::run(["scatter", "--tree", "star:4", "--format", "json"]).report();
//! report.assert_all_arrived();
//! ```

pub mod background;
pub mod binary;
pub mod clocks;
pub mod collector;
pub mod command;
pub mod containers;
pub mod crowd;
pub mod distance;
pub mod edge;
pub mod every;
#[cfg(test)]
mod excluded;
pub mod files;
pub mod folder;
pub mod fuzz;
pub mod impostor;
pub mod joining;
pub mod kept;
pub mod lab;
pub mod net;
pub mod pairs;
pub mod processes;
pub mod random;
pub mod relay;
pub mod report;
pub mod run;
pub mod scrape;
pub mod slurm;
pub mod ssh;
pub mod storm;
pub mod stranger;
pub mod table;
pub mod wire_examples;

pub use binary::flitcast;
pub use command::{parsed, printed, refused, reported, resume};
pub use folder::{Folder, scratch};
pub use net::hosts;
pub use report::Report;
pub use run::{Finished, Running, run, start};
pub use table::{from_to, numbers, refused_each, rows};
