//! What is drawn and printed of a plan.

pub mod svg;
