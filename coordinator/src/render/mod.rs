//! What came of a job, for eyes and for programs.

mod lateness;
pub mod page;
pub mod pictures;
pub mod report;
