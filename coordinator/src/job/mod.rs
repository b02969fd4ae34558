//! What is to be done, where and in which way: understood as a whole before anything is
//! started, and what it is predicted to take.

pub mod exchange_flits;
pub mod fit;
pub mod flit_size;
pub mod host_costs;
pub mod lanes;
pub mod model;
pub mod order;
pub mod packets;
pub mod prices;
pub mod request;
