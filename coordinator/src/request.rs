//! A command line that has been understood: everything that can be known to be
//! wrong is known here, all of it at once, before a socket is bound, a process
//! started or a byte written.

mod messages;

use std::path::PathBuf;
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_node::payload::PayloadError;
use flitcast_proto::cost::Edge;
use flitcast_proto::pe::{Operation, Violation};
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::args::{
    GatherAlgorithm, GatherArgs, OutputFormat, PacingArg, RoundArgs, ScatterAlgorithm, ScatterArgs,
    SyncArg,
};
use crate::baseline::Baseline;
use crate::candidates::{self, Candidate, Unfit};
use crate::choose::{Choice, FLITS, Offer, choose};
use crate::link_spec::{EdgeSpec, LinkFault, LinkSpec};
use crate::pictures::{PictureError, Pictures};
use crate::placement::Placement;
use crate::profile::{Profile, ProfileError};
use crate::timeouts::{self, TimeoutFault};
use crate::topology::{SpanningArg, Topology, TopologyError, TreeArgs};
use crate::units::{Bytes, MAX_TOTAL_BYTES, UnitError, parse_bytes};
use crate::workload::{DealError, LengthsError};
use messages::{Asked, output_fault};

/// Processes on one machine. Each has some 6 MiB and a dozen descriptors; a
/// thousand is past what a machine does well and before what hurts it.
pub const MAX_LOCAL_PES: usize = 1024;

/// Long enough that software costs little, short enough to fill a pipe soon.
const DEFAULT_FLIT_SIZE: &str = "64KiB";

/// Descriptors that the coordinator needs for a PE: its control connection, its
/// stderr, its process.
const DESCRIPTORS_PER_PE: u64 = 3;
/// And for itself.
const DESCRIPTORS_OWN: u64 = 32;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tree as it was named, or the network and how it is spanned.
    pub tree_name: String,
    /// Of a network: the node that each PE stands on.
    pub nodes: Option<Vec<u32>>,
    /// The tree.
    pub tree: Arc<Tree>,
    /// Where the PEs run.
    pub placement: Placement,
    /// What the rounds do.
    pub operation: Operation,
    /// The algorithm's name, and for certification how it synchronises.
    pub algorithm: &'static str,
    /// How certification synchronises.
    pub sync: Option<&'static str>,
    /// If the way to do it was chosen: from what.
    pub choice: Option<Choice>,
    /// How orders are obeyed; `None`: whatever is best.
    pub pacing: Option<Pacing>,
    /// What the messages are made of.
    pub payload: Payload,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// What the links to their parents are to be like, by PE index; `None`: as they are.
    pub links: Vec<Option<EdgeSpec>>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How many rounds.
    pub rounds: u64,
    /// What is known of the cluster beforehand.
    pub profile: Option<Arc<Profile>>,
    /// How the result is printed.
    pub format: OutputFormat,
    /// Pictures of it.
    pub pictures: Pictures,
}

