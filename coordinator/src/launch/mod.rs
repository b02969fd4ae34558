//! A cluster from its first process to its last: started here, over ssh or by others, heard and
//! stopped.

pub mod cluster;
pub mod log_args;
pub mod runtime;
pub mod ssh;
pub mod starter;
