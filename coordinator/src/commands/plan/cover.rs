//! Scatters, gathers and broadcasts over all trees of a cover of a network at once.

use anyhow::{Context as _, anyhow};
use flitcast_plan::algorithms::cover_plan::{self, SplitPolicy};
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::network::cover::{Cover, CoverError, cover, tree_for_each_port, ways_to_all};
use flitcast_plan::network::{Network, NetworkSpec, bfs};
use flitcast_proto::PeId;

use super::args::{
    DealArg, Order, PlanBroadcastArgs, PlanGatherArgs, PlanRoundArgs, PlanScatterArgs,
};
use super::input::{topology, topology_and_lengths};
use super::static_plan::{PlannedMessage, StaticPlan};
use flitcast_cluster::algorithms::plan_limits::{
    MOST_CROSSINGS, PlanTooLarge, check_flits, check_pes,
};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::flits::deal_flits;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;

/// A network, and the trees that cover it from its root.
struct Covered {
    name: String,
    network: Network,
    cover: Cover,
    /// Distance from P0, by PE.
    distances: Vec<u64>,
}

impl Covered {
    fn of(topology: &Topology, args: &TreeArgs, shared: bool) -> anyhow::Result<Covered> {
        let spanned = topology.network.as_ref().context(
            "--cover: trees that share no arc are those of a --network NETWORK (like torus:4x4)",
        )?;
        // A network of a cluster file has no rule for its cover.
        let no_rule = || NetworkSpec::Edges(args.cluster.clone().unwrap_or_default());
        let spec = spanned.spec.clone().unwrap_or_else(no_rule);
        let network = spanned.network.clone();
        check_pes(network.len())?;
        let nodes = topology.nodes.as_deref().unwrap_or_default();
        let root = nodes.first().copied().unwrap_or(0);
        let invalid = |fault: CoverError| anyhow!("--cover: {fault}");
        let nearest = bfs(&network, root).map_err(|fault| invalid(fault.into()))?;
        let depths = nearest.tree.pes().map(|pe| nearest.tree.depth(pe).into());
        Ok(Covered {
            name: format!("{spec} root {root}"),
            cover: match shared {
                true => tree_for_each_port(&network, root),
                false => cover(&network, Some(&spec), root),
            }
            .map_err(invalid)?,
            distances: depths.collect(),
            network,
        })
    }

    /// Computes a bound from the number of ports of P0, the distances and the lengths.
    fn bound(&self, bound: fn(usize, &[u64], &[u64]) -> u64, flits: &[u64]) -> u64 {
        let ports = self.network.neighbours(self.cover.nodes[0]).len();
        bound(ports, &self.distances, flits)
    }

    /// Returns the part of a plan that all operations over the cover share.
    fn plan(self, algorithm: String, plan: Timetable) -> StaticPlan {
        let mut pe_on = vec![PeId::ROOT; self.cover.nodes.len()];
        for (pe, node) in (0..).map(PeId).zip(&self.cover.nodes) {
            pe_on[*node as usize] = pe;
        }
        let edges = self.network.pairs();
        let edges = edges.map(|edge| edge.map(|node| pe_on[node as usize]));
        StaticPlan {
            algorithm,
            ports: "multi",
            name: self.name,
            edges: Some(edges.collect()),
            pes: self.cover.nodes.len(),
            nodes: Some(self.cover.nodes),
            trees: self.cover.trees,
            ..StaticPlan::of(plan)
        }
    }
}

/// Returns the requested cover and lengths, or all errors in them.
fn cover_and_lengths(args: &PlanRoundArgs, shared: bool) -> Result<(Covered, Vec<u64>), Faults> {
    let (topology, lengths) = topology_and_lengths(args, SpanningArg::Bfs)?;
    let flits = deal_flits(&lengths, &topology.tree)?;
    check_flits("--lengths", &flits)?;
    let covered = Covered::of(&topology, &args.tree, shared)?;
    Ok((covered, flits))
}

/// Returns the plan with the requested distribution, or the quickest, and the flits on each tree; of
/// equals the one that cuts the fewest messages.
fn dealt(
    args: &PlanRoundArgs,
    cover: &Cover,
    flits: &[u64],
    plan: impl Fn(&Cover, &[Vec<u64>]) -> Timetable,
) -> (String, Timetable, Vec<Vec<u64>>) {
    let deals = match args.deal {
        None | Some(DealArg::Auto) => SplitPolicy::ALL.to_vec(),
        Some(DealArg::Whole) => vec![SplitPolicy::Whole],
        Some(DealArg::Striped) => vec![SplitPolicy::Striped],
        Some(DealArg::Levelled) => vec![SplitPolicy::Levelled],
    };
    let plans = deals.into_iter().map(|how| {
        let dealt = cover_plan::deal(cover, flits, how);
        (how.to_string(), plan(cover, &dealt), dealt)
    });
    let quickest = plans.min_by_key(|(_, plan, _)| plan.time_steps);
    quickest.unwrap_or_default()
}

