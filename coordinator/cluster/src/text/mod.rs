//! Human-readable text: units, words, names of deliveries, tables, files that are written as a
//! whole, the errors of a command line, and escaping for terminals.

pub mod deliveries;
pub mod faults;
pub mod figures;
pub mod pe_names;
pub mod phrases;
pub mod printable;
pub mod screen;
pub mod stderr;
pub mod stdout;
pub mod title;
pub mod units;
pub mod whole_file;
