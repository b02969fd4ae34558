//! Rounds on a cluster that is launched: measured, predicted, conducted, watched, and what they
//! came to.

pub mod conduct;
pub mod conducted;
pub mod conductor;
pub mod learning;
pub mod outcome;
pub mod recording;
pub mod run;
