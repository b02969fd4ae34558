//! The place of each PE: the tree, the hosts, how each process is started and reached, and how
//! connections are secured.

pub mod authority;
pub mod ca;
pub mod cluster_file;
pub mod guard;
pub mod kept;
pub mod placement;
pub mod reach;
pub mod settings;
pub mod slurm;
pub mod ssh;
pub mod starter;
pub mod topology;
