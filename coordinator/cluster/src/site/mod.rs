//! The place of each PE: the tree, the hosts, how each process is started and reached, and how
//! connections are secured.

pub mod authority;
pub mod ca;
pub mod cluster_file;
pub mod guard;
pub mod placement;
pub mod reachability;
pub mod running_cluster;
pub mod settings;
pub mod slurm;
pub mod topology;
