//! Gossip on a ring, an array, a mesh, a torus or a complete network, in whole steps of the
//! wormhole model.

use std::io::{self, Write};
use std::sync::Arc;

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::cost::Ports;
use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{
    Gossip, GossipAlgorithm, GossipNetwork, MAX_FLITS, NameError, Prices, Unfit, choose, free_run,
};
use flitcast_plan::on_links::of_gossip;

use super::args::PlanGossipArgs;
use super::error::{GossipPlanError, PlanError, PlanErrors};
use super::gossip_plan::GossipPlan;
use super::simulate::against_packets;
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::job::prices::typed;
use flitcast_cluster::options::flits::lengths_in_flits;
use flitcast_cluster::options::gossip_network::gossip_network;
use flitcast_cluster::options::ports::Ports as PortsArg;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::workload::Lengths;

/// Prints the plan, or returns all errors in the command line.
pub fn run(args: &PlanGossipArgs, out: &mut dyn Write) -> Result<io::Result<()>, PlanErrors> {
    let (gossip, algorithm, typed, prices) = planned(args)?;
    let cost = gossip.cost();
    let simulated = match args.print.simulate {
        true => simulated(args, &gossip, &algorithm)?,
        false => String::new(),
    };
    let exact = |time| Fraction::new(time, prices.unit.into());
    let on_links = on_links(args, &gossip, &algorithm)?;
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
    Ok(plan.write(args.print, on_links, &simulated, out)?)
}

/// Returns the time on the requested links. In a complete network, a PE has one port.
fn on_links(
    args: &PlanGossipArgs,
    gossip: &Gossip,
    algorithm: &GossipAlgorithm,
) -> Result<Option<OnLinks>, PlanTooLarge> {
    let ports = match gossip.arena {
        GossipNetwork::Grid(_) => Ports::PerEdge,
        GossipNetwork::Complete(_) => Ports::Single,
    };
    // A run has its own schedules for some, whose flits do not wait for the rest of a packet.
    let mut own = Algorithm::named("gossip").map(|one| one.algorithm().parse::<GossipAlgorithm>());
    let are_whole = !own.any(|own| own.as_ref() == Ok(algorithm));
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
    algorithm: &GossipAlgorithm,
) -> Result<String, PlanErrors> {
    let tree = Arc::new(args.tree.topology(SpanningArg::Bfs)?.tree);
    Ok(against_packets(gossip, algorithm, &tree)?)
}

type Planned = (Gossip, GossipAlgorithm, PriceArgs, Prices);

fn planned(args: &PlanGossipArgs) -> Result<Planned, PlanErrors> {
    let spec = args.tree.network.as_deref().unwrap_or_default();
    let mut faults = PlanErrors(of_trees(args));
    let arena = faults.take(gossip_network(spec).map_err(GossipPlanError::from));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    let prices = faults.take(typed(&args.prices).and_then(|typed| Ok((typed.prices()?, typed))));
    let asked = match args.algorithm.as_str() {
        "auto" => Some(None),
        name => faults.take(named(name, arena.as_ref())).map(Some),
    };
    if let Some(arena) = &arena {
        faults.take(
            arena
                .check_size()
                .map_err(|fault| GossipPlanError::from(anyhow!("--network {spec}: {fault}"))),
        );
        if let Some(Some(asked)) = &asked {
            faults.take(asked.on(arena).map_err(|all| described(asked, all)));
        }
    }
    let lengths = match (&arena, lengths) {
        (Some(arena), Some(lengths)) => faults.take(dealt(&lengths, arena.pes())),
        _ => None,
    };
    let (Some(arena), Some(lengths), Some((prices, typed)), Some(asked), []) =
        (arena, lengths, prices, asked, &faults.0[..])
    else {
        return Err(faults);
    };
    let algorithm = asked.unwrap_or_else(|| choose(&arena, &lengths, &prices));
    let gossip = Gossip::new(arena, &lengths, &algorithm);
    let gossip = gossip.map_err(|all| described(&algorithm, all))?;
    Ok((gossip, algorithm, typed, prices))
}

/// Returns the algorithm of that name; the error lists those of the network.
fn named(name: &str, arena: Option<&GossipNetwork>) -> Result<GossipAlgorithm, PlanError> {
    name.parse().map_err(|fault| match (fault, arena) {
        (NameError::Unknown(algorithm), Some(arena)) => PlanError::Unfit {
            algorithm,
            why: Unfit::other_network(arena).to_string(),
        },
        (fault, _) => GossipPlanError::from(fault).into(),
    })
}

/// Returns an error for each option that does not apply to a network.
fn of_trees(args: &PlanGossipArgs) -> Vec<PlanError> {
    let ports = (args.ports == PortsArg::Multi).then_some("--ports");
    let given = args.tree.given_for_trees().chain(ports);
    given
        .map(|option| GossipPlanError::OfTrees(option).into())
        .collect()
}

/// Computes a length for each PE.
fn dealt(lengths: &Lengths, needed: usize) -> Result<Vec<u64>, PlanError> {
    match lengths {
        Lengths::List(list) if list.len() != needed => {
            let given = list.len();
            return Err(GossipPlanError::Count { given, needed }.into());
        }
        _ => {}
    }
    let dealt = lengths.deal(needed).map_err(|_| GossipPlanError::TooLong)?;
    // The sum is known to fit.
    match dealt.iter().sum::<u64>() {
        total if total > MAX_FLITS => Err(GossipPlanError::TooLong.into()),
        _ => Ok(dealt),
    }
}

/// Returns the reasons why an algorithm does not support a network as errors.
fn described(algorithm: &GossipAlgorithm, faults: Vec<impl ToString>) -> Vec<PlanError> {
    let fault = |why: String| PlanError::Unfit {
        algorithm: algorithm.to_string(),
        why,
    };
    faults.iter().map(|why| fault(why.to_string())).collect()
}
