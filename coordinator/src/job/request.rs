//! A checked command line: all errors that can be detected are detected here, at once, before a
//! socket is bound, a process started or a byte written.

mod alternative;
mod budget;
mod choice;
mod choose;
mod expected;
mod fault;
mod gossip_ways;
mod least;
mod links;
mod messages;
mod order;
mod places;
mod roots;
mod site;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_node::system::descriptors;
use flitcast_proto::ops::{Exchange, Gossip, Operation};
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

use crate::files::profile::Profile;
use crate::job::lanes::has_parts;
use crate::options::args::{
    BroadcastArgs, ExchangeAlgorithm, ExchangeArgs, GatherAlgorithm, GatherArgs, GossipArgs,
    RoundArgs, ScatterAlgorithm, ScatterArgs, SyncArg,
};
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::format::Format;
use crate::options::link_spec::LinkSpec;
use crate::options::names::typed;
use crate::options::order::MessageOrder;
use crate::options::packets::Packets;
use crate::options::pes::{MAX_LOCAL_PES, needed_descriptors};
use crate::options::pictures::Pictures;
use crate::options::ports::Ports;
use crate::options::retries::{self, RetryFault};
use crate::options::timeouts;
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::topology::Topology;
use crate::text::units::parse_bytes;
use crate::ways::baseline::Baseline;
use crate::ways::candidates;
use crate::ways::way::{Way, operation_by};
use messages::{AskedMessages, FilesAt};
use order::{order_by, order_faults};
use roots::{laid, seen_from};
use ways::{Open, Ways, all_for};

use choice::Choice;
pub use choice::Forecast;
use choose::{Offer, choose};
pub use expected::{expected_model, steps};
pub use fault::{Outdated, RequestError, guard_fault};
pub use links::{link_over, links};
pub use messages::{Messages, measure_input, output_fault};
pub use site::Site;

pub use gossip_ways::candidates_on;
use links::links_name;

/// The gather that works on any tree.
const GATHER: Operation = Operation::Certification(Sync::Pipelined);
/// The gather that works on any tree if P0 receives from all its children at once.
const GATHER_BY_PORTS: Operation = Operation::Certification(Sync::MultiPort);

/// A checked request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The PEs, their tree and their links.
    pub site: Site,
    /// The algorithm and its settings.
    pub way: Way,
    /// The alternatives, if the algorithm was chosen.
    pub choice: Option<Choice>,
    /// The messages.
    pub messages: Messages,
    /// The number of times that the run may continue without a PE that fails.
    pub retries: u32,
    /// Whether another cluster may follow this one: to retry, or to measure more.
    pub again: bool,
    /// Whether the PEs are to run commands, in this cluster or one that follows.
    pub commands: bool,
    /// The time limits.
    pub timeouts: Timeouts,
    /// The number of rounds; 0 for a dry run, in which one round is predicted and prepared.
    pub rounds: u64,
    /// The measurements of the cluster from a profile.
    pub profile: Option<Arc<Profile>>,
    /// The format of the result.
    pub format: Format,
    /// The pictures of the run.
    pub pictures: Pictures,
}

