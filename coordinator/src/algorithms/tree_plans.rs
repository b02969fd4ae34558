//! Plans of gossips and exchanges over the edges of a tree, with lower bounds in steps.

use flitcast_plan::algorithms::gossip_plan::{self as gossip, Order};
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{exchange_plan as exchange, ring_emulation};
use flitcast_proto::Tree;

use crate::algorithms::plan_limits::{PlanTooLarge, check_crossings};
use crate::options::ports::Ports;

/// A plan and its lower bound, in steps.
pub type Bounded = (Timetable, u64);

/// Plans a gossip in which each flit crosses each edge once. With single ports, the better of two
/// orders is used.
///
/// # Errors
///
/// Returns an error if there are too many crossings to plan.
pub fn flood(tree: &Tree, flits: &[u64], ports: Ports) -> Result<Bounded, PlanTooLarge> {
    if ports == Ports::Multi {
        let bound = gossip::least_steps_of_all_ports(tree, flits);
        return Ok((gossip::all_ports(tree, flits), bound));
    }
    let total: u64 = flits.iter().sum();
    check_crossings(total.saturating_mul(tree.len() as u64 - 1))?;
    let bound = gossip::least_steps(tree, flits);
    let mut plan = gossip::one_port(tree, flits, Order::Hungry);
    if plan.time_steps > bound {
        let other = gossip::one_port(tree, flits, Order::Needy);
        if other.time_steps < plan.time_steps {
            plan = other;
        }
    }
    Ok((plan, bound))
}

/// Plans an exchange around the tree; `flits` has a row for each PE.
///
/// # Errors
///
/// Returns an error if there are too many crossings to plan.
pub fn exchange_around(
    tree: &Tree,
    flits: &[Vec<u64>],
    ports: Ports,
) -> Result<Bounded, PlanTooLarge> {
    check_crossings(ring_emulation::crossings(tree, flits))?;
    let bound = match ports {
        Ports::Single => exchange::least_steps(tree, flits),
        Ports::Multi => exchange::least_steps_of_all_ports(tree, flits),
    };
    let plan = ring_emulation::exchange(tree, flits, ports.of_model());
    Ok((plan, bound))
}

/// Plans an exchange; `flits` has a row for each PE.
///
/// # Errors
///
/// Returns an error if there are too many crossings to plan.
pub fn exchange(tree: &Tree, flits: &[Vec<u64>], ports: Ports) -> Result<Bounded, PlanTooLarge> {
    check_crossings(exchange::crossings(tree, flits))?;
    Ok(match ports {
        Ports::Single => (
            exchange::one_port(tree, flits),
            exchange::least_steps(tree, flits),
        ),
        Ports::Multi => (
            exchange::all_ports(tree, flits),
            exchange::least_steps_of_all_ports(tree, flits),
        ),
    })
}
