//! Gossip on a ring, an array, a mesh, a torus or a complete network, in whole steps of the
//! wormhole model.

use std::io::{self, Write};
use std::sync::Arc;

use flitcast_proto::cost::Ports;
use flitcast_proto::exact::Exact;
use flitcast_proto::gossip::{
    Algorithm, Among, Arena, Gossip, MAX_FLITS, NameError, Prices, Unfit, choose, free_run,
};
use flitcast_proto::on_links::of_gossip;

use super::args::PlanGossipArgs;
use super::error::{GossipFault, PlanError};
use super::gossip_plan::GossipPlan;
use super::simulate::against_packets;
use crate::job::on_links::OnLinks;
use crate::job::prices::typed;
use crate::options::flits::lengths_in_flits;
use crate::options::gossip_network::{GossipNetworkError, gossip_network};
use crate::options::ports::Ports as PortsArg;
use crate::options::prices::PriceArgs;
use crate::options::tree::SpanningArg;
use crate::options::workload::Lengths;
use crate::ways::plan_limits::TooMuch;

/// Prints the plan, or returns all errors in the command line.
pub fn run(args: &PlanGossipArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<PlanError>> {
    let (gossip, algorithm, typed, prices) = planned(args)?;
    let cost = gossip.cost();
    let simulated = match args.print.simulate {
        true => simulated(args, &gossip, &algorithm)?,
        false => String::new(),
    };
    let exact = |time| Exact::new(time, prices.unit.into());
    let on_links = on_links(args, &gossip, &algorithm).map_err(|fault| vec![fault.into()])?;
    let plan = GossipPlan {
        network: args.tree.network.as_deref().unwrap_or_default(),
        algorithm: algorithm.to_string(),
        typed: &typed,
        prices: &prices,
        cost,
        time: exact(prices.time(cost)),
        free_run: free_run(&gossip, &prices).map(exact),
        bound: gossip.bound(&prices),
        gossip: &gossip,
    };
    let written = plan.write(args.print, on_links, &simulated, out);
    written.map_err(|fault| vec![fault])
}

/// Returns the time on the requested links. In a complete network, a PE has one port.
fn on_links(
    args: &PlanGossipArgs,
    gossip: &Gossip,
    algorithm: &Algorithm,
) -> Result<Option<OnLinks>, TooMuch> {
    let ports = match gossip.arena {
        Arena::Grid(_) => Ports::PerEdge,
        Arena::Complete(_) => Ports::Single,
    };
    // A run has its own schedules for these, whose flits do not wait for the rest of a packet.
    let one = Among::Dissemination { ports: 1 };
    let own = [one, Among::Circulate, Among::Direct].map(Algorithm::Among);
    let are_whole = !own.contains(algorithm);
    let pes = gossip.arena.pes();
    let flits = gossip.blocks.lengths().iter().sum::<u64>();
    let flits = flits.saturating_mul(pes as u64 - 1);
    let links = &args.print.links;
    links.time(pes, ports, flits, |_| of_gossip(gossip, are_whole))
}

/// Returns the result of the simulation, over the tree that a run would begin with.
fn simulated(
    args: &PlanGossipArgs,
    gossip: &Gossip,
    algorithm: &Algorithm,
) -> Result<String, Vec<PlanError>> {
    let topology = args.tree.topology(SpanningArg::Bfs);
    let topology = topology.map_err(|all| all.into_iter().map(PlanError::from).collect::<Vec<_>>());
    let tree = Arc::new(topology?.tree);
    against_packets(gossip, algorithm, &tree).map_err(|fault| vec![fault])
}

type Planned = (Gossip, Algorithm, PriceArgs, Prices);

fn planned(args: &PlanGossipArgs) -> Result<Planned, Vec<PlanError>> {
    let mut faults: Vec<PlanError> = of_trees(args);
    let arena = gossip_network(args.tree.network.as_deref().unwrap_or_default());
    let arena = kept(arena.map_err(GossipFault::from), &mut faults);
    let lengths = kept(lengths_in_flits(&args.lengths), &mut faults);
    let prices = typed(&args.prices).and_then(|typed| Ok((typed.prices()?, typed)));
    let prices = prices.map_err(|all| faults.extend(all.into_iter().map(PlanError::from)));
    let asked = match args.algorithm.as_str() {
        "auto" => Some(None),
        name => kept(named(name, arena.as_ref()), &mut faults).map(Some),
    };
    if let Some(arena) = &arena {
        let size = arena.check_size().map_err(|fault| {
            let spec = args.tree.network.clone().unwrap_or_default();
            GossipFault::from(GossipNetworkError::Arena { spec, fault })
        });
        kept(size, &mut faults);
        if let Some(Some(asked)) = &asked {
            faults.extend(unfit(asked, arena));
        }
    }
    let lengths = match (&arena, lengths) {
        (Some(arena), Some(lengths)) => {
            let dealt = dealt(&lengths, arena.pes());
            dealt.map_err(|fault| faults.push(fault)).ok()
        }
        _ => None,
    };
    let (Some(arena), Some(lengths), Ok((prices, typed)), Some(asked)) =
        (arena, lengths, prices, asked)
    else {
        return Err(faults);
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    let algorithm = asked.unwrap_or_else(|| choose(&arena, &lengths, &prices));
    let gossip = Gossip::new(arena, &lengths, &algorithm);
    let gossip = gossip.map_err(|all| described(&algorithm, all))?;
    Ok((gossip, algorithm, typed, prices))
}

/// Returns the algorithm of that name; the error lists those of the network.
fn named(name: &str, arena: Option<&Arena>) -> Result<Algorithm, PlanError> {
    name.parse().map_err(|fault| match (fault, arena) {
        (NameError::Unknown(algorithm), Some(arena)) => PlanError::Unfit {
            algorithm,
            why: Unfit::other_network(arena).to_string(),
        },
        (fault, _) => GossipFault::from(fault).into(),
    })
}

/// Returns the value, or adds the error to the others.
fn kept<T, E: Into<PlanError>>(read: Result<T, E>, faults: &mut Vec<PlanError>) -> Option<T> {
    read.map_err(|fault| faults.push(fault.into())).ok()
}

/// Returns an error for each option that does not apply to a network.
fn of_trees(args: &PlanGossipArgs) -> Vec<PlanError> {
    let options = [
        ("--tree", args.tree.tree.is_some()),
        ("--cluster", args.tree.cluster.is_some()),
        ("--root", args.tree.root.is_some()),
        ("--spanning", args.tree.spanning.is_some()),
        ("--ports", args.ports == PortsArg::Multi),
    ];
    let given = options.into_iter().filter(|(_, given)| *given);
    given
        .map(|(option, _)| GossipFault::OfTrees(option).into())
        .collect()
}

/// Computes a length for each PE.
fn dealt(lengths: &Lengths, needed: usize) -> Result<Vec<u64>, PlanError> {
    match lengths {
        Lengths::List(list) if list.len() != needed => {
            let given = list.len();
            return Err(GossipFault::Count { given, needed }.into());
        }
        _ => {}
    }
    let dealt = lengths.deal(needed).map_err(|_| GossipFault::TooLong)?;
    // The sum is known to fit.
    match dealt.iter().sum::<u64>() {
        total if total > MAX_FLITS => Err(GossipFault::TooLong.into()),
        _ => Ok(dealt),
    }
}

/// Returns the reasons why an algorithm does not support a network.
fn unfit(algorithm: &Algorithm, arena: &Arena) -> Vec<PlanError> {
    let faults = algorithm.on(arena).err().unwrap_or_default();
    described(algorithm, faults)
}

fn described(algorithm: &Algorithm, faults: Vec<impl ToString>) -> Vec<PlanError> {
    let fault = |why: String| PlanError::Unfit {
        algorithm: algorithm.to_string(),
        why,
    };
    faults.iter().map(|why| fault(why.to_string())).collect()
}
