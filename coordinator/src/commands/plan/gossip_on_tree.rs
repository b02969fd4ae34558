//! Gossip over the edges of a tree.

use std::str::FromStr;
use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{blocks, gossip_plan as gossip};
use flitcast_proto::{PeId, Tree};

use super::args::PlanGossipArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{PlannedMessage, StaticPlan};
use crate::algorithms::plan_limits::{check_flits, check_pes};
use crate::algorithms::tree_plans::flood;
use crate::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// How to gossip on a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeGossip {
    /// The better one for these ports.
    Auto,
    /// Each flit over each edge once.
    Flood,
    /// Around the tree.
    RingEmulation,
}

impl FromStr for TreeGossip {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<TreeGossip, PlanError> {
        Ok(match text {
            "auto" => TreeGossip::Auto,
            "flood" => TreeGossip::Flood,
            "ring-emulation" => TreeGossip::RingEmulation,
            _ => {
                return Err(PlanError::Unfit {
                    algorithm: text.to_owned(),
                    why: "on a tree there are auto, flood and, with --ports multi and a flit from \
                          each PE, ring-emulation"
                        .to_owned(),
                });
            }
        })
    }
}

/// Returns the requested plan, or all errors in the command line.
pub fn plan(args: &PlanGossipArgs) -> Result<StaticPlan, PlanErrors> {
    args.prices.check_absent::<PlanError>()?;
    let mut faults = PlanErrors::default();
    let topology = faults.take(args.tree.topology(SpanningArg::Bfs));
    let lengths = faults.take(lengths_of_all_in_flits(&args.lengths));
    let algorithm = faults.take(args.algorithm.parse::<TreeGossip>());
    let (Some(topology), Some(lengths), Some(algorithm)) = (topology, lengths, algorithm) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let flits = deal_flits_to_all(&lengths, tree.len())?;
    check_pes(tree.len())?;
    check_flits("--lengths", &flits)?;
    let (algorithm, plan, bound_steps) = planned(tree, &flits, algorithm, args.ports)?;
    Ok(StaticPlan {
        operation: "gossip",
        algorithm: algorithm.to_owned(),
        messages: messages(&flits),
        bound_steps,
        played: Played::by_ports(args.ports, || played(tree, &flits)),
        ..StaticPlan::of(plan).over(&topology, args.ports)
    })
}

/// Returns the state machines of a gossip over the edges of a tree.
fn played(tree: &Tree, flits: &[u64]) -> Played {
    let operation = Algorithm::GOSSIP_FLOOD;
    Played::flit_by_flit(blocks::of_gossip(tree, flits), || Played::ByAll {
        flits: operation.collective().by_delivery(tree, flits),
        tree: Arc::new(tree.clone()),
        operation,
    })
}

/// The algorithm's name, its plan and the bound.
type Planned = (&'static str, Timetable, u64);

fn planned(
    tree: &Tree,
    flits: &[u64],
    algorithm: TreeGossip,
    ports: Ports,
) -> Result<Planned, PlanError> {
    match (algorithm, ports) {
        (TreeGossip::RingEmulation, Ports::Single) => Err(unfit(
            "a PE sends to several neighbours at once: --ports multi",
        )),
        (TreeGossip::RingEmulation, _) if flits.iter().any(|flits| *flits != 1) => Err(unfit(
            "the plan is for one flit from each PE: --lengths equal:1",
        )),
        (TreeGossip::RingEmulation, _) => {
            let bound = gossip::least_steps_of_all_ports(tree, flits);
            Ok(("ring-emulation", gossip::ring_emulation(tree), bound))
        }
        _ => {
            let (plan, bound) = flood(tree, flits, ports)?;
            Ok(("flood", plan, bound))
        }
    }
}

fn unfit(why: &str) -> PlanError {
    PlanError::Unfit {
        algorithm: "ring-emulation".to_owned(),
        why: why.to_owned(),
    }
}

fn messages(flits: &[u64]) -> Vec<PlannedMessage> {
    let all = (0..).map(PeId).zip(flits);
    let nonnull = all.filter(|(_, flits)| **flits > 0);
    nonnull
        .map(|(pe, length)| PlannedMessage::to_others(pe.0.into(), pe, flits.len(), *length))
        .collect()
}