impl Request {
    /// Checks the command line of `flitcast scatter`.
    pub fn scatter(args: ScatterArgs) -> Result<Request, Vec<RequestError>> {
        let name = Operation::Scatter.name();
        let algorithm = args.algorithm.map(|algorithm| typed(&algorithm));
        let baseline = algorithm.as_deref().and_then(Baseline::named);
        let asked = algorithm
            .as_deref()
            .and_then(|algorithm| operation_by(name, algorithm));
        let asked = asked.unwrap_or(Operation::Scatter);
        let ports = args.ports;
        let operation = |topology: &Topology| {
            let is_ours = baseline.is_none() && asked.has_all_ports();
            match ports == Some(Ports::Multi) && !is_ours {
                true => Err(RequestError::OnePort(
                    baseline.map_or(asked.algorithm(), Baseline::name),
                )),
                false => fitting(asked, &topology.tree, &topology.name),
            }
        };
        let root = args.from.map(|pe| ("--from", pe));
        let (round, spread) = (args.round, args.spread);
        let by_fdf = [None, Some(ScatterAlgorithm::Fdf)].contains(&args.algorithm);
        // An order is about one algorithm on one tree.
        let unnamed = args.algorithm.is_none() && args.order == MessageOrder::Tail;
        let other = algorithm.clone().filter(|_| !by_fdf);
        let order = order_by(args.order, other, "a scatter by fdf");
        let auto = args.algorithm == Some(ScatterAlgorithm::Auto);
        let open = Open::of(&round, unnamed, auto);
        let ways = open.map(|open| Ways {
            open,
            any_tree: false,
            candidates: all_for(&round, candidates::all(name)),
            any_pacing: false,
        });
        let asked = Asked {
            round,
            root,
            spread,
            spanning: SpanningArg::Bfs,
            lays: None,
            ports,
            baseline,
            ways,
            order,
            like: Operation::Scatter,
        };
        Request::new(asked, operation)
    }

    /// Checks the command line of `flitcast gather`.
    pub fn gather(args: GatherArgs) -> Result<Request, Vec<RequestError>> {
        let GatherArgs {
            round,
            algorithm,
            sync,
            pacing,
            order,
            to,
            ports,
        } = args;
        let pacing = pacing.map(Pacing::from);
        let baseline = algorithm.and_then(|one| Baseline::named(&typed(&one)));
        // A baseline needs a complete network, which only a star expresses for a network.
        let all_ports = ports == Some(Ports::Multi);
        let spanning = match baseline.is_some() || all_ports {
            true => SpanningArg::Bfs,
            false => SpanningArg::Broadcast,
        };
        let auto = algorithm == Some(GatherAlgorithm::Auto);
        let open = Open::of(&round, algorithm.is_none() && order.is_none(), auto);
        let emulated = emulates_own_links(&round);
        let ways = open.map(|open| Ways {
            open,
            any_tree: false,
            candidates: match all_ports {
                true => candidates::of_all_ports(GATHER.name()),
                false => all_for(&round, candidates::all(GATHER.name())),
            },
            any_pacing: pacing.is_some(),
        });
        let ways = ways.map(|ways| ways.keep(algorithm, sync, pacing));
        let is_auto = ways.as_ref().is_some_and(|it| it.open != Open::Unnamed);
        let other = baseline.map(Baseline::name).or(is_auto.then_some("auto"));
        let order = order_by(
            order.map_or(MessageOrder::Tail, MessageOrder::Given),
            other.map(str::to_owned),
            "a gather by shoulder-tap or certification on a given tree",
        );
        let asked = Asked {
            round,
            root: to.map(|pe| ("--to", pe)),
            spread: false,
            spanning,
            lays: None,
            ports,
            baseline,
            ways,
            order,
            like: Operation::CombiningGather,
        };
        let mut request = Request::new(asked, |topology| match (baseline, pacing) {
            (Some(_), Some(_)) => Err(RequestError::PacingWithoutOrders),
            _ => gather_by_ports((topology, emulated), ports, algorithm, sync),
        })?;
        if request.choice.is_none() {
            request.way.pacing = pacing;
        }
        Ok(request)
    }

    /// Checks the command line of `flitcast broadcast`.
    pub fn broadcast(args: BroadcastArgs) -> Result<Request, Vec<RequestError>> {
        let auto = args.algorithm == Some(BroadcastAlgorithm::Auto);
        let named = args.algorithm.filter(|_| !auto);
        let algorithm = args.algorithm.unwrap_or(BroadcastAlgorithm::Rounds);
        let operation = algorithm.operation();
        let ways = Open::of(&args.round, args.algorithm.is_none(), auto).map(|open| {
            let mut candidates = all_for(&args.round, candidates::all(operation.name()));
            candidates.retain(|it| named.is_none() || it.operation == operation);
            Ways {
                open,
                any_tree: false,
                candidates,
                any_pacing: false,
            }
        });
        let asked = Asked {
            round: args.round,
            root: args.from.map(|pe| ("--from", pe)),
            spread: false,
            spanning: SpanningArg::Broadcast,
            lays: Some(algorithm),
            ports: None,
            baseline: None,
            ways,
            order: Ok(MessageOrder::Tail),
            like: operation,
        };
        Request::new(asked, |_| Ok(operation))
    }

