//! A checked command line: all errors that can be detected are detected here, at once, before a
//! socket is bound, a process started or a byte written.

mod alternative;
mod budget;
mod checked;
mod checks;
mod choose;
mod crossings;
mod expected;
mod flits;
mod gather;
mod gossip_ways;
mod input;
mod least;
mod messages;
mod open_choices;
mod operations;
mod order;
mod output;
mod requested_messages;
mod roots;
mod selection;
mod spec;
mod trees;

pub use super::choice::Forecast;
pub use super::fault::{
    NoPayload, UNKNOWN_LINKS, guard_fault, no_choice, of_all, of_output, relative,
};
pub use super::links::{link_over, links};
pub use super::site::Site;
pub use checked::Request;
pub use crossings::check_crossings;
pub use expected::{expected_model, steps};
pub use flits::flit_size;
pub use gather::gather_operation;
pub use gossip_ways::{OF_NETWORKS, candidates_on};
pub use input::{count_by_input, measure_input};
pub use messages::Messages;
pub use output::output_fault;
pub use trees::{check_size, local_topology};