/// Something that is wrong with a command line.
#[derive(Debug, Error)]
pub enum RequestError {
    /// There is no tree.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// More processes than a machine is good for.
    #[error(
        "{option} {spec} has {pes} PEs: at most {MAX_LOCAL_PES} processes are started on one machine"
    )]
    TooManyPes {
        /// `--tree` or `--network`.
        option: &'static str,
        /// As typed.
        spec: String,
        /// How many it has.
        pes: usize,
    },
    /// More descriptors than the process may have.
    #[error(
        "{needed} file descriptors are needed for {pes} PEs, the limit is {have}: raise it with `ulimit -n {needed}`"
    )]
    TooFewDescriptors {
        /// How many PEs.
        pes: usize,
        /// How many descriptors they need.
        needed: u64,
        /// How many there may be.
        have: u64,
    },
    /// An algorithm that is not for the tree.
    #[error("--algorithm {algorithm} is {why}: use {}", why.instead())]
    Unfit {
        /// Which one.
        algorithm: &'static str,
        /// Why not.
        why: Unfit,
    },
    /// `--sync` without certification.
    #[error("--sync belongs to --algorithm certification")]
    SyncWithoutCertification,
    /// The profile is of another number of PEs.
    #[error("--profile: it was measured on {measured} PEs, not on {asked}")]
    ProfilePes {
        /// What the profile says.
        measured: usize,
        /// What the command asks for.
        asked: usize,
    },
    /// No prediction, and so no choice.
    #[error("--algorithm auto: the schedule contradicts itself: {0}")]
    Choice(Violation),
    /// The profile is of other links.
    #[error("--profile: it was measured on {measured}, not on {asked}")]
    ProfileLinks {
        /// What the command asks for.
        asked: String,
        /// What the profile says.
        measured: String,
    },
    /// `--pacing` with an algorithm that gives no orders.
    #[error("--pacing belongs to --algorithm shoulder-tap and --algorithm certification")]
    PacingWithoutOrders,
    /// Nothing says what the messages are.
    #[error(
        "say what to send: files with --input DIR --output DIR, or synthetic messages with --size SIZE or --lengths LENGTHS"
    )]
    NoPayload,
    /// Files and synthetic messages, or two kinds of synthetic ones.
    #[error("{0} says what the messages are, and so does {1}: choose one")]
    TwoPayloads(&'static str, &'static str),
    /// Something that only goes with something else.
    #[error("{option} goes with {needs}, which is not there")]
    Alone {
        /// What was given.
        option: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// The profile is none, or another tree's.
    #[error("--profile: {0}")]
    Profile(#[from] ProfileError),
    /// Nothing could be measured.
    #[error("{0} is P0 alone: there is no edge to measure")]
    NoEdges(String),
    /// A time that is none.
    #[error("--seconds {text}: write a number from {least} to {most}")]
    Seconds {
        /// As typed.
        text: String,
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
    },
    /// A value that is no size.
    #[error("{option}: {source}")]
    Size {
        /// `--size` or `--flit-size`.
        option: &'static str,
        /// Why not.
        source: UnitError,
    },
    /// A value that gives no lengths.
    #[error("--lengths: {0}")]
    NoLengths(#[from] LengthsError),
    /// Flits of this size are not sent.
    #[error("--flit-size {}: a flit has {} to {}", Bytes(*.0), Bytes(MIN_FLIT_BYTES.into()), Bytes(MAX_FLIT_BYTES.into()))]
    FlitSize(u64),
    /// A link that cannot be had.
    #[error("--link: {0}")]
    Link(#[from] LinkFault),
    /// Timeouts that make no sense.
    #[error("--timeouts: {0}")]
    Timeouts(#[from] TimeoutFault),
    /// The lengths do not fit the tree.
    #[error("{option}: {source}")]
    Lengths {
        /// `--size` or `--lengths`.
        option: &'static str,
        /// Why.
        source: DealError,
    },
    /// The messages together are too long.
    #[error("the messages below {} are longer than {} together", .0.display(), Bytes(MAX_TOTAL_BYTES))]
    InputTooLong(PathBuf),
    /// The input cannot be sent.
    #[error("--input: {0}")]
    Input(#[from] PayloadError),
    /// The output cannot be written to.
    #[error("--output {}: {why}", path.display())]
    Output {
        /// As typed.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A picture cannot be written.
    #[error(transparent)]
    Picture(#[from] PictureError),
}

impl Request {
    /// Understands `flitcast scatter`.
    pub fn scatter(args: ScatterArgs) -> Result<Request, Vec<RequestError>> {
        let baseline = Baseline::of_scatter(args.algorithm);
        let operation = |_: &Topology| Ok(baseline.map_or(Operation::Scatter, Baseline::scatter));
        let (round, spread) = (args.round, args.spread);
        let choosing = choosing(&round, args.algorithm == ScatterAlgorithm::Auto);
        let ways = choosing.then(|| Ways {
            candidates: ours(candidates::scatters()),
            any_pacing: false,
            any_flit: args.algorithm == ScatterAlgorithm::Auto,
        });
        Request::new(round, spread, SpanningArg::Bfs, baseline, ways, operation)
    }

    /// Understands `flitcast gather`.
    pub fn gather(args: GatherArgs) -> Result<Request, Vec<RequestError>> {
        let GatherArgs {
            round,
            algorithm,
            sync,
            pacing,
        } = args;
        let pacing = pacing.map(|pacing| match pacing {
            PacingArg::Scheduled => Pacing::Scheduled,
            PacingArg::Turns => Pacing::Turns,
            PacingArg::Eager => Pacing::Eager,
        });
        let baseline = algorithm.and_then(Baseline::of_gather);
        // A baseline asks who can reach whom; only a star says that of a network.
        let spanning = match baseline {
            Some(_) => SpanningArg::Bfs,
            None => SpanningArg::Broadcast,
        };
        let auto = algorithm == Some(GatherAlgorithm::Auto);
        let ways = choosing(&round, auto).then(|| Ways {
            candidates: ours(candidates::gathers()),
            any_pacing: pacing.is_some(),
            any_flit: auto,
        });
        let ways = ways.map(|ways| ways.keep(algorithm, sync, pacing));
        let chosen = ways.is_some();
        let request = Request::new(round, false, spanning, baseline, ways, |topology| {
            match (baseline, pacing) {
                (Some(_), Some(_)) => Err(RequestError::PacingWithoutOrders),
                _ => gather_operation(&topology.tree, &topology.name, algorithm, sync),
            }
        })?;
        Ok(match chosen {
            true => request,
            false => Request { pacing, ..request },
        })
    }

    fn new(
        args: RoundArgs,
        spread: bool,
        spanning: SpanningArg,
        baseline: Option<Baseline>,
        ways: Option<Ways>,
        operation: impl Fn(&Topology) -> Result<Operation, RequestError>,
    ) -> Result<Request, Vec<RequestError>> {
        let mut faults = Vec::new();
        let offered = local_topologies(&args.transfer.tree, spanning)
            .map_err(|found| faults.extend(found))
            .ok();
        let topology = offered.as_ref().map(|offered| offered[0].clone());
        // Without a tree there is still an operation to check the rest with.
        let operation = match &topology {
            Some(topology) => operation(topology).map_err(|fault| faults.push(fault)).ok(),
            None => None,
        };
        if let (Some(baseline), Some(topology)) = (baseline, &topology) {
            let algorithm = baseline.name();
            let unfit = baseline.check(topology).err();
            faults.extend(unfit.map(|why| RequestError::Unfit { algorithm, why }));
        }
        let asked_flit = args.transfer.flit_size.as_deref();
        let flit_bytes = flit_size(asked_flit.unwrap_or(DEFAULT_FLIT_SIZE))
            .map_err(|fault| faults.push(fault))
            .ok();
        let link = args
            .transfer
            .link
            .as_deref()
            .map(LinkSpec::parse)
            .transpose();
        let link = link.map_err(|found| faults.extend(found.into_iter().map(RequestError::from)));
        let timeouts = args.transfer.timeouts.as_deref().map(timeouts::parse);
        let timeouts = timeouts
            .transpose()
            .map_err(|found| faults.extend(found.into_iter().map(RequestError::from)))
            .ok();
        let asked = Asked::of(&args, spread)
            .map_err(|all| faults.extend(all))
            .ok();
        if let Some(output) = &args.output {
            faults.extend(output_fault(output, args.input.as_deref(), args.force));
        }
        let pictures = Pictures::of(&args.pictures)
            .map_err(|all| faults.extend(all.into_iter().map(RequestError::from)))
            .ok();
        let payload = match (&topology, asked) {
            (Some(Topology { tree, .. }), Some(asked)) => {
                let payload = asked.for_tree(tree, spread, args.force);
                payload.map_err(|all| faults.extend(all)).ok()
            }
            _ => None,
        };
        // A baseline lays its tree by the messages' lengths.
        let topology = match (topology, &payload, baseline) {
            (Some(topology), Some((_, bytes)), Some(baseline)) => {
                Some(baseline.lay(topology, bytes))
            }
            (topology, ..) => topology,
        };
        let profile = args.transfer.profile.as_deref().and_then(|path| {
            let tree = topology.as_ref().map(|topology| &topology.tree);
            // A tree that is to be chosen is none that was measured.
            let measured = tree.filter(|_| !args.transfer.tree.is_auto());
            let profile = Profile::load(path, measured);
            let profile = profile.map_err(|fault| faults.push(fault.into())).ok();
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
        // Last of all, and the first thing that is written.
        if let (true, Some(output)) = (faults.is_empty(), &args.output)
            && let Err(error) = std::fs::create_dir_all(output)
        {
            let (path, why) = (output.clone(), format!("cannot be created: {error}"));
            faults.push(RequestError::Output { path, why });
        }
        match (
            topology, operation, flit_bytes, payload, link, timeouts, pictures,
        ) {
            (
                Some(topology),
                Some(operation),
                Some(flit_bytes),
                Some((payload, bytes)),
                Ok(link),
                Some(timeouts),
                Some(pictures),
            ) if faults.is_empty() => {
                let (algorithm, sync) = crate::report::algorithm_name(operation);
                let request = Request {
                    choice: None,
                    links: links(&topology, link),
                    algorithm: baseline.map_or(algorithm, Baseline::name),
                    sync,
                    tree_name: topology.name,
                    nodes: topology.nodes,
                    placement: topology
                        .placement
                        .unwrap_or_else(|| Placement::local(topology.tree.len())),
                    tree: Arc::new(topology.tree),
                    operation,
                    pacing: None,
                    payload,
                    flit_bytes,
                    timeouts: timeouts.unwrap_or_default(),
                    rounds: args.rounds,
                    profile: profile.map(Arc::new),
                    format: args.format,
                    pictures,
                };
                let (Some(ways), Some(topologies)) = (ways, offered) else {
                    return Ok(request);
                };
                let flit = [flit_bytes];
                let offer = Offer {
                    topologies,
                    candidates: ways.candidates,
                    any_pacing: ways.any_pacing,
                    flits: match ways.any_flit && asked_flit.is_none() {
                        true => &FLITS,
                        false => &flit,
                    },
                    link,
                    bytes: &bytes,
                };
                choose(request, offer).map_err(|fault| vec![RequestError::Choice(fault)])
            }
            _ => Err(faults),
        }
    }
}

/// What the links to their parents are to be like, by PE index.
pub fn links(topology: &Topology, everywhere: Option<LinkSpec>) -> Vec<Option<EdgeSpec>> {
    let everywhere = everywhere.map(EdgeSpec::alike);
    let links = topology.tree.pes().skip(1).map(|pe| {
        let named = topology.links.get(&pe).copied();
        named.or(everywhere)
    });
    std::iter::once(None).chain(links).collect()
}

/// The links in a few words: `links of 200mbit, 1ms`; `None` if none is shaped.
fn links_name(links: &[Option<EdgeSpec>]) -> Option<String> {
    let edges = &links[1..];
    let shaped: Vec<EdgeSpec> = edges.iter().flatten().copied().collect();
    let first = shaped.first()?;
    let alike = shaped.iter().all(|link| link == first);
    Some(match (alike, shaped.len() == edges.len()) {
        (true, true) => format!("links of {first}"),
        (true, false) => format!("{} of {} links shaped: {first}", shaped.len(), edges.len()),
        (false, true) => "links of several kinds".to_owned(),
        (false, false) => format!("{} of {} links shaped", shaped.len(), edges.len()),
    })
}

impl Request {
    /// Of the edges of `pe`, what those are to be like that are shaped, by their lower
    /// ends.
    pub fn links_of(&self, pe: PeId) -> Vec<(PeId, Edge)> {
        let lower_ends = std::iter::once(&pe).chain(self.tree.children(pe));
        let shaped = lower_ends.filter_map(|&below| {
            let link = self.links[below.index()]?;
            Some((below, link.edge()))
        });
        shaped.collect()
    }

    /// How orders are obeyed where nobody has measured: in turns over a network, which
    /// may have a switch that drops what comes too fast.
    pub fn usual_pacing(&self) -> Pacing {
        match self.placement.is_spread() {
            true => Pacing::Turns,
            false => Pacing::Scheduled,
        }
    }

    /// Whether any link is to be shaped.
    pub fn is_shaped(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// The links in a few words: `links of 200mbit, 1ms`; `None` if none is shaped.
    pub fn links_name(&self) -> Option<String> {
        links_name(&self.links)
    }
}

/// What may be chosen from.
struct Ways {
    candidates: Vec<Candidate>,
    /// A pacing is asked for.
    any_pacing: bool,
    /// Where no flit size is asked for, it is chosen as well.
    any_flit: bool,
}

impl Ways {
    /// Only those that are asked for.
    fn keep(
        mut self,
        algorithm: Option<GatherAlgorithm>,
        sync: Option<SyncArg>,
        pacing: Option<Pacing>,
    ) -> Ways {
        self.candidates.retain(|candidate| {
            let algorithm = match (algorithm, candidate.operation) {
                (Some(GatherAlgorithm::ShoulderTap), it) => it == Operation::ShoulderTap,
                (Some(GatherAlgorithm::Certification), it) => it != Operation::ShoulderTap,
                _ => true,
            };
            let sync = match (sync, candidate.operation) {
                (Some(SyncArg::Serial), it) => it == Operation::Certification(Sync::Serial),
                (Some(SyncArg::Pipelined), it) => it == Operation::Certification(Sync::Pipelined),
                (None, _) => true,
            };
            let pacing = pacing.is_none() || candidate.pacing == pacing;
            algorithm && sync && pacing
        });
        self
    }
}

/// What is not there to compare with.
fn ours(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|candidate| candidate.baseline.is_none());
    candidates
}

/// Whether anything is to be chosen.
fn choosing(round: &RoundArgs, algorithm: bool) -> bool {
    algorithm || round.transfer.tree.is_auto()
}

/// Trees of which each PE can be a process on this machine, all of one size.
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

/// A tree of which each PE can be a process on this machine.
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

/// That a machine is good for so many processes.
fn check_size(topology: &Topology) -> Result<(), Vec<RequestError>> {
    let pes = topology.tree.len();
    if pes > MAX_LOCAL_PES {
        return Err(vec![RequestError::TooManyPes {
            option: topology.option(),
            spec: topology.name.clone(),
            pes,
        }]);
    }
    let needed = DESCRIPTORS_OWN + DESCRIPTORS_PER_PE * pes as u64;
    let have = raise_descriptor_limit(needed);
    match have < needed {
        true => Err(vec![RequestError::TooFewDescriptors { pes, needed, have }]),
        false => Ok(()),
    }
}

/// Raises the soft limit to `needed` if it is lower and the hard limit allows it;
/// what it is then.
fn raise_descriptor_limit(needed: u64) -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |hard| hard.min(needed)));
        // Refused, the limit is what it was, and that is what is looked at.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How to gather on a tree.
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
    if let Some(baseline) = Baseline::of_gather(algorithm) {
        return Ok(baseline.gather());
    }
    match algorithm {
        GatherAlgorithm::ShoulderTap => {
            let algorithm = crate::report::algorithm_name(Operation::ShoulderTap).0;
            match candidates::check_path(tree, name) {
                Ok(()) => Ok(Operation::ShoulderTap),
                Err(why) => Err(RequestError::Unfit { algorithm, why }),
            }
        }
        _ => Ok(Operation::Certification(match sync {
            Some(SyncArg::Serial) => Sync::Serial,
            Some(SyncArg::Pipelined) | None => Sync::Pipelined,
        })),
    }
}

/// The payload of a flit, from what was typed.
pub fn flit_size(text: &str) -> Result<u32, RequestError> {
    let option = "--flit-size";
    let bytes = parse_bytes(text).map_err(|source| RequestError::Size { option, source })?;
    match u32::try_from(bytes) {
        Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Ok(fits),
        _ => Err(RequestError::FlitSize(bytes)),
    }
}
