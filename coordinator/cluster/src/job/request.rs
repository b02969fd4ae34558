//! A checked command line: all errors that can be detected are detected here, at once, before a
//! socket is bound, a process started or a byte written.

mod alternative;
mod checked;
mod checks;
mod choose;
mod expected;
mod gather;
mod gossip_ways;
mod input;
mod operations;
mod requested_messages;
mod spec;
mod trees;
mod values;

pub use super::decisions::Forecast;
pub use super::fault::{
    NoPayload, UNKNOWN_LINKS, guard_fault, no_choice, of_all, of_output, relative,
};
pub use super::site::{Site, link_over, links};
pub use checked::{Messages, Request};
pub use expected::{expected_model, steps};
pub use gather::gather_operation;
pub use gossip_ways::{OF_NETWORKS, candidates_on};
pub use input::{count_by_input, measure_input};
pub use spec::check_crossings;
pub use trees::{check_size, local_topology};
pub use values::{flit_size, output_fault};
