//! What came of a job, for eyes and for programs.

pub mod ending;
mod lateness;
pub mod page;
pub mod pictures;
pub mod report;
pub mod tree;
