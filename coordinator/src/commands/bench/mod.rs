//! `flitcast bench`: times the algorithms on one tree and one set of lengths in real rounds and
//! compares them with their predictions.

mod args;
mod checked;
mod csv;
mod csv_line;
mod ended;
mod json;
mod measure;
mod raw;
mod request;
mod samples;
mod table;

pub use args::BenchArgs;
pub use checked::Bench;
pub use ended::time_and_report;
