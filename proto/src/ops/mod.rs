//! Operations and the algorithms that do them, a file for each, and the state machine of one PE
//! in one round, without I/O.
//!
//! The table ([`Operation`]) says all that others ask of an operation: its name, which messages
//! it has, what it takes by the paper's model, how its PEs play. Whoever adds one writes a file
//! with an entry and a role, and a line of the table.
//!
//! A driver tells the machine ([`Pe`]) what happened (`handle_*`, with the time) and asks it
//! what to do (`poll_*`). It has one send port and one receive port. The driver moves
//! one item at a time through the send port: what [`Pe::poll_transmit`] returns,
//! or the relay that [`Pe::handle_head`] decided, until [`Pe::handle_sent`]. It
//! takes flits only from neighbours that [`Pe::listens_to`] admits.
//!
//! The machine orders and routes; it never sees a payload byte. What a tick is, is
//! told beforehand ([`Pace`](crate::schedule::pace::Pace)): a step in the simulator, a
//! nanosecond on real links.

mod arcs;
mod brief;
mod broadcast;
mod broadcast_hypercube;
pub mod broadcast_plan;
mod calls;
mod certification;
mod certification_plan;
mod combining;
mod cover_deal;
pub mod cover_plan;
mod exchange;
pub mod exchange_hosts;
pub mod exchange_plan;
mod gossip;
mod gossip_on_network;
mod gossip_one_port;
pub mod gossip_plan;
mod in_order;
mod intake;
mod linear;
mod listed;
mod messages;
mod orders;
pub mod parts;
mod pe;
pub mod plan;
mod ports;
mod present;
mod receipts;
mod role;
mod scatter;
mod shoulder_tap;
mod table;
pub mod timetable;

pub use brief::{Brief, GATHERED_BYTES, LOOKS};
pub use broadcast::{Broadcast, MOST_BLOCKS};
pub use exchange::Exchange;
pub use gossip::Gossip;
pub use gossip_on_network::OnNetwork;
pub use pe::Pe;
pub use table::{Direction, Fits, Layout, Operation, Word};

#[cfg(test)]
mod tests;
