//! `flitcast plan scatter` and `gather` with `--setup`: plans in packets with a set-up cost.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::packets::certification::{self, ControlCost};
use flitcast_plan::packets::mixed::plan_mixed;
use flitcast_plan::packets::model::{LinkCost, PacketPlanError};
use flitcast_plan::packets::search::DEFAULT_NODES;
use flitcast_plan::packets::{self, Method, Split};
use flitcast_proto::PeId;

use super::args::{
    ControlArg, Order, PacketArgs, Packets, PlanGatherArgs, PlanRoundArgs, PlanScatterArgs,
};
use super::input::{PlanInput, unfit};
use super::packets_report::{CertifiedPlan, PlanInPackets};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::text::faults::Faults;

pub fn scatter(
    args: &PlanScatterArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Faults> {
    let mut faults = left_out(&args.plan, args.ports, &[(args.from.is_some(), "--from")]);
    let why = match (&args.packets.packets, &args.order) {
        (Some(Packets::Cap(_)), _) => Some(
            "cap:C is for a gather by certification: auto, mixed, COUNT, sizes:S1,S2,.. or \
             sequence:PExFLITS,..",
        ),
        (Some(Packets::Split(Split::Sizes(_) | Split::Sequence(_))), Some(_)) => {
            Some("sizes and sequence say in which order packets leave: leave out --order")
        }
        (Some(Packets::Mixed), Some(_)) => {
            Some("mixed packets have their own order: leave out --order")
        }
        (Some(Packets::Split(Split::Count(_))), Some(Order::Search(_))) => {
            Some("--order search chooses the packets, too: leave out either")
        }
        _ => None,
    };
    faults.0.extend(why.map(of_packets));
    let input = plan_input(&args.plan, SpanningArg::Bfs, faults)?;
    let order = match &args.order {
        None | Some(Order::Search(_)) => None,
        Some(order) => Some(input.in_order(order)?),
    };
    let nodes = match args.order {
        Some(Order::Search(nodes)) => Some(nodes),
        _ => args.packets.search,
    };
    let report = in_packets("scatter", &args.packets, nodes, &input, cost, order)?;
    Ok(report.write(args.plan.print, out)?)
}

pub fn gather(
    args: &PlanGatherArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Faults> {
    let certification = Algorithm::CERTIFICATION_PIPELINED.name();
    let certifies = args.algorithm.as_deref() == Some(certification);
    let control = "--control, which is for --algorithm certification";
    let options = [
        (args.token.is_some(), "--token"),
        (args.order.is_some(), "--order"),
        (certifies && args.packets.search.is_some(), "--search"),
        (!certifies && args.control.is_some(), control),
    ];
    let mut faults = left_out(&args.plan, args.ports, &options);
    if certifies {
        return certified(args, cost, faults, out);
    }
    // The lengths are known beforehand.
    let why = "with --setup, a gather is planned by certification or, without --algorithm, as the \
               mirror of a scatter";
    let algorithm = args.algorithm.as_ref();
    faults.0.extend(algorithm.map(|it| unfit(it, why)));
    let why =
        "cap:C belongs to --algorithm certification: auto, COUNT or sizes:S1,S2,.. without it";
    let has_cap = matches!(args.packets.packets, Some(Packets::Cap(_)));
    faults.0.extend(has_cap.then(|| of_packets(why)));
    let input = plan_input(&args.plan, SpanningArg::Bfs, faults)?;
    let nodes = args.packets.search;
    let report = in_packets("gather", &args.packets, nodes, &input, cost, None)?;
    Ok(report.write(args.plan.print, out)?)
}

/// Plans a gather whose lengths are not known beforehand.
fn certified(
    args: &PlanGatherArgs,
    cost: LinkCost,
    mut faults: Faults,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Faults> {
    let why = "certification has one cap for all messages: auto or cap:C";
    let packets = &args.packets.packets;
    let is_cut = matches!(packets, Some(Packets::Split(_) | Packets::Mixed));
    faults.0.extend(is_cut.then(|| of_packets(why)));
    let input = plan_input(&args.plan, SpanningArg::Broadcast, faults)?;
    let (tree, flits) = (&input.tree, &input.flits);
    let control = match args.control {
        Some(ControlArg::Free) => ControlCost::Free,
        Some(ControlArg::Packet) | None => ControlCost::Packet,
    };
    let certified = match *packets {
        Some(Packets::Cap(cap)) => certification::plan(tree, flits, cost, control, cap),
        _ => certification::plan_best_cap(tree, flits, cost, control),
    };
    let certified = certified.map_err(with_option)?;
    // On a tree for which no bound is computed, none is reported.
    let mirror = packets::plan(tree, flits, cost, 0).ok();
    let report = CertifiedPlan {
        input: &input,
        cost,
        certified,
        bound: mirror.map(|mirror| mirror.bound),
    };
    Ok(report.write(args.plan.print, out)?)
}

/// Returns an error that names the given options that only apply to plans in steps.
fn left_out(args: &PlanRoundArgs, ports: Ports, more: &[(bool, &str)]) -> Faults {
    let options = [
        (ports == Ports::Multi, "--ports multi"),
        (args.print.simulate, "--simulate"),
        (args.print.links.link.is_some(), "--link"),
    ];
    let given = options.iter().chain(more).filter(|(given, _)| *given);
    let given: Vec<&str> = given.map(|(_, option)| *option).collect();
    let fault = || anyhow!("--setup plans in packets: leave out {}", given.join(", "));
    Faults::all((!given.is_empty()).then(fault))
}

/// Returns the tree and the lengths, unless there is an error in them or there was one before.
fn plan_input(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
    mut faults: Faults,
) -> Result<PlanInput, Faults> {
    let input = faults.take(PlanInput::of(args, spanning));
    match (input, &faults.0[..]) {
        (Some(input), []) => Ok(input),
        _ => Err(faults),
    }
}

fn in_packets<'a>(
    operation: &'static str,
    args: &PacketArgs,
    nodes: Option<u64>,
    input: &'a PlanInput,
    cost: LinkCost,
    order: Option<(Vec<PeId>, &'static str)>,
) -> anyhow::Result<PlanInPackets<'a>> {
    let (tree, flits) = (&input.tree, &input.flits);
    let given = order.as_ref().map(|(order, _)| &order[..]);
    let plan = match (&args.packets, given) {
        (Some(Packets::Split(split)), _) => packets::plan_split(tree, flits, cost, split, given),
        (_, Some(order)) => packets::plan_in_order(tree, flits, cost, order),
        (Some(Packets::Mixed), None) => {
            plan_mixed(tree, flits, cost, nodes.unwrap_or(DEFAULT_NODES))
        }
        _ => packets::plan(tree, flits, cost, nodes.unwrap_or(DEFAULT_NODES)),
    };
    let plan = plan.map_err(with_option)?;
    Ok(PlanInPackets {
        operation,
        input,
        cost,
        method: match order {
            Some((_, name)) => name,
            None => method(plan.method),
        },
        plan,
        unplanned: packets::unplanned(tree, flits, cost).map_err(with_option)?,
    })
}

/// Returns how a sequence was found, as in JSON.
fn method(method: Method) -> &'static str {
    match method {
        Method::Given => "given",
        Method::Even => "even",
        Method::OneWay | Method::FarthestFirst => "fdf",
        Method::LargestTailFirst => "largest-tail-first",
        Method::Search => "search",
        Method::Mixed => "mixed",
    }
}

fn of_packets(why: impl Display) -> anyhow::Error {
    anyhow!("--packets: {why}")
}

/// Returns the error with the option that it concerns.
fn with_option(fault: PacketPlanError) -> anyhow::Error {
    match fault {
        PacketPlanError::Lengths(_) => anyhow!("--lengths: {fault}"),
        PacketPlanError::Split(fault) => of_packets(fault),
    }
}