/// Returns the nonnull messages between P0 and each other PE.
fn messages(flits: &[u64], ends: impl Fn(PeId) -> [PeId; 2]) -> Vec<PlannedMessage> {
    let all = (0..).map(PeId).zip(flits);
    let nonnull = all.filter(|(_, flits)| **flits > 0);
    let message = |(pe, flits): (PeId, &u64)| PlannedMessage::to_one(pe.0.into(), ends(pe), *flits);
    nonnull.map(message).collect()
}

/// Returns an error for each given option that does not apply to a cover.
fn check(options: &[(bool, &'static str)]) -> Result<(), Faults> {
    let given = options.iter().filter(|(is_given, _)| *is_given);
    let faults =
        given.map(|(_, option)| anyhow!("{option} cannot be combined with --cover; remove it"));
    Faults(faults.collect()).check()
}

/// Plans a scatter, farthest destination first on each port of P0.
pub fn scatter(args: &PlanScatterArgs) -> Result<StaticPlan, Faults> {
    let has_order = !matches!(args.order, None | Some(Order::FarthestFirst));
    check(&[
        (has_order, "--order"),
        (args.from.is_some(), "--from"),
        (args.plan.print.simulate, "--simulate"),
    ])?;
    let (covered, flits) = cover_and_lengths(&args.plan, args.shared)?;
    let (deal, plan, _) = dealt(&args.plan, &covered.cover, &flits, cover_plan::scatter);
    let deal = match args.shared {
        true => format!("{deal} over shared arcs"),
        false => deal,
    };
    Ok(StaticPlan {
        operation: "scatter",
        messages: messages(&flits, |pe| [PeId::ROOT, pe]),
        bound_steps: covered.bound(cover_plan::least_steps_of_scatter, &flits),
        ..covered.plan(deal, plan)
    })
}

/// Plans a gather, synchronized on all trees before anything is sent.
pub fn gather(args: &PlanGatherArgs) -> Result<StaticPlan, Faults> {
    check(&[
        (args.algorithm.is_some(), "--algorithm"),
        (args.token.is_some(), "--token"),
        (args.order.is_some(), "--order"),
        (args.plan.print.simulate, "--simulate"),
    ])?;
    let (covered, flits) = cover_and_lengths(&args.plan, false)?;
    let (deal, plan, of_trees) = dealt(&args.plan, &covered.cover, &flits, cover_plan::gather);
    Ok(StaticPlan {
        operation: "gather",
        messages: messages(&flits, |pe| [pe, PeId::ROOT]),
        control: cover_plan::control_of_gather(&covered.cover, &of_trees),
        bound_steps: covered.bound(cover_plan::least_steps_of_gather, &flits),
        ..covered.plan(deal, plan)
    })
}

/// Plans a broadcast, its flits down one tree after the other.
pub fn broadcast(args: &PlanBroadcastArgs) -> Result<StaticPlan, Faults> {
    check(&[
        (args.algorithm != BroadcastAlgorithm::Auto, "--algorithm"),
        (args.from.is_some(), "--from"),
        (args.print.simulate, "--simulate"),
    ])?;
    let topology = topology(&args.tree, SpanningArg::Bfs)?;
    let covered = Covered::of(&topology, &args.tree, false)?;
    let pes = covered.cover.nodes.len() as u64;
    let crossings = args.size.saturating_mul(pes - 1);
    if crossings > MOST_CROSSINGS {
        return Err(PlanTooLarge::size(crossings, MOST_CROSSINGS).into());
    }
    let ways = ways_to_all(&covered.network, covered.cover.nodes[0]);
    let nodes = covered.cover.nodes.iter();
    let ways: Vec<usize> = nodes.map(|node| ways[*node as usize]).collect();
    let bound_steps = cover_plan::least_steps_of_broadcast(&covered.distances, &ways, args.size);
    let plan = cover_plan::broadcast(&covered.cover, args.size);
    let message = PlannedMessage::to_others(0, PeId::ROOT, pes as usize, args.size);
    Ok(StaticPlan {
        operation: "broadcast",
        messages: vec![message],
        bound_steps,
        ..covered.plan("cover".to_owned(), plan)
    })
}
