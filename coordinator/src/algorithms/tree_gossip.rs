//! The algorithms of a gossip over the edges of a tree: their names, what they support, and their plans.

use std::str::FromStr;

use flitcast_plan::algorithms::gossip_in_cycles::{self as cycles, Discipline};
use flitcast_plan::algorithms::{gossip_plan as gossip, ring_emulation};
use flitcast_proto::Tree;

use crate::algorithms::broadcast_plans::NotPlanned;
use crate::algorithms::plan_limits::check_crossings;
use crate::algorithms::tree_plans::{Bounded, flood};
use crate::options::ports::Ports;

/// How to gossip on a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeGossip {
    /// Each flit over each edge once.
    Flood,
    /// Around the tree.
    RingEmulation,
    /// Each PE to its neighbours in turn, a flit in each step.
    InTurn(Discipline),
    /// Each PE to its neighbours in turn, all that it knows in each step.
    Combining(Discipline),
}

impl FromStr for TreeGossip {
    type Err = String;

    fn from_str(text: &str) -> Result<TreeGossip, String> {
        let discipline = |prefix| text.strip_prefix(prefix).and_then(Discipline::named);
        Ok(match text {
            "auto" | "flood" => TreeGossip::Flood,
            "ring-emulation" => TreeGossip::RingEmulation,
            "combining" => TreeGossip::Combining(Discipline::OF_A3),
            _ => match (discipline("discipline:"), discipline("combining:")) {
                (Some(one), _) => TreeGossip::InTurn(one),
                (_, Some(one)) => TreeGossip::Combining(one),
                _ => {
                    return Err("on a tree there are auto, flood and, with --ports multi and a flit \
                                from each PE, ring-emulation; with single ports discipline:ORDER and \
                                combining[:ORDER], ORDER one of prl, plr, lrp, rlp, rpl, lpr"
                        .to_owned());
                }
            },
        })
    }
}

impl TreeGossip {
    /// Returns the name as users type it.
    pub fn name(self) -> String {
        match self {
            TreeGossip::Flood => "flood".to_owned(),
            TreeGossip::RingEmulation => "ring-emulation".to_owned(),
            TreeGossip::InTurn(one) => format!("discipline:{}", one.name()),
            TreeGossip::Combining(one) => format!("combining:{}", one.name()),
        }
    }

    /// Returns the baselines that serve neighbours in cycles.
    pub fn in_cycles() -> impl Iterator<Item = TreeGossip> {
        let all = Discipline::ALL.into_iter().map(TreeGossip::InTurn);
        all.chain([TreeGossip::Combining(Discipline::OF_A3)])
    }

    /// Returns the plan for these ports, and a lower bound of any plan.
    ///
    /// # Errors
    ///
    /// Returns an error if the algorithm does not support the tree, the lengths or the ports, or if
    /// there are too many crossings to plan.
    pub fn plan(self, tree: &Tree, flits: &[u64], ports: Ports) -> Result<Bounded, NotPlanned> {
        match self {
            TreeGossip::Flood => flood(tree, flits, ports).map_err(NotPlanned::TooMuch),
            TreeGossip::RingEmulation => around(tree, flits, ports),
            TreeGossip::InTurn(one) => {
                in_cycles(tree, flits, ports, 1)?;
                let plan = cycles::flit_by_flit(tree, flits, one).plan;
                Ok((plan, gossip::least_steps(tree, flits)))
            }
            TreeGossip::Combining(one) => {
                let depth = tree.pes().map(|pe| u64::from(tree.depth(pe))).max();
                // In each cycle every message may cross every arc.
                in_cycles(tree, flits, ports, 4 * depth.unwrap_or(0))?;
                let plan = cycles::combining(tree, flits, one).plan;
                Ok((plan, gossip::least_steps(tree, flits)))
            }
        }
    }
}

fn unfit(why: &str) -> NotPlanned {
    NotPlanned::Unfit(why.to_owned())
}

fn around(tree: &Tree, flits: &[u64], ports: Ports) -> Result<Bounded, NotPlanned> {
    if ports == Ports::Single {
        return Err(unfit(
            "a PE sends to several neighbours at once: --ports multi",
        ));
    }
    if flits.iter().any(|flits| *flits != 1) {
        return Err(unfit(
            "the plan is for one flit from each PE: --lengths equal:1",
        ));
    }
    let bound = gossip::least_steps_of_all_ports(tree, flits);
    Ok((ring_emulation::gossip(tree), bound))
}

/// Checks a gossip in cycles whose flits cross each edge at most `times` times.
fn in_cycles(tree: &Tree, flits: &[u64], ports: Ports, times: u64) -> Result<(), NotPlanned> {
    if ports == Ports::Multi {
        return Err(unfit(
            "a PE sends to one neighbour at a time: --ports single",
        ));
    }
    if !cycles::fits(tree) {
        return Err(unfit("it is for trees whose PEs have at most two children"));
    }
    let total: u64 = flits.iter().sum();
    let crossings = total.saturating_mul(tree.len() as u64 - 1);
    check_crossings(crossings.saturating_mul(times)).map_err(NotPlanned::TooMuch)
}
