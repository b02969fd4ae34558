//! The gossip algorithms that users request by name, with those of a network.

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::OnNetwork;
use flitcast_plan::gossip::{GossipAlgorithm, GossipNetwork, NameError, Prices, choose};
use flitcast_proto::cost::Link;
use flitcast_proto::ops::Collective;

use crate::algorithms::candidates::Candidate;
use crate::algorithms::method::operation_by;
use crate::site::topology::Topology;
use crate::tuning::BLOCK_UNIT_BYTES;

/// The algorithms of networks without parameters, for a choice.
pub const OF_NETWORKS: [&str; 3] = ["approach1", "halves", "neighbour"];

pub fn named(name: &str, topology: &Topology) -> anyhow::Result<Algorithm> {
    let unfit = |why: String| anyhow!("--algorithm {name}: {why}");
    if let Some(known) = operation_by("gossip", name)
        && known != Algorithm::GOSSIP_ON_NETWORK
    {
        return Ok(known);
    }
    if Algorithm::listed(Collective::Gossip).any(|one| one.name() == name) {
        let why = format!("{name} is only planned: use `flitcast plan gossip`");
        return Err(unfit(why));
    }
    let algorithm: GossipAlgorithm = name.parse().map_err(|fault: NameError| {
        let over_trees = match &fault {
            NameError::Unknown(_) => "; and flood, over any tree",
            NameError::Form { .. } => "",
        };
        unfit(format!("{fault}{over_trees}"))
    })?;
    let arena = arena_of(topology).map_err(unfit)?;
    let one = OnNetwork::new(arena, algorithm).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        unfit(faults.join("; "))
    })?;
    Ok(Algorithm::gossip_on(one))
}

/// Returns the network whose nodes the PEs are.
fn arena_of(topology: &Topology) -> Result<GossipNetwork, String> {
    if topology.nodes.as_ref().is_some_and(|nodes| nodes[0] != 0) {
        let why = "PEs are numbered as the nodes of their network: leave --root out";
        return Err(why.to_owned());
    }
    let spec = topology.network.as_ref().and_then(|it| it.spec.as_ref());
    match spec {
        Some(spec) => GossipNetwork::of(spec).map_err(|fault| fault.to_string()),
        None if topology.reaches_all() => Ok(GossipNetwork::Complete(topology.tree.len())),
        None => Err(
            "it is for networks: use --network ring:N, array:N, mesh:AxB.., torus:AxB.. or \
             complete:N"
                .to_owned(),
        ),
    }
}

/// Returns the algorithms of a network without parameters, for a choice, and the cheapest one for
/// blocks of these lengths if the links' costs are known.
pub fn candidates_on(topology: &Topology, priced: Option<(&Link, &[u64])>) -> Vec<Candidate> {
    let Ok(arena) = arena_of(topology) else {
        return Vec::new();
    };
    let named = OF_NETWORKS.iter().filter_map(|name| name.parse().ok());
    let cheapest = priced.map(|(link, lengths)| cheapest(&arena, link, lengths));
    let mut suiting: Vec<OnNetwork> = Vec::new();
    for algorithm in named.chain(cheapest) {
        let one = OnNetwork::new(arena.clone(), algorithm).ok();
        suiting.extend(one.filter(|one| !suiting.contains(one)));
    }
    let suiting = suiting.into_iter();
    suiting
        .map(|one| Candidate::new(one.name(), Algorithm::gossip_on(one), None))
        .collect()
}

/// Returns the algorithm with the least cost in the model of Juurlink, Rao and Sibeyn (section 2),
/// with a link for each neighbour: a step takes `t_s + F * t_l` for its largest packet of F flits.
fn cheapest(arena: &GossipNetwork, link: &Link, lengths: &[u64]) -> GossipAlgorithm {
    let flits = lengths.iter().map(|bytes| bytes.div_ceil(BLOCK_UNIT_BYTES));
    let price = |ns: f64| (ns.round() as u64).min(Prices::MAX);
    let prices = Prices {
        startup: price(link.latency_ns + link.setup_ns),
        hop: 0,
        flit: price(link.ns_per_byte * BLOCK_UNIT_BYTES as f64),
        unit: 1,
    };
    choose(arena, &flits.collect::<Vec<_>>(), &prices)
}
