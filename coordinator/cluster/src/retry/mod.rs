//! Retries: a request is run and, if a PE other than P0 fails, run again on the tree repaired
//! around that PE, with the missing messages only. `--retry` does this at once and
//! `flitcast resume` later; `run` has the loop of both.
//!
//! `progress` has the state between two runs and derives the next run from it; `resumable_job`
//! examines the files on the disk and creates the request of that run, and `conclusion` ends the job.
//! `record` writes the state to a file, `resume` continues from such a file, and `retry_report`
//! describes the runs to the user. Nothing here starts a process.
//!
//! A running cluster is never rearranged: a new one starts in some 10 ms, and has no connection or
//! frame of a round that failed. It has only those files that belong to messages that it continues.

mod conclusion;
mod kept_record;
mod progress;
mod record;
mod resumable_job;
mod resume;
mod retry_report;
mod run;

pub use progress::{DeliveryProgress, NextRun};
pub use record::parse as parse_record;
pub use resumable_job::ResumableJob;
pub use retry_report::RetryReport;
pub use run::{Concluded, run};
