//! `flitcast plan scatter` and `gather` with `--setup`: plans in packets with a set-up cost.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::packets::certification::{self, ControlCost};
use flitcast_proto::packets::fault::PacketsFault;
use flitcast_proto::packets::mixed::plan_mixed;
use flitcast_proto::packets::model::LinkCost;
use flitcast_proto::packets::search::DEFAULT_NODES;
use flitcast_proto::packets::{self, Method, Split};

use super::args::{Order, PlanGatherArgs, PlanRoundArgs, PlanScatterArgs};
use super::asked::{AskedPlan, order_of};
use super::error::PlanError;
use super::packet_args::{ControlArg, PacketArgs, Packets};
use super::packets_plan::{CertifiedPlan, PlanInPackets};
use crate::options::args::GatherAlgorithm;
use crate::options::names::typed;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// Prints the plan of a scatter, or returns all errors in the command line.
pub fn scatter(
    args: &PlanScatterArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let mut unfit = unfit(&args.plan, args.ports);
    if args.from.is_some() {
        unfit.push("--from");
    }
    let mut faults = left_out(unfit);
    if let Some(Packets::Cap(_)) = args.packets.packets {
        faults.push(PlanError::Packets(
            "cap:C is for a gather by certification: auto, mixed, COUNT, sizes:S1,S2,.. or \
             sequence:PExFLITS,.."
                .to_owned(),
        ));
    }
    let is_in_order = matches!(
        args.packets.packets,
        Some(Packets::Split(Split::Sizes(_) | Split::Sequence(_)))
    );
    if is_in_order && args.order.is_some() {
        faults.push(PlanError::Packets(
            "sizes and sequence say in which order packets leave: leave out --order".to_owned(),
        ));
    }
    if let (Some(Packets::Mixed), Some(_)) = (&args.packets.packets, &args.order) {
        faults.push(PlanError::Packets(
            "mixed packets have their own order: leave out --order".to_owned(),
        ));
    }
    if let (Some(Packets::Split(Split::Count(_))), Some(Order::Search(_))) =
        (&args.packets.packets, &args.order)
    {
        faults.push(PlanError::Packets(
            "--order search chooses the packets, too: leave out either".to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Bfs, faults)?;
    let order = match &args.order {
        None | Some(Order::Search(_)) => None,
        Some(order) => {
            Some(order_of(&asked.tree, &asked.flits, order).map_err(|fault| vec![fault])?)
        }
    };
    let nodes = match args.order {
        Some(Order::Search(nodes)) => Some(nodes),
        _ => args.packets.search,
    };
    let report = in_packets("scatter", &args.packets, nodes, &asked, cost, order)?;
    report.write(args.plan.print(), out)
}

/// Prints the plan of a gather, or returns all errors in the command line.
pub fn gather(
    args: &PlanGatherArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let mut unfit = unfit(&args.plan, args.ports);
    if args.sync.is_some() {
        unfit.push("--sync");
    }
    if args.order.is_some() {
        unfit.push("--order");
    }
    match args.algorithm {
        Some(GatherAlgorithm::Certification) => certified(args, cost, unfit, out),
        other if args.control.is_some() => {
            unfit.push("--control, which is for --algorithm certification");
            mirrored(args, cost, other, left_out(unfit), out)
        }
        other => mirrored(args, cost, other, left_out(unfit), out),
    }
}

/// Plans a gather whose lengths P0 knows beforehand.
fn mirrored(
    args: &PlanGatherArgs,
    cost: LinkCost,
    unfit: Option<GatherAlgorithm>,
    mut faults: Vec<PlanError>,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    faults.extend(unfit.map(|algorithm| {
        PlanError::Unfit {
        algorithm: typed(&algorithm),
        why: "with --setup, a gather is planned by certification or, without --algorithm, as the \
              mirror of a scatter"
            .to_owned(),
    }
    }));
    if let Some(Packets::Cap(_)) = args.packets.packets {
        faults.push(PlanError::Packets(
            "cap:C belongs to --algorithm certification: auto, COUNT or sizes:S1,S2,.. without it"
                .to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Bfs, faults)?;
    let nodes = args.packets.search;
    let report = in_packets("gather", &args.packets, nodes, &asked, cost, None)?;
    report.write(args.plan.print(), out)
}

/// Plans a gather whose lengths P0 does not know beforehand.
fn certified(
    args: &PlanGatherArgs,
    cost: LinkCost,
    mut unfit: Vec<&'static str>,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    if args.packets.search.is_some() {
        unfit.push("--search");
    }
    let mut faults = left_out(unfit);
    if let Some(Packets::Split(_) | Packets::Mixed) = args.packets.packets {
        faults.push(PlanError::Packets(
            "certification has one cap for all messages: auto or cap:C".to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Broadcast, faults)?;
    let (tree, flits) = (&asked.tree, &asked.flits);
    let control = match args.control {
        Some(ControlArg::Free) => ControlCost::Free,
        Some(ControlArg::Packet) | None => ControlCost::Packet,
    };
    let certified = match args.packets.packets {
        Some(Packets::Cap(cap)) => certification::plan(tree, flits, cost, control, cap),
        _ => certification::plan_best_cap(tree, flits, cost, control),
    };
    let certified = certified.map_err(|fault| vec![told(fault)])?;
    // On a tree for which no bound is computed, none is reported.
    let mirror = packets::plan(tree, flits, cost, 0).ok();
    let report = CertifiedPlan {
        asked: &asked,
        cost,
        certified,
        bound: mirror.map(|mirror| mirror.bound),
    };
    report.write(args.plan.print(), out)
}

/// Returns the options that only apply to plans in steps.
fn unfit(args: &PlanRoundArgs, ports: Ports) -> Vec<&'static str> {
    let mut unfit = Vec::new();
    if ports == Ports::Multi {
        unfit.push("--ports multi");
    }
    if args.simulate {
        unfit.push("--simulate");
    }
    if args.links.link.is_some() {
        unfit.push("--link");
    }
    unfit
}

fn left_out(unfit: Vec<&'static str>) -> Vec<PlanError> {
    match unfit.is_empty() {
        true => Vec::new(),
        false => vec![PlanError::NotInPackets(unfit.join(", "))],
    }
}

/// Returns the tree and the lengths, unless there is an error in them or there was one before.
fn asked(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
    mut faults: Vec<PlanError>,
) -> Result<AskedPlan, Vec<PlanError>> {
    match AskedPlan::of(args, spanning) {
        Ok(asked) if faults.is_empty() => Ok(asked),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

fn in_packets<'a>(
    operation: &'static str,
    args: &PacketArgs,
    nodes: Option<u64>,
    asked: &'a AskedPlan,
    cost: LinkCost,
    order: Option<(Vec<PeId>, &'static str)>,
) -> Result<PlanInPackets<'a>, Vec<PlanError>> {
    let (tree, flits) = (&asked.tree, &asked.flits);
    let given = order.as_ref().map(|(order, _)| &order[..]);
    let plan = match (&args.packets, given) {
        (Some(Packets::Split(split)), _) => packets::plan_split(tree, flits, cost, split, given),
        (_, Some(order)) => packets::plan_in_order(tree, flits, cost, order),
        (Some(Packets::Mixed), None) => {
            plan_mixed(tree, flits, cost, nodes.unwrap_or(DEFAULT_NODES))
        }
        _ => packets::plan(tree, flits, cost, nodes.unwrap_or(DEFAULT_NODES)),
    };
    let unplanned = packets::unplanned(tree, flits, cost);
    match (plan, unplanned) {
        (Ok(plan), Ok(unplanned)) => Ok(PlanInPackets {
            operation,
            asked,
            cost,
            method: match order {
                Some((_, name)) => name,
                None => method(plan.method),
            },
            plan,
            unplanned,
        }),
        (Err(fault), _) | (_, Err(fault)) => Err(vec![told(fault)]),
    }
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

/// Returns the error with the option that it concerns.
fn told(fault: PacketsFault) -> PlanError {
    match fault {
        PacketsFault::Flits { .. } | PacketsFault::Hops { .. } => {
            PlanError::LengthsInPackets(fault)
        }
        _ => PlanError::Packets(fault.to_string()),
    }
}
