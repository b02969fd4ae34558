//! What is written for people and read from them, and nothing of Flitcast: units, and what may go to a
//! terminal.

pub mod printable;
pub mod units;
