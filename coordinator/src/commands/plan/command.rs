//! Makes the plan of an operation and prints it.

use std::io::{self, Write};

use super::args::{Order, PlanArgs, PlanGatherArgs, PlanOperation, PlanScatterArgs};
use super::{
    broadcast, cover, exchange, gossip_on_network, gossip_on_tree, ordered, packets, scatter_from,
    steps,
};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::text::faults::Faults;

/// The result of printing a plan, or all errors in the command line.
pub type Printed = Result<io::Result<()>, Faults>;

/// Prints the plan, or returns all errors in the command line.
pub fn run(args: &PlanArgs, out: &mut dyn Write) -> Printed {
    let (plan, print) = match &args.operation {
        PlanOperation::Scatter(args) => return scatter(args, out),
        PlanOperation::Gather(args) => return gather(args, out),
        PlanOperation::Gossip(args) if args.tree.network().is_some() => {
            return gossip_on_network::run(args, out);
        }
        PlanOperation::Gossip(args) => (gossip_on_tree::plan(args)?, args.print),
        PlanOperation::Exchange(args) => (exchange::plan(args)?, args.print),
        PlanOperation::Broadcast(args) if args.cover => (cover::broadcast(args)?, args.print),
        PlanOperation::Broadcast(args) => (broadcast::plan(args)?, args.print),
    };
    Ok(plan.write(print, out)?)
}

fn scatter(args: &PlanScatterArgs, out: &mut dyn Write) -> Printed {
    let print = args.plan.print;
    if let Some(cost) = args.packets.setup {
        return packets::scatter(args, cost, out);
    }
    if args.plan.cover {
        Ok(cover::scatter(args)?.write(print, out)?)
    } else if let Some(listed) = scatter_from::listed(args) {
        Ok(scatter_from::plan_list(args, listed)?.write(print, out)?)
    } else if args.from.is_some() || args.ports == Ports::Multi {
        Ok(scatter_from::plan(args)?.write(print, out)?)
    } else if let Some(Order::Search(nodes)) = args.order {
        ordered::scatter(args, nodes, out)
    } else {
        Ok(steps::scatter(args)?.write(print, out)?)
    }
}

fn gather(args: &PlanGatherArgs, out: &mut dyn Write) -> Printed {
    let print = args.plan.print;
    match args.packets.setup {
        Some(cost) => packets::gather(args, cost, out),
        None if args.plan.cover => Ok(cover::gather(args)?.write(print, out)?),
        None => Ok(steps::gather(args)?.write(print, out)?),
    }
}