    /// Checks the command line of `flitcast gossip`.
    pub fn gossip(args: GossipArgs) -> Result<Request, Vec<RequestError>> {
        let algorithm = args.algorithm;
        let auto = algorithm.as_deref() == Some("auto");
        Request::across(
            Open::of(&args.round, algorithm.is_none(), auto),
            args.round,
            |topology| match algorithm.as_deref() {
                None | Some("auto") => Ok(None),
                Some(name) => gossip_ways::named(name, topology).map(Some),
            },
            (args.pacing.map(Pacing::from), args.ports),
            [Gossip::Circulate, Gossip::Flood].map(Operation::Gossip),
        )
    }

    /// Checks the command line of `flitcast exchange`.
    pub fn exchange(args: ExchangeArgs) -> Result<Request, Vec<RequestError>> {
        let algorithm = args.algorithm.map(|algorithm| typed(&algorithm));
        let auto = args.algorithm == Some(ExchangeAlgorithm::Auto);
        let named = algorithm
            .as_deref()
            .and_then(|name| operation_by("exchange", name));
        Request::across(
            Open::of(&args.round, algorithm.is_none(), auto),
            args.round,
            |_| Ok(named),
            (args.pacing.map(Pacing::from), args.ports),
            [Exchange::Rounds, Exchange::Tree].map(Operation::Exchange),
        )
    }

    /// Creates a request for messages between any two PEs, by the best algorithm or by the named
    /// one. The default is the first of `usual` in a complete network, and else the second, which
    /// uses the tree.
    fn across(
        open: Option<Open>,
        round: RoundArgs,
        named: impl Fn(&Topology) -> Result<Option<Operation>, RequestError>,
        (pacing, ports): (Option<Pacing>, Option<Ports>),
        usual: [Operation; 2],
    ) -> Result<Request, Vec<RequestError>> {
        let [among_all, over_tree] = usual;
        let auto = open == Some(Open::Auto);
        let ways = open.map(|open| Ways {
            open,
            any_tree: false,
            candidates: all_for(&round, candidates::all(over_tree.name())),
            any_pacing: false,
        });
        let asked = Asked {
            round,
            root: None,
            spread: false,
            spanning: SpanningArg::Broadcast,
            lays: None,
            ports,
            baseline: None,
            ways,
            order: Ok(MessageOrder::Tail),
            like: over_tree,
        };
        let mut request = Request::new(asked, |topology| {
            if pacing == Some(Pacing::Scheduled) {
                return Err(RequestError::NoClock(over_tree.name()));
            }
            let usual = match topology.reaches_all() {
                true => among_all,
                false => over_tree,
            };
            let operation = named(topology)?.unwrap_or(usual);
            let algorithm = operation.algorithm();
            let works = candidates::check_reach(operation, topology);
            works.map_err(|why| RequestError::Unfit { algorithm, why })?;
            match ports == Some(Ports::Multi) && !auto && !operation.has_all_ports() {
                true => Err(RequestError::OnePort(algorithm)),
                false => Ok(operation),
            }
        })?;
        request.way.pacing = pacing;
        Ok(request)
    }

