//! `flitcast plan`: what will happen, step by step, from the schedule that a real
//! run uses, without a network.

mod args;
mod cover;
mod gossip_on_network;
mod input;
mod lists;
mod ordered;
mod packets;
mod packets_report;
mod report;
mod simulate;
mod static_plan;
mod static_report;
mod steps;
mod svg;

use std::io::{self, Write};

pub use args::PlanOperation;
use args::{Order, PlanGatherArgs, PlanScatterArgs};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::text::faults::Faults;

/// The result of printing a plan, or all errors in the command line.
type Printed = Result<io::Result<()>, Faults>;

pub fn run(operation: &PlanOperation, out: &mut dyn Write) -> Printed {
    let (plan, print) = match operation {
        PlanOperation::Scatter(args) => return scatter(args, out),
        PlanOperation::Gather(args) => return gather(args, out),
        PlanOperation::Gossip(args) if args.tree.network().is_some() => {
            return gossip_on_network::run(args, out);
        }
        PlanOperation::Gossip(args) => (lists::gossip(args)?, args.print),
        PlanOperation::Exchange(args) => (lists::exchange(args)?, args.print),
        PlanOperation::Broadcast(args) if args.cover => (cover::broadcast(args)?, args.print),
        PlanOperation::Broadcast(args) => (lists::broadcast(args)?, args.print),
    };
    Ok(plan.write(print, out)?)
}

fn scatter(args: &PlanScatterArgs, out: &mut dyn Write) -> Printed {
    let is_list =
        lists::listed(args).is_some() || args.from.is_some() || args.ports == Ports::Multi;
    let plan = match (args.packets.setup, &args.order) {
        (Some(cost), _) => return packets::scatter(args, cost, out),
        _ if args.plan.cover => cover::scatter(args)?,
        _ if is_list => lists::scatter(args)?,
        (_, Some(Order::Search(nodes))) => return ordered::scatter(args, *nodes, out),
        _ => return Ok(steps::scatter(args)?.write(args.plan.print, out)?),
    };
    Ok(plan.write(args.plan.print, out)?)
}

fn gather(args: &PlanGatherArgs, out: &mut dyn Write) -> Printed {
    match args.packets.setup {
        Some(cost) => packets::gather(args, cost, out),
        None if args.plan.cover => Ok(cover::gather(args)?.write(args.plan.print, out)?),
        None => Ok(steps::gather(args)?.write(args.plan.print, out)?),
    }
}
