//! The state machines that can run a plan in lock step.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_proto::Tree;

use crate::options::ports::Ports;

/// The state machines that run a plan in lock step, if there are any.
#[derive(Debug)]
pub enum Played {
    /// The state machines of an operation on a tree.
    ByAll {
        /// Rooted where the operation begins.
        tree: Arc<Tree>,
        /// The operation.
        operation: Algorithm,
        /// The flits of each message, by delivery.
        flits: Vec<u64>,
    },
    /// None, for this reason.
    ByNobody(String),
}

impl Played {
    /// Returns the simulation of a plan whose flits cross the edges of a tree one by one; none if a
    /// block of the plan has several flits.
    pub fn flit_by_flit(block_flits: u64, played: impl FnOnce() -> Played) -> Played {
        match block_flits {
            1 => played(),
            _ => Played::ByNobody(format!(
                "a round of so many crossings has blocks of {block_flits} flits, so the state machines do not \
                 run what is planned flit by flit: take shorter messages"
            )),
        }
    }

    /// Returns the state machines of a plan for single ports, or none for many ports.
    pub fn by_ports(ports: Ports, single: impl FnOnce() -> Played) -> Played {
        match ports {
            Ports::Single => single(),
            Ports::Multi => Played::ByNobody(
                "in lock step a PE has one port to send and one to receive, so nothing plays a \
                 plan of --ports multi: leave out one of the two"
                    .to_owned(),
            ),
        }
    }
}

impl Default for Played {
    fn default() -> Played {
        Played::ByNobody("nothing plays this plan in lock step: leave it out".to_owned())
    }
}
