//! `flitcast plan scatter` and `gather`: plans in steps of messages that do not wait on their way.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::cover_plan::steps_of_gather_on_a_tree;
use flitcast_plan::algorithms::plan::{Plan, plan, plan_gather, plan_scatter};
use flitcast_proto::{PeId, Tree};

use super::args::{Order, PlanGatherArgs, PlanScatterArgs};
use super::input::PlanInput;
use flitcast_cluster::algorithms::method::operation_by;
use flitcast_cluster::job::request::gather_operation;
use flitcast_cluster::options::order::gather_fault;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::sync::TokenArg;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::text::faults::Faults;

/// A plan with its names.
pub struct Planned {
    pub plan: Plan,
    /// The order in which P0 sends the messages of a scatter; in a gather, the given order in which it
    /// takes them, or none.
    pub order: Vec<PeId>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
    pub tree_name: String,
    pub algorithm: &'static str,
    pub sync: Option<&'static str>,
    /// With `--ports multi`: the steps with single ports.
    pub single_port_steps: Option<u64>,
    /// For a gather by many ports: the steps if P0 receives each branch on a separate port.
    pub port_each_steps: Option<u64>,
}

/// Plans a scatter from P0.
pub fn scatter(args: &PlanScatterArgs) -> Result<Planned, Faults> {
    let input = PlanInput::of(&args.plan, SpanningArg::Bfs)?;
    let order = args.order.as_ref().unwrap_or(&Order::FarthestFirst);
    let (order, algorithm) = input.in_order(order)?;
    let PlanInput { tree, flits, .. } = input;
    Ok(Planned {
        plan: plan_scatter(&tree, &flits, &order),
        order,
        flits,
        tree_name: input.name,
        algorithm,
        sync: None,
        single_port_steps: None,
        port_each_steps: None,
    })
}

pub fn gather(args: &PlanGatherArgs) -> Result<Planned, Faults> {
    // With single ports a node of many children costs time while it synchronises.
    let spanning = match args.ports {
        Ports::Single => SpanningArg::Broadcast,
        Ports::Multi => SpanningArg::Bfs,
    };
    let input = PlanInput::of(&args.plan, spanning)?;
    let order = args.order.as_ref().map(|text| input.in_given_order(text));
    let order = order.transpose()?;
    let PlanInput {
        name, tree, flits, ..
    } = input;
    let operation = match args.ports {
        Ports::Single => gather_operation(&tree, &name, args.algorithm.as_deref(), args.token)?,
        Ports::Multi => multi_port(args.algorithm.as_deref(), args.token)?,
    };
    let single_port = Algorithm::CERTIFICATION_PIPELINED;
    if let Some(algorithm) = &args.algorithm
        && operation_by(single_port.collective().name(), algorithm)
            .is_some_and(|one| !one.has_plan())
    {
        let why = "has no schedule to plan: see `flitcast compare`";
        return Err(anyhow!("--algorithm {algorithm} {why}").into());
    }
    let planned = |operation| match &order {
        Some(order) => in_order(&tree, operation, &flits, order),
        None => Ok(plan(&tree, operation, &flits)),
    };
    let single_port_steps = match args.ports {
        Ports::Single => None,
        Ports::Multi => Some(planned(single_port)?.time_steps),
    };
    let port_each_steps =
        (args.ports == Ports::Multi).then(|| steps_of_gather_on_a_tree(&tree, &flits));
    Ok(Planned {
        plan: planned(operation)?,
        order: order.unwrap_or_default(),
        flits,
        tree_name: name,
        algorithm: operation.name(),
        sync: operation.sync(),
        single_port_steps,
        port_each_steps,
    })
}

/// Returns the plan of a gather in a given order.
fn in_order(
    tree: &Arc<Tree>,
    operation: Algorithm,
    flits: &[u64],
    order: &[PeId],
) -> anyhow::Result<Plan> {
    let planned = plan_gather(tree, operation, flits, order);
    planned.map_err(|fault| anyhow!("--order: {}", gather_fault(fault)))
}

fn multi_port(algorithm: Option<&str>, token: Option<TokenArg>) -> anyhow::Result<Algorithm> {
    let parallel = Algorithm::CERTIFICATION_PARALLEL;
    let other = algorithm.filter(|algorithm| {
        let found =
            operation_by(parallel.collective().name(), algorithm).filter(|one| one.has_plan());
        found.is_some_and(|found| found.name() != parallel.name())
    });
    let unfit = match (other, token) {
        (Some(other), _) => format!("--algorithm {other}"),
        (None, Some(_)) => "--token".to_owned(),
        (None, None) => return Ok(parallel),
    };
    bail!("--ports multi runs certification's synchronisation in parallel: leave out {unfit}")
}