    fn new(
        asked: Asked,
        operation: impl Fn(&Topology) -> Result<Operation, RequestError>,
    ) -> Result<Request, Vec<RequestError>> {
        let Asked {
            round: args,
            root,
            spread,
            spanning,
            lays,
            ports,
            baseline,
            ways,
            order,
            like,
        } = asked;
        let mut faults = Vec::new();
        let emulated = emulates_own_links(&args);
        let (described, ways) = match described(&args, spanning, ways) {
            Ok((described, ways)) => (Some(described), ways),
            Err(found) => {
                faults.extend(found);
                (None, None)
            }
        };
        let lays = lays.map(|one| match &ways {
            Some(ways) if ways.open == Open::Unnamed => BroadcastAlgorithm::Auto,
            _ => one,
        });
        if let (Some((option, _)), Some(baseline)) = (root, baseline) {
            let algorithm = baseline.name();
            faults.push(RequestError::RootOfBaseline { option, algorithm });
        }
        let described_tree = described.as_ref().map(|offered| offered[0].tree.clone());
        let offered = described.map(|offered| match lays {
            Some(algorithm) => laid(algorithm, root, offered),
            None => seen_from(root, offered),
        });
        let offered = offered.and_then(|offered| offered.map_err(|fault| faults.push(fault)).ok());
        let topology = offered.as_ref().map(|offered| offered[0].clone());
        // Without a tree there is still an operation to check the rest with.
        let operation = match &topology {
            Some(topology) => operation(topology).map_err(|fault| faults.push(fault)).ok(),
            None => None,
        };
        if let (Some(baseline), Some(topology), None) = (baseline, &topology, root) {
            let algorithm = baseline.name();
            let unfit = baseline.check(topology).err();
            faults.extend(unfit.map(|why| RequestError::Unfit { algorithm, why }));
        }
        let asked_flit = args.transfer.flit_size.as_deref();
        let flit_bytes = asked_flit.map(flit_size).transpose();
        let flit_bytes = flit_bytes.map_err(|fault| faults.push(fault)).ok();
        let packets = args
            .packets
            .as_deref()
            .map(str::parse::<Packets>)
            .transpose();
        let packets = packets.map_err(|fault| faults.push(fault.into())).ok();
        if args.packets.is_some() {
            let unfit = baseline.is_some() || operation.is_some_and(|it| !has_parts(it));
            let name = baseline.map_or(operation.unwrap_or(like).algorithm(), Baseline::name);
            let what = format!("{} by {name}", operation.unwrap_or(like).name());
            faults.extend(unfit.then_some(RequestError::NotInPackets(what)));
            faults.extend(asked_flit.map(|_| RequestError::PacketsAndFlits));
            faults.extend(ways.as_ref().map(|_| RequestError::PacketsOfAuto));
        }
        if args.cover {
            let name = baseline.map_or(operation.unwrap_or(like).algorithm(), Baseline::name);
            let what = format!("{} by {name}", operation.unwrap_or(like).name());
            let unfit = baseline.is_some() || operation.is_some_and(|it| !has_parts(it));
            faults.extend(unfit.then_some(RequestError::NotCovered(what)));
            let is_tree = topology.as_ref().is_some_and(|it| it.network.is_none());
            faults.extend(is_tree.then_some(RequestError::CoverOfTree));
        }
        let link = args
            .transfer
            .link
            .as_deref()
            .map(LinkSpec::parse)
            .transpose();
        let link = link.map_err(|found| faults.extend(found.into_iter().map(RequestError::from)));
        let link = match &topology {
            Some(topology) => {
                link.and_then(|link| link_over(topology, link).map_err(|fault| faults.push(fault)))
            }
            None => link,
        };
        let settings = topology.as_ref().map(|topology| topology.settings.clone());
        let settings = settings.unwrap_or_default();
        let timeouts = match args.transfer.timeouts.as_deref() {
            Some(text) => timeouts::over(settings.timeouts, text),
            None => Ok(settings.timeouts),
        };
        let timeouts = timeouts
            .map_err(|found| faults.extend(found.into_iter().map(RequestError::from)))
            .ok();
        let of = operation.unwrap_or(like);
        let asked = AskedMessages::of(&args, of.layout(), spread)
            .map_err(|all| faults.extend(all))
            .ok();
        // PEs on other hosts have their files there.
        let placement = topology.as_ref().map(Topology::places);
        let elsewhere = placement.as_ref().is_some_and(Placement::is_elsewhere);
        match &args.output {
            _ if elsewhere => {
                faults.extend(relative("--input", args.input.as_ref()));
                faults.extend(relative("--output", args.output.as_ref()));
            }
            Some(output) => {
                let pes = topology.as_ref().map_or(usize::MAX, |it| it.tree.len());
                let input = args.input.as_deref();
                let entries = (of.is_of_pairs(), pes);
                faults.extend(output_fault(output, entries, input, args.force));
            }
            None => {}
        }
        if elsewhere && ways.is_some() && args.input.is_some() {
            faults.push(RequestError::UnknownLengths);
        }
        let retries = args.retry.as_deref().map_or(Ok(0), retries::parse);
        let retries = retries.map_err(|fault| faults.push(fault.into())).ok();
        if args.rounds > 1 && retries.is_some_and(|retries| retries > 0) {
            faults.push(RetryFault::Rounds(args.rounds).into());
        }
        let pictures = Pictures::of(&args.pictures)
            .map_err(|all| faults.extend(all.into_iter().map(RequestError::from)))
            .ok();
        let payload = match (&topology, asked) {
            (Some(Topology { tree, .. }), Some(asked)) => {
                // A PE under a daemon has another working folder.
                let is_kept = placement.as_ref().is_some_and(|all| all.kept.is_some());
                let asked = if is_kept { asked.absolute() } else { asked };
                let apart = placement.as_ref().is_some_and(Placement::is_apart);
                let files = FilesAt {
                    spread,
                    replace: args.force,
                    elsewhere,
                    apart: apart && of.layout().can_be_apart(),
                };
                let payload = asked.for_tree(tree, of, files);
                payload.map_err(|all| faults.extend(all)).ok()
            }
            _ => None,
        };
        if let (Some(Some(packets)), Some((_, bytes))) = (packets, &payload) {
            let longest = bytes.iter().copied().max().unwrap_or(0);
            faults.extend(packets.check(longest).err().map(RequestError::from));
        }
        let order = order
            .map_err(|fault| faults.push(fault))
            .unwrap_or_default();
        if let (Some(topology), Some((_, bytes))) = (&topology, &payload) {
            let are_known = !(elsewhere && args.input.is_some());
            let lengths = are_known.then_some(&bytes[..]);
            faults.extend(order_faults(&order, of, &topology.tree, lengths));
        }
        // A baseline builds its tree from the messages' lengths.
        let topology = match (topology, &payload, baseline) {
            (Some(topology), Some((_, bytes)), Some(baseline)) => {
                Some(baseline.lay(topology, bytes))
            }
            (topology, ..) => topology,
        };
        let profile = args.transfer.profile.as_deref().and_then(|path| {
            let tree = described_tree.as_ref();
            // A tree that is to be chosen is not the measured one.
            let any_tree = ways.as_ref().is_some_and(|ways| ways.any_tree);
            let measured = tree.filter(|_| !any_tree);
            let profile = Profile::load(path, measured);
            let profile = profile.map_err(|fault| faults.push(fault.into())).ok();
            let profile = profile.map(|profile| match (root, measured) {
                (Some((_, root)), Some(tree)) if tree.contains(root) => {
                    profile.rerooted(tree, root)
                }
                _ => profile,
            });
            let pes = |profile: &Profile| profile.edges.len();
            if let (Some(profile), Some(tree)) = (&profile, tree)
                && pes(profile) != tree.len()
                && measured.is_none()
            {
                faults.push(RequestError::ProfilePes {
                    measured: pes(profile),
                    asked: tree.len(),
                });
            }
            profile
        });
        if let (Some(profile), Some(topology), Ok(link)) = (&profile, &topology, &link) {
            let asked = links_name(&links(topology, *link));
            if asked != profile.links {
                let named =
                    |links: &Option<String>| links.clone().unwrap_or("links as they are".into());
                faults.push(RequestError::ProfileLinks {
                    asked: named(&asked),
                    measured: named(&profile.links),
                });
            }
        }
        let guard = placement
            .as_ref()
            .map(|placement| Guard::choose(&args.transfer.guard.or(&settings), placement));
        if let (Some(guard), Some(placement)) = (&guard, &placement)
            && let Err(fault) = guard.check(placement)
        {
            faults.push(guard_fault(
                &args.transfer.guard,
                &args.transfer.tree,
                &settings,
                fault,
            ));
        }
        if let (Some(guard), Some(placement), Some(_)) = (&guard, &placement, &args.input) {
            let fault = guard.check_files(placement).err();
            faults.extend(fault.map(RequestError::from));
        }
        if let (Some(profile), Some(guard)) = (&profile, &guard)
            && profile.encrypted != guard.is_encrypted()
        {
            let measured = profile.encrypted;
            faults.push(RequestError::ProfileEncryption { measured });
        }
        // Created last of all, as the first thing that is written.
        let writes_here = !elsewhere && !args.dry_run;
        if let (true, Some(output)) = (faults.is_empty() && writes_here, &args.output)
            && let Err(error) = flitcast_node::payload::create_durable(output)
        {
            let (path, why) = (output.clone(), format!("cannot be created: {error}"));
            faults.push(RequestError::Output { path, why });
        }
        match (
            topology.zip(placement).zip(guard),
            operation,
            flit_bytes.zip(packets),
            payload,
            link,
            timeouts,
            pictures,
            retries,
        ) {
            (
                Some(((topology, placement), guard)),
                Some(operation),
                Some((flit_bytes, packets)),
                Some((payload, bytes)),
                Ok(link),
                Some(timeouts),
                Some(pictures),
                Some(retries),
            ) if faults.is_empty() => {
                let site = Site::of(topology, link, guard);
                let has_own_links = site.own_links || emulated;
                let site = Site {
                    cluster: args.transfer.tree.cluster,
                    placement,
                    own_links: ports.map_or(has_own_links, |ports| ports == Ports::Multi),
                    ..site
                };
                let request = Request {
                    site,
                    way: Way {
                        operation,
                        baseline,
                        pacing: None,
                        flit_bytes,
                        packets,
                        order: order.clone(),
                        covers: args.cover,
                    },
                    choice: None,
                    messages: Messages::new(payload, bytes.clone()),
                    retries,
                    again: retries > 0,
                    commands: false,
                    timeouts,
                    rounds: if args.dry_run { 0 } else { args.rounds },
                    profile: profile.map(Arc::new),
                    format: args.format,
                    pictures,
                };
                let (Some(mut ways), Some(topologies)) = (ways, offered) else {
                    return Ok(request);
                };
                if let Operation::Gossip(_) = like {
                    let pes = topologies[0].tree.len();
                    let longest = |row: &[u64]| row.iter().copied().max().unwrap_or(0);
                    let lengths: Vec<u64> = bytes.chunks(pes).map(longest).collect();
                    let link = link.map(|link| link.link());
                    let priced = link.as_ref().map(|link| (link, &lengths[..]));
                    ways.candidates
                        .extend(candidates_on(&topologies[0], priced));
                }
                let offer = Offer {
                    topologies,
                    candidates: ways.candidates,
                    any_pacing: ways.any_pacing,
                    link,
                    bytes: &bytes,
                    is_complete: args.compares,
                };
                let chosen = choose(request, offer);
                let chosen = chosen.map_err(|fault| vec![RequestError::Choice(fault)])?;
                let way = Way {
                    order,
                    ..chosen.way
                };
                Ok(Request { way, ..chosen })
            }
            _ => Err(faults),
        }
    }
}

