//! Gossip on a ring, an array, a mesh, a torus or a complete network, in whole steps of the
//! wormhole model.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use flitcast_plan::Algorithm;
use flitcast_plan::cost::Ports;
use flitcast_plan::gossip::{
    Gossip, GossipAlgorithm, GossipNetwork, MAX_FLITS, NameError, Unfit, choose,
};
use flitcast_plan::on_links::of_gossip;

use super::args::PlanGossipArgs;
use super::gossip_report::GossipPlan;
use super::input::unfit;
use super::simulate::against_packets;
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::job::prices::typed;
use flitcast_cluster::options::flits::lengths_in_flits;
use flitcast_cluster::options::gossip_network::gossip_network;
use flitcast_cluster::options::ports::Ports as PortsArg;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::workload::Lengths;
use flitcast_cluster::text::faults::Faults;

pub fn run(args: &PlanGossipArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let plan = planned(args)?;
    let simulated = match args.print.simulate {
        true => {
            // The tree that a run would begin with.
            let tree = Arc::new(args.tree.topology(SpanningArg::Bfs)?.tree);
            against_packets(&plan.gossip, &plan.algorithm, &tree)?
        }
        false => String::new(),
    };
    let on_links = on_links(args, &plan)?;
    Ok(plan.write(args.print, on_links, &simulated, out)?)
}

/// Returns the time on the requested links. In a complete network, a PE has one port.
fn on_links(args: &PlanGossipArgs, plan: &GossipPlan) -> Result<Option<OnLinks>, PlanTooLarge> {
    let gossip = &plan.gossip;
    let ports = match gossip.arena {
        GossipNetwork::Grid(_) => Ports::PerEdge,
        GossipNetwork::Complete(_) => Ports::Single,
    };
    // A run has its own schedules for some, whose flits do not wait for the rest of a packet.
    let mut own = Algorithm::named("gossip").map(|one| one.name().parse::<GossipAlgorithm>());
    let are_whole = !own.any(|own| own.as_ref() == Ok(&plan.algorithm));
    let pes = gossip.arena.pes();
    let flits = gossip.blocks.lengths().iter().sum::<u64>();
    let flits = flits.saturating_mul(pes as u64 - 1);
    let links = &args.print.links;
    links.time(pes, ports, flits, |_| of_gossip(gossip, are_whole))
}

fn planned(args: &PlanGossipArgs) -> Result<GossipPlan, Faults> {
    let network = args.tree.network().unwrap_or_default();
    let mut faults = Faults(of_trees(args));
    let arena = faults.take(gossip_network(&network));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    let prices = typed(&args.prices).and_then(|typed| Ok((typed.prices()?, typed)));
    let prices = faults.take(prices);
    let requested = match args.algorithm.as_str() {
        "auto" => Some(None),
        name => faults.take(named(name, arena.as_ref())).map(Some),
    };
    if let Some(arena) = &arena {
        let sized = arena.check_size();
        faults.take(sized.map_err(|fault| anyhow!("--network {network}: {fault}")));
        if let Some(Some(requested)) = &requested {
            faults.take(requested.on(arena).map_err(|all| described(requested, all)));
        }
    }
    let lengths = match (&arena, lengths) {
        (Some(arena), Some(lengths)) => faults.take(dealt(&lengths, arena.pes())),
        _ => None,
    };
    let (Some(arena), Some(lengths), Some((prices, typed)), Some(requested), []) =
        (arena, lengths, prices, requested, &faults.0[..])
    else {
        return Err(faults);
    };
    let algorithm = requested.unwrap_or_else(|| choose(&arena, &lengths, &prices));
    let gossip = Gossip::new(arena, &lengths, &algorithm);
    Ok(GossipPlan {
        gossip: gossip.map_err(|all| described(&algorithm, all))?,
        network,
        algorithm,
        typed,
        prices,
    })
}

/// Returns the algorithm of that name; the error lists those of the network.
fn named(name: &str, arena: Option<&GossipNetwork>) -> anyhow::Result<GossipAlgorithm> {
    name.parse().map_err(|fault| match (fault, arena) {
        (NameError::Unknown(algorithm), Some(arena)) => {
            unfit(algorithm, Unfit::other_network(arena))
        }
        (fault, _) => anyhow!("--algorithm: {fault}"),
    })
}

/// Returns an error for each option that does not apply to a network.
fn of_trees(args: &PlanGossipArgs) -> Vec<anyhow::Error> {
    let ports = (args.ports == PortsArg::Multi).then_some("--ports");
    let given = args.tree.given_for_trees().chain(ports);
    let why = "is for trees: a gossip on a --network has no root, and a port for each edge";
    given.map(|option| anyhow!("{option} {why}")).collect()
}

/// Computes a length for each PE.
fn dealt(lengths: &Lengths, needed: usize) -> anyhow::Result<Vec<u64>> {
    if let Lengths::List(list) = lengths {
        ensure!(
            list.len() == needed,
            "--lengths: {} given, but {needed} needed: one for each PE from P0 to P{} (for the \
             same everywhere, write equal:LENGTH)",
            list.len(),
            needed - 1
        );
    }
    // Sums of longer blocks would be inexact; the sum of those dealt fits.
    let dealt = lengths.deal(needed).ok();
    let dealt = dealt.filter(|dealt| dealt.iter().sum::<u64>() <= MAX_FLITS);
    dealt
        .with_context(|| format!("--lengths: the blocks have more than {MAX_FLITS} flits together"))
}

/// Returns the reasons why an algorithm does not support a network as errors.
fn described(algorithm: &GossipAlgorithm, faults: Vec<impl Display>) -> Faults {
    Faults::all(faults.iter().map(|why| unfit(algorithm, why)))
}
