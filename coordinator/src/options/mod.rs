//! What is typed, as it is typed, and the values in it that files share with the command line.

pub mod args;
pub mod broadcast;
pub mod flits;
pub mod format;
pub mod gossip_network;
pub mod guard;
pub mod link_spec;
pub mod names;
pub mod packets;
pub mod pes;
pub mod pictures;
pub mod ports;
pub mod prices;
pub mod retries;
pub mod timeouts;
pub mod tree;
pub mod workload;
