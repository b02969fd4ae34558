//! The options of commands, and the types of their values that files share with the command line.

pub mod args;
pub mod baseline;
pub mod broadcast;
pub mod flits;
pub mod format;
pub mod host_list;
pub mod link_spec;
pub mod names;
pub mod order;
pub mod packets;
pub mod pes;
pub mod ports;
pub mod prices;
pub mod retries;
pub mod sync;
pub mod timeouts;
pub mod transfer;
pub mod tree;
pub mod values;
pub mod workload;
