//! What is written for people and read from them, and nothing of Flitcast: units, words,
//! tables, files that are written whole, and what may go to a terminal.

pub mod figures;
pub mod printable;
pub mod units;
pub mod whole_file;
pub mod words;
