//! The algorithms: each computes a schedule for the PEs, which have one of a few roles.
//!
//! The registry ([`Algorithm::ALL`]) contains the properties of each algorithm that other code uses: its
//! name, its collective, the role of its PEs, its bound in the paper's model. A new algorithm needs a file
//! with its properties and its planner, and a line in the registry.

mod algorithm;
mod arcs;
mod baselines;
pub mod blocks;
mod broadcast;
mod broadcast_circulant;
mod broadcast_hypercube;
pub mod broadcast_plan;
mod certification;
pub mod cover_plan;
mod exchange;
mod exchange_bruck;
mod exchange_plan;
mod farthest_first;
pub mod gather_order;
mod gossip;
mod gossip_in_cycles;
mod gossip_on_network;
mod gossip_plan;
mod in_order;
mod list_plan;
mod lock_step;
pub mod plan;
pub mod plan_limits;
mod ports;
mod present;
mod registry;
mod ring_emulation;
pub mod scatter_in_packets;
pub mod schedules;
mod shoulder_tap;
mod spec;
pub mod timetable;
mod upper_bound;

pub use algorithm::Algorithm;
pub use broadcast::MOST_BLOCKS;
pub use gossip_in_cycles::CycleGossip;
pub use gossip_on_network::OnNetwork;
pub use lock_step::{ListTask, NotPlanned};
pub use spec::{LinkRequirement, Offer, OfferKind, TreeRequirement};
pub use upper_bound::UpperBound;

#[cfg(test)]
mod tests;
