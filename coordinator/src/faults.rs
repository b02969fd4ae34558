//! The errors in a command line, of which all are reported at once.

pub use flitcast_cluster::text::faults::Faults;
