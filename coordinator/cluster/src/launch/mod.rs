//! The life of a cluster: its processes are started here, over ssh or by others, and stopped.

pub mod cluster;
pub mod reach;
pub mod runtime;
pub mod ssh;
pub mod starter;
