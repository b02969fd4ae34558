//! `flitcast compare`: times of the algorithms and of the baselines on a tree, side by side.

mod args;
mod broadcast;
mod command;
mod crossings;
mod exchange;
mod gossip;
mod gossip_on_tree;
mod gossip_rows;
mod scatter_gather;
mod table;
mod trees;

pub use args::CompareArgs;
pub use command::run;