/// The parts of a request that each command computes itself.
struct Asked {
    round: RoundArgs,
    /// The option that names the root, and the root.
    root: Option<(&'static str, PeId)>,
    spread: bool,
    spanning: SpanningArg,
    /// The algorithm, if it may build its own tree.
    lays: Option<BroadcastAlgorithm>,
    ports: Option<Ports>,
    baseline: Option<Baseline>,
    ways: Option<Ways>,
    /// The order of the messages, or the error that there is none to choose.
    order: Result<MessageOrder, RequestError>,
    /// An operation with messages of this kind, so that they can be checked without a valid
    /// operation.
    like: Operation,
}

/// Returns an error for a relative path, which depends on the directory.
fn relative(option: &'static str, path: Option<&PathBuf>) -> Option<RequestError> {
    let path = path.filter(|path| path.is_relative())?.clone();
    Some(RequestError::Relative { option, path })
}

impl Request {
    /// Returns whether the request is only predicted: nothing is sent, and no output is changed.
    pub fn is_dry_run(&self) -> bool {
        self.rounds == 0
    }

    /// Returns how orders are obeyed: as requested, else by the profile's best pacing, else in
    /// turns over a network, which may have a switch that drops packets under load.
    pub fn pacing(&self) -> Pacing {
        let measured_best = self.profile.as_ref().map(|profile| profile.pacing);
        let usual = match self.site.placement.is_spread() {
            true => Pacing::Turns,
            false => Pacing::Scheduled,
        };
        match self.way.pacing.or(measured_best).unwrap_or(usual) {
            // A static schedule has no clock.
            Pacing::Scheduled if self.way.operation.is_duplex() => Pacing::Eager,
            pacing => pacing,
        }
    }
}

/// Returns the trees of a command line, and what is to be chosen on them. Where nothing is named, a
/// choice needs a network, and links whose values are known before they are measured.
fn described(
    args: &RoundArgs,
    spanning: SpanningArg,
    ways: Option<Ways>,
) -> Result<(Vec<Topology>, Option<Ways>), Vec<RequestError>> {
    let mut tree = args.transfer.tree.clone();
    let Some(mut ways) = ways else {
        return Ok((local_topologies(&tree, spanning)?, None));
    };
    if ways.open == Open::Unnamed {
        let usual = local_topologies(&tree, spanning)?;
        let places = usual[0].places();
        let transfer = &args.transfer;
        let are_known = !places.is_spread() || transfer.profile.is_some();
        let has_lengths = !places.is_elsewhere() || args.input.is_none();
        if usual[0].network.is_none() || !are_known || !has_lengths {
            return Ok((usual, None));
        }
    }
    if ways.open != Open::Tree {
        tree.leave_open();
    }
    ways.any_tree = tree.is_auto();
    Ok((local_topologies(&tree, spanning)?, Some(ways)))
}

/// Returns trees whose PEs can all be processes on this machine, all of one size.
fn local_topologies(
    args: &TreeArgs,
    spanning: SpanningArg,
) -> Result<Vec<Topology>, Vec<RequestError>> {
    let offered = args.offered(spanning).map_err(|faults| {
        let faults = faults.into_iter().map(RequestError::from);
        faults.collect::<Vec<_>>()
    })?;
    check_size(&offered[0])?;
    Ok(offered)
}

/// Returns a tree whose PEs can all be processes on this machine.
pub fn local_topology(
    args: &TreeArgs,
    spanning: SpanningArg,
) -> Result<Topology, Vec<RequestError>> {
    let topology = args.topology(spanning).map_err(|faults| {
        let faults = faults.into_iter().map(RequestError::from);
        faults.collect::<Vec<_>>()
    })?;
    check_size(&topology)?;
    Ok(topology)
}

/// Checks that one machine may run this number of processes.
pub fn check_size(topology: &Topology) -> Result<(), Vec<RequestError>> {
    let pes = topology.tree.len();
    if pes > MAX_LOCAL_PES {
        return Err(vec![RequestError::TooManyPes {
            option: topology.option(),
            spec: topology.name.clone(),
            pes,
        }]);
    }
    let needed = needed_descriptors(pes);
    let have = descriptors::raised_to(needed);
    match have < needed {
        true => Err(vec![RequestError::TooFewDescriptors { pes, needed, have }]),
        false => Ok(()),
    }
}

/// Returns the algorithm of a gather on a tree.
pub fn gather_operation(
    tree: &Tree,
    name: &impl std::fmt::Display,
    algorithm: Option<GatherAlgorithm>,
    sync: Option<SyncArg>,
) -> Result<Operation, RequestError> {
    let by_tree = match tree.is_path() && sync.is_none() {
        true => GatherAlgorithm::ShoulderTap,
        false => GatherAlgorithm::Certification,
    };
    let algorithm = algorithm.unwrap_or(by_tree);
    match algorithm {
        GatherAlgorithm::Certification => {}
        _ if sync.is_some() => return Err(RequestError::SyncWithoutCertification),
        _ => {}
    }
    let typed = typed(&algorithm);
    let operation = match sync {
        Some(SyncArg::Serial) => Operation::Certification(Sync::Serial),
        Some(SyncArg::Pipelined) => GATHER,
        None if algorithm == GatherAlgorithm::Certification => GATHER,
        None => operation_by(GATHER.name(), &typed).unwrap_or(GATHER),
    };
    match Baseline::named(&typed) {
        // It is asked itself, whether it works.
        Some(_) => Ok(operation),
        None => fitting(operation, tree, name),
    }
}

/// Returns whether the links of a cover are emulated on this machine, where each edge of the network has
/// a separate one.
fn emulates_own_links(args: &RoundArgs) -> bool {
    args.cover && args.transfer.link.is_some() && args.transfer.tree.cluster.is_none()
}

/// Returns the algorithm of a gather, with a port of P0 for each child if these are requested or if
/// each child has a separate link.
fn gather_by_ports(
    (topology, has_own_links): (&Topology, bool),
    ports: Option<Ports>,
    algorithm: Option<GatherAlgorithm>,
    sync: Option<SyncArg>,
) -> Result<Operation, RequestError> {
    let by_certification = match algorithm {
        None | Some(GatherAlgorithm::Auto | GatherAlgorithm::Certification) => true,
        Some(_) => false,
    };
    if ports != Some(Ports::Multi) {
        let one_port = gather_operation(&topology.tree, &topology.name, algorithm, sync)?;
        let has_own_links = || has_own_links || topology.places().has_own_links(&topology.tree);
        let is_open = ports.is_none() && sync.is_none() && by_certification;
        return Ok(match is_open && one_port == GATHER && has_own_links() {
            true => GATHER_BY_PORTS,
            false => one_port,
        });
    }
    match sync {
        Some(_) => Err(RequestError::SyncOfPorts),
        None if by_certification => Ok(GATHER_BY_PORTS),
        None => {
            let named = algorithm.map(|one| typed(&one)).unwrap_or_default();
            let baseline = Baseline::named(&named).map(Baseline::name);
            let one = operation_by(GATHER.name(), &named).unwrap_or(GATHER);
            Err(RequestError::OnePort(baseline.unwrap_or(one.algorithm())))
        }
    }
}

/// Returns the operation if it supports the tree.
fn fitting(
    operation: Operation,
    tree: &Tree,
    name: &impl std::fmt::Display,
) -> Result<Operation, RequestError> {
    let algorithm = operation.algorithm();
    let works = candidates::check_fits(operation, tree, name);
    works.map_err(|why| RequestError::Unfit { algorithm, why })?;
    Ok(operation)
}

/// Parses the payload of a flit.
pub fn flit_size(text: &str) -> Result<u32, RequestError> {
    let option = "--flit-size";
    let bytes = parse_bytes(text).map_err(|source| RequestError::Size { option, source })?;
    match u32::try_from(bytes) {
        Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Ok(fits),
        _ => Err(RequestError::FlitSize(bytes)),
    }
}
