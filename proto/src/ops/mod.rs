//! The operations and their algorithms, one file each, and the state machine of one PE in one
//! round, without I/O.
//!
//! The table ([`Algorithm`]) contains the properties of each algorithm that other code uses: its
//! name, its messages, its bound in the paper's model, its state machine. A new algorithm needs a
//! file with an entry and a role, and a line in the table.
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

mod arcs;
pub mod blocks;
mod broadcast;
mod broadcast_hypercube;
pub mod broadcast_plan;
mod certification;
mod certification_plan;
mod combining;
pub mod cover_in_turn;
pub mod cover_plan;
mod cover_split;
mod deliveries;
mod exchange;
pub mod exchange_hosts;
pub mod exchange_plan;
pub mod gather_order;
mod gossip;
pub mod gossip_in_cycles;
mod gossip_on_network;
mod gossip_one_port;
pub mod gossip_plan;
mod in_order;
mod linear;
mod messages;
mod operation;
mod orders;
pub mod parts;
mod pe_machine;
mod pe_schedule;
pub mod plan;
mod ports;
mod present;
mod pull_requests;
mod receipts;
mod receive_queue;
pub mod ring_emulation;
mod role;
mod scatter;
pub mod scatter_in_packets;
mod shoulder_tap;
mod spec;
mod static_schedule_role;
mod steps;
mod table;
pub mod timetable;
mod upper_bound;

pub use broadcast::MOST_BLOCKS;
pub use gossip_on_network::OnNetwork;
pub use operation::{
    Algorithm, Broadcast, Direction, Exchange, Gossip, Layout, StartSignal, TreeRequirement,
};
pub use pe_machine::PeMachine;
pub use pe_schedule::{COALESCE_LIMIT_BYTES, PeSchedule, SPIN_ATTEMPTS};

pub use upper_bound::UpperBound;

#[cfg(test)]
mod tests;
