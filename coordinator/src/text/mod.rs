//! What is written for people and read from them: units, words, names of deliveries,
//! tables, files that are written whole, and what may go to a terminal.

pub mod deliveries;
pub mod figures;
pub mod printable;
pub mod units;
pub mod whole_file;
pub mod words;
