//! Gossip over the edges of a tree.

use std::str::FromStr;
use std::sync::Arc;

use flitcast_proto::ops::gossip_plan as gossip;
use flitcast_proto::ops::timetable::Timetable;
use flitcast_proto::ops::{Gossip, Operation, blocks};
use flitcast_proto::{PeId, Tree};

use super::args::PlanGossipArgs;
use super::error::PlanError;
use super::played::Played;
use super::static_plan::{Crossings, PlannedMessage, StaticPlan, edges_of};
use crate::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;
use crate::ways::plan_limits::{check_flits, check_pes};
use crate::ways::tree_plans::flood;

/// How to gossip on a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// The better one for these ports.
    Auto,
    /// Each flit over each edge once.
    Flood,
    /// Around the tree.
    RingEmulation,
}

impl FromStr for Algorithm {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Algorithm, PlanError> {
        Ok(match text {
            "auto" => Algorithm::Auto,
            "flood" => Algorithm::Flood,
            "ring-emulation" => Algorithm::RingEmulation,
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
pub fn plan(args: &PlanGossipArgs) -> Result<StaticPlan, Vec<PlanError>> {
    args.prices.check_absent()?;
    let topology = args.tree.topology(SpanningArg::Bfs);
    let lengths = lengths_of_all_in_flits(&args.lengths);
    let algorithm = args.algorithm.parse::<Algorithm>();
    let (topology, lengths, algorithm) = match (topology, lengths, algorithm) {
        (Ok(topology), Ok(lengths), Ok(algorithm)) => (topology, lengths, algorithm),
        (topology, lengths, algorithm) => {
            let faults = topology.err().unwrap_or_default().into_iter();
            let faults = faults.map(PlanError::from);
            let lengths = lengths.err().map(PlanError::from);
            return Err(faults.chain(lengths).chain(algorithm.err()).collect());
        }
    };
    let tree = &topology.tree;
    let dealt = deal_flits_to_all(&lengths, tree.len()).map_err(PlanError::from);
    let flits = dealt.and_then(|flits| check(tree, flits));
    let flits = flits.map_err(|fault| vec![fault])?;
    let planned = planned(tree, &flits, algorithm, args.ports);
    let (algorithm, plan, bound_steps) = planned.map_err(|fault| vec![fault])?;
    Ok(StaticPlan {
        operation: "gossip",
        algorithm: algorithm.to_owned(),
        ports: args.ports.name(),
        name: topology.name.clone(),
        edges: Some(edges_of(tree)),
        nodes: topology.nodes.clone(),
        pes: tree.len(),
        messages: messages(tree, &flits),
        time_steps: plan.time_steps,
        bound_steps,
        kept_flits: plan.kept_flits(),
        crossings: Crossings::Listed(plan.legs),
        played: Played::by_ports(args.ports, || played(tree, &flits)),
        ..StaticPlan::default()
    })
}

/// Returns the state machines of a gossip over the edges of a tree.
fn played(tree: &Tree, flits: &[u64]) -> Played {
    let operation = Operation::Gossip(Gossip::Flood);
    Played::flit_by_flit(blocks::of_gossip(tree, flits), || Played::ByAll {
        flits: operation.by_delivery(tree, flits),
        tree: Arc::new(tree.clone()),
        operation,
    })
}

/// Checks that the plan is not too large.
fn check(tree: &Tree, flits: Vec<u64>) -> Result<Vec<u64>, PlanError> {
    check_pes(tree.len())?;
    check_flits("--lengths", &flits)?;
    Ok(flits)
}

/// The algorithm's name, its plan and the bound.
type Planned = (&'static str, Timetable, u64);

fn planned(
    tree: &Tree,
    flits: &[u64],
    algorithm: Algorithm,
    ports: Ports,
) -> Result<Planned, PlanError> {
    match (algorithm, ports) {
        (Algorithm::RingEmulation, Ports::Single) => Err(unfit(
            "a PE sends to several neighbours at once: --ports multi",
        )),
        (Algorithm::RingEmulation, _) if flits.iter().any(|flits| *flits != 1) => Err(unfit(
            "the plan is for one flit from each PE: --lengths equal:1",
        )),
        (Algorithm::RingEmulation, _) => {
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

fn messages(tree: &Tree, flits: &[u64]) -> Vec<PlannedMessage> {
    let message = |source: PeId| PlannedMessage {
        id: source.0.into(),
        source,
        destinations: tree.ids().filter(|pe| *pe != source).collect(),
        flits: flits[source.index()],
    };
    let all = tree.ids().map(message);
    all.filter(|message| message.flits > 0).collect()
}
