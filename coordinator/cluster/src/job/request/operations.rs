//! The command line of each operation as a request.

use anyhow::{anyhow, bail};
use flitcast_plan::Algorithm;
use flitcast_proto::schedule::pace::Pacing;

use super::checked::Request;
use super::checks::check;
use super::gather::{GATHER, fitting, gather_by_ports, one_port, other_gathers, unfit};
use super::gossip_ways;
use super::spec::{Open, OpenChoices, RequestSpec};
use super::trees::emulates_own_links;
use super::values::order_by;
use crate::algorithms::candidates;
use crate::algorithms::method::{Method, operation_by};
use crate::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, RoundArgs, ScatterArgs,
};
use crate::options::baseline::Baseline;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::ports::Ports;
use crate::options::sync::SyncArg;
use crate::options::transfer::Division;
use crate::options::tree::SpanningArg;
use crate::options::values::AUTO;
use crate::site::reachability::Reachability;
use crate::site::topology::Topology;
use crate::text::faults::Faults;

impl Request {
    /// Checks the command line of `flitcast scatter`.
    pub fn scatter(mut args: ScatterArgs) -> Result<Request, Faults> {
        let division = args.division.parsed()?;
        if let (Some(option), Some(_)) = (args.round.selection.first_option(), division) {
            return Err(anyhow!(
                "{option}: one file is divided (--lines, --blocks, --split), which has no files to leave out"
            )
            .into());
        }
        let tree = &mut args.round.transfer.tree;
        if let Some(Division {
            parts: parts @ 1.., ..
        }) = division
            && tree.pe_options().is_empty()
        {
            tree.workers = Some(parts);
        }
        let name = Algorithm::FARTHEST_FIRST.collective().name();
        let algorithm = args.algorithm.as_deref();
        let baseline = algorithm.and_then(Baseline::named);
        let requested = algorithm.and_then(|it| operation_by(name, it));
        let requested = requested.unwrap_or(Algorithm::FARTHEST_FIRST);
        let ports = args.ports;
        let operation = |topology: &Topology| {
            let is_ours = baseline.is_none() && requested.has_all_ports();
            match ports == Some(Ports::Multi) && !is_ours {
                true => Err(one_port(baseline.map_or(requested.name(), Baseline::name))),
                false => fitting(requested, &topology.tree, &topology.name),
            }
        };
        let fdf = Algorithm::FARTHEST_FIRST.name();
        // An order is about one algorithm on one tree.
        let order = args.order.filter(|order| order != "tail");
        let unnamed = algorithm.is_none() && order.is_none();
        let other = algorithm.filter(|it| *it != fdf);
        let order = order_by(order, other, "a scatter by fdf");
        let auto = algorithm == Some(AUTO);
        let ways = OpenChoices::of(&args.round, unnamed, auto, name);
        let ways = ways.map(|ways| ways.keep(algorithm, None, None));
        let spec = RequestSpec {
            root: args.from.map(|pe| ("--from", pe)),
            spread: args.spread || division.is_some(),
            shards: args.shards,
            division,
            ports,
            baseline,
            ways,
            order,
            ..RequestSpec::new(args.round, SpanningArg::Bfs, Algorithm::FARTHEST_FIRST)
        };
        check(spec, operation)
    }

    /// Checks the command line of `flitcast gather`.
    pub fn gather(args: GatherArgs) -> Result<Request, Faults> {
        let (mut round, ports) = (args.round, args.ports);
        let is_special = round.packets.is_some() || round.cover || round.compares;
        let token = args.token.or(round.sync.and_then(SyncArg::token));
        round.sync = round.sync.filter(|sync| sync.token().is_none());
        let algorithm = args.algorithm.as_deref();
        let pacing = args.pacing.map(Pacing::from);
        let baseline = algorithm.and_then(Baseline::named);
        let all_ports = ports == Some(Ports::Multi);
        let auto = algorithm == Some(AUTO);
        let unnamed = algorithm.is_none() && args.order.is_none();
        // A baseline needs a complete network, which only a star expresses for a network. Between hosts
        // a star leaves most algorithms to choose from when the links are measured.
        let chosen_later = unnamed && round.transfer.tree.has_hosts();
        let spanning = match baseline.is_some() || all_ports || chosen_later {
            true => SpanningArg::Bfs,
            false => SpanningArg::Broadcast,
        };
        let emulated = emulates_own_links(&round);
        let ways = OpenChoices::of(&round, unnamed, auto, GATHER.collective().name());
        let ways = ways.map(|mut ways| {
            if all_ports {
                ways.candidates = candidates::of_all_ports(GATHER.collective().name());
            }
            ways.any_pacing = pacing.is_some();
            ways.keep(algorithm, token, pacing)
        });
        let is_auto = ways.as_ref().is_some_and(|it| it.open != Open::Unnamed);
        let other = baseline.map(Baseline::name).or(is_auto.then_some(AUTO));
        let order = order_by(
            args.order,
            other,
            "a gather by shoulder-tap or certification on a given tree",
        );
        let spec = RequestSpec {
            root: args.to.map(|pe| ("--to", pe)),
            ports,
            baseline,
            ways,
            order,
            ..RequestSpec::new(round, spanning, Algorithm::COMBINING_GATHER)
        };
        let mut request = check(spec, |topology| match (baseline, pacing) {
            (Some(_), Some(_)) => {
                bail!("--pacing belongs to --algorithm shoulder-tap and --algorithm certification")
            }
            _ => gather_by_ports((topology, emulated), ports, algorithm, token),
        })?;
        if request.choice.is_none() {
            request.way.pacing = pacing;
            let is_open = unnamed && pacing.is_none() && token.is_none() && !is_special;
            request.others = match is_open {
                true => other_gathers(&request),
                false => Vec::new(),
            };
        }
        Ok(request)
    }

