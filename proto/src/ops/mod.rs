//! The collectives, the roles of PEs, and the state machine of one PE in one round, without I/O.
//!
//! A planner gives each PE a schedule ([`PeSchedule`]) with its role ([`PeRole`]): one of the few that
//! react to what arrives, or the execution of a list of crossings. Nothing here depends on the algorithm
//! that the planner used.
//!
//! A driver reports events to the state machine ([`PeMachine`]) with the time (`handle_*`) and polls it
//! for actions (`poll_*`). The machine has one send port and one receive port. The driver moves one
//! item at a time through the send port: the result of [`PeMachine::poll_transmit`], or the relay that
//! [`PeMachine::handle_head`] decided, until [`PeMachine::handle_sent`]. It receives flits only
//! from neighbours that [`PeMachine::listens_to`] admits.
//!
//! The machine orders and routes messages; it never handles payload bytes. A tick
//! ([`Pace`](crate::schedule::pace::Pace)) is a step in the simulator and a nanosecond on real
//! links.

mod certification;
mod collective;
mod combining;
mod flit_by_flit;
mod linear;
mod orders;
pub mod parts;
mod pe_machine;
mod pe_schedule;
mod receive_queue;
mod role;
mod scatter;
mod shoulder_tap;
mod static_schedule_role;

pub use collective::{Collective, Direction, Layout};
pub use combining::largest_first;
pub use pe_machine::PeMachine;
pub use pe_schedule::{PeRole, PeSchedule};

pub use crate::limits::{COALESCE_LIMIT_BYTES, HELD_IN_MEMORY, POLL_ATTEMPTS, SHORT_QUEUE_BYTES};
