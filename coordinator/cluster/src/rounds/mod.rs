//! Rounds on a launched cluster: measured, predicted, run and monitored, and their results.

pub mod certificates;
pub mod controller;
pub mod execution;
pub mod learning;
pub mod outcome;
pub mod recording;
pub mod run;
pub mod versions;