    /// Checks the command line of `flitcast broadcast`.
    pub fn broadcast(args: BroadcastArgs) -> Result<Request, Faults> {
        let auto = args.algorithm == Some(BroadcastAlgorithm::Auto);
        let named = args.algorithm.filter(|_| !auto);
        let usual = BroadcastAlgorithm::Listed(Algorithm::BROADCAST_ROUNDS);
        let algorithm = args.algorithm.unwrap_or(usual);
        let operation = algorithm.operation();
        let unnamed = args.algorithm.is_none();
        let mut ways = OpenChoices::of(&args.round, unnamed, auto, operation.collective().name());
        if let (Some(ways), Some(_)) = (&mut ways, named) {
            ways.candidates.retain(|it| it.operation == operation);
        }
        let has_hosts = args.round.transfer.tree.has_hosts();
        let is_open = ways.as_ref().is_some_and(|it| it.open == Open::Unnamed);
        let spec = RequestSpec {
            root: args.from.map(|pe| ("--from", pe)),
            lays: Some(algorithm),
            ways,
            ..RequestSpec::new(args.round, SpanningArg::Broadcast, operation)
        };
        let mut request = check(spec, |_| Ok(operation))?;
        if is_open {
            request.others = other_broadcasts(&request, has_hosts);
        }
        Ok(request)
    }

    /// Checks the command line of `flitcast gossip`.
    pub fn gossip(args: GossipArgs) -> Result<Request, Faults> {
        let algorithm = args.algorithm;
        let auto = algorithm.as_deref() == Some(AUTO);
        across(
            OpenChoices::of(&args.round, algorithm.is_none(), auto, "gossip"),
            args.round,
            |topology| match algorithm.as_deref() {
                None | Some(AUTO) => Ok(None),
                Some(name) => gossip_ways::named(name, topology).map(Some),
            },
            (args.pacing.map(Pacing::from), args.ports),
            [Algorithm::GOSSIP_CIRCULATE, Algorithm::GOSSIP_FLOOD],
        )
    }

    /// Checks the command line of `flitcast exchange`.
    pub fn exchange(args: ExchangeArgs) -> Result<Request, Faults> {
        let name = "exchange";
        let algorithm = args.algorithm.as_deref();
        let auto = algorithm == Some(AUTO);
        let named = algorithm.and_then(|it| operation_by(name, it));
        across(
            OpenChoices::of(&args.round, algorithm.is_none(), auto, name),
            args.round,
            |_| Ok(named),
            (args.pacing.map(Pacing::from), args.ports),
            [Algorithm::EXCHANGE_ROUNDS, Algorithm::EXCHANGE_TREE],
        )
    }
}

/// Returns the alternative to the default broadcast for the choice after the links are measured: `circulant`,
/// if all hosts reach each other, with one card each, and no tree is given.
fn other_broadcasts(request: &Request, has_hosts: bool) -> Vec<Method> {
    let site = &request.site;
    let is_complete = match &site.reach {
        Reachability::Network(spanned) => spanned.network.is_complete(),
        Reachability::Anybody => has_hosts,
        Reachability::NamedEdges => false,
    };
    let has_ports = site.own_links || site.placement.rails() > 1;
    match is_complete && !has_ports && request.is_measured_later() {
        true => vec![Method {
            operation: Algorithm::BROADCAST_CIRCULANT,
            ..request.way.clone()
        }],
        false => Vec::new(),
    }
}

/// Creates a request for messages between any two PEs, by the best algorithm or by the named
/// one. The default is the first of `usual` in a complete network, and else the second, which
/// uses the tree.
fn across(
    ways: Option<OpenChoices>,
    round: RoundArgs,
    named: impl Fn(&Topology) -> anyhow::Result<Option<Algorithm>>,
    (pacing, ports): (Option<Pacing>, Option<Ports>),
    usual: [Algorithm; 2],
) -> Result<Request, Faults> {
    let [among_all, over_tree] = usual;
    let auto = ways.as_ref().is_some_and(|it| it.open == Open::Auto);
    let spec = RequestSpec {
        ports,
        ways,
        ..RequestSpec::new(round, SpanningArg::Broadcast, over_tree)
    };
    let mut request = check(spec, |topology| {
        if pacing == Some(Pacing::Scheduled) {
            let operation = over_tree.collective().name();
            bail!("--pacing scheduled: of {operation} only turns and eager are known");
        }
        let usual = match topology.reaches_all() {
            true => among_all,
            false => over_tree,
        };
        let operation = named(topology)?.unwrap_or(usual);
        let algorithm = operation.name();
        candidates::check_reach(operation, topology).map_err(unfit(algorithm))?;
        match ports == Some(Ports::Multi) && !auto && !operation.has_all_ports() {
            true => Err(one_port(algorithm)),
            false => Ok(operation),
        }
    })?;
    request.way.pacing = pacing;
    Ok(request)
}
