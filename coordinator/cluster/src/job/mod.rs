//! The work of a command: the request, checked as a whole before anything is started, the choices that
//! it leaves open, and its prediction.

pub mod decisions;
pub mod exchange_flits;
pub mod fault;
pub mod flit_size;
pub mod host_costs;
pub mod model;
pub mod on_links;
pub mod order;
pub mod packets;
pub mod parallel_trees;
pub mod planned;
pub mod planned_round;
pub mod prices;
pub mod request;
pub mod site;
#[cfg(test)]
pub mod test_tree;
