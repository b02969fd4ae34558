//! The command line of `flitcast plan`.

use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::CycleGossip;
use flitcast_plan::gossip::COMPLETE_FORMS;
use flitcast_plan::packets::Split;
use flitcast_plan::packets::model::{LinkCost, Part, Run};
use flitcast_plan::packets::search::{DEFAULT_NODES, MOST_NODES};
use flitcast_proto::ops::Collective;

use flitcast_cluster::algorithms::listed::TreeGossip;
use flitcast_cluster::algorithms::plan_limits::MAX_FLITS;
use flitcast_cluster::job::exchange_flits::ExchangeFlitsArgs;
use flitcast_cluster::job::on_links::LinkArgs;
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::format::{Format, Formats};
use flitcast_cluster::options::order::GIVEN;
use flitcast_cluster::options::pes::parse_pe;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::sync::TokenArg;
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::options::values::{
    AUTO, joined, planned_names, values_of, values_of_planned_scatter,
};

/// The operation of a plan.
#[derive(Debug, Subcommand)]
pub enum PlanOperation {
    /// Plan a scatter.
    Scatter(PlanScatterArgs),
    /// Plan a gather.
    Gather(PlanGatherArgs),
    /// Plan a broadcast.
    Broadcast(PlanBroadcastArgs),
    /// Plan a gossip: every PE sends its message to all others.
    #[command(visible_alias = "allgather")]
    Gossip(PlanGossipArgs),
    /// Plan an exchange: every PE sends each other a different message.
    #[command(visible_alias = "alltoall")]
    Exchange(PlanExchangeArgs),
}

/// Arguments of `flitcast plan gossip`.
#[derive(Debug, Args)]
pub struct PlanGossipArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_0..L_n in flits, like 3,0,4: a list, or equal:MEAN, ramp:MEAN, onebig:MEAN,
    /// halfnull:MEAN, uniform:LO..HI:SEED.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// How to gossip.
    #[arg(long, default_value = AUTO, help = gossip_help())]
    pub algorithm: String,
    #[command(flatten)]
    pub prices: PriceArgs,
    #[command(flatten)]
    pub print: PrintArgs,
}

/// Arguments of `flitcast plan exchange`.
#[derive(Debug, Args)]
pub struct PlanExchangeArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    #[command(flatten)]
    pub flits: ExchangeFlitsArgs,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// How to exchange.
    #[arg(long, default_value = AUTO, help = exchange_help())]
    pub algorithm: String,
    #[command(flatten)]
    pub print: PrintArgs,
}

/// Arguments of `flitcast plan broadcast`.
#[derive(Debug, Args)]
pub struct PlanBroadcastArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The length of the message in flits.
    #[arg(long, value_name = "FLITS", value_parser = clap::value_parser!(u64).range(..=MAX_FLITS))]
    pub size: u64,
    /// The PE that holds the message, as 3 or P3 or by its name in a cluster file.
    #[arg(long, value_name = "P")]
    pub from: Option<String>,
    /// How to broadcast.
    #[arg(long, default_value = AUTO, help = BroadcastAlgorithm::forms("kary:K"))]
    pub algorithm: BroadcastAlgorithm,
    /// Number of ports of a PE.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Plan over as many trees at once as share no arc of the --network, with many ports.
    #[arg(long)]
    pub cover: bool,
    #[command(flatten)]
    pub print: PrintArgs,
}

/// The output options of a plan that is a list of crossings.
#[derive(Clone, Copy, Debug, Args)]
pub struct PrintArgs {
    /// Format of the plan on stdout.
    #[arg(long, value_parser = CROSSINGS, default_value = "table")]
    pub format: Format,
    /// Also simulate the plan: run one state machine per PE step by step, under all rules of the model,
    /// and compare.
    #[arg(long)]
    pub simulate: bool,
    /// Omit the crossings: print only the figures of the whole.
    #[arg(long)]
    pub summary: bool,
    #[command(flatten)]
    pub links: LinkArgs,
}

/// Arguments of `flitcast plan scatter`.
#[derive(Debug, Args)]
pub struct PlanScatterArgs {
    #[command(flatten)]
    pub plan: PlanRoundArgs,
    /// The order in which P0 sends: fdf (farthest destination first), nearest-first,
    /// given:5,4 (every nonnull message once, by PE or name), or search[:NODES], the best found over the rates of
    /// links that a file gives, or with --setup in packets, after at most this many nodes (200000)
    /// [default: fdf; with --setup search].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<Order>,
    /// The PE that holds the messages, as 3 or P3 or by its name in a cluster file; the lengths are those
    /// of all other PEs.
    #[arg(long, value_name = "P")]
    pub from: Option<String>,
    /// How to scatter [default: fdf].
    #[arg(
        long,
        value_parser = values_of_planned_scatter(),
        conflicts_with_all = ["setup", "cover", "order"],
    )]
    pub algorithm: Option<String>,
    /// Number of ports of a PE.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Plan over one tree for each port of P0 instead: these trees share arcs, over which messages
    /// follow each other.
    #[arg(long, requires = "cover")]
    pub shared: bool,
    #[command(flatten)]
    pub packets: PacketArgs,
}

/// Arguments of `flitcast plan gather`.
#[derive(Debug, Args)]
pub struct PlanGatherArgs {
    #[command(flatten)]
    pub plan: PlanRoundArgs,
    /// How to gather [default: shoulder-tap on a path, else certification].
    #[arg(long, value_parser = values_of(Collective::Gather))]
    pub algorithm: Option<String>,
    /// How certification synchronises [default: pipelined].
    #[arg(long, alias = "sync", value_enum)]
    pub token: Option<TokenArg>,
    /// The order in which P0 takes the messages: given:1,3,2 (every nonnull message once, by PE or name).
    /// It must be that of a walk down the tree: a PE before the PEs below it, and those of a subtree
    /// one after the other [default: each as early as it can come].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// Number of ports of a PE; with multi, synchronisation runs in parallel.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    #[command(flatten)]
    pub packets: PacketArgs,
    /// Time of a token, a certificate or an order with --setup and --algorithm certification [default:
    /// packet].
    #[arg(long, value_enum, requires = "setup")]
    pub control: Option<ControlArg>,
}

/// How messages are distributed over the trees of a cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DealArg {
    /// Distribution with the fewest steps.
    Auto,
    /// Each message on one tree.
    Whole,
    /// A piece of each message on each tree.
    Striped,
    /// Flit by flit, each on the tree on which it arrives first.
    Levelled,
}

/// Arguments that both operations share.
#[derive(Debug, Args)]
#[command(mut_arg("format", |format| format.value_parser(FORMATS)))]
#[command(mut_arg("summary", |summary| summary.help(SUMMARY_HELP)))]
pub struct PlanRoundArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_1..L_n in flits, like 0,0,4: a list, or equal:MEAN, ramp:MEAN, onebig:MEAN,
    /// halfnull:MEAN, uniform:LO..HI:SEED.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// Plan over as many trees at once as share no arc of the --network, with many ports.
    #[arg(long)]
    pub cover: bool,
    /// How messages are distributed over the trees of a cover [default: auto, the quickest of these].
    #[arg(long, value_enum, requires = "cover")]
    pub deal: Option<DealArg>,
    #[command(flatten)]
    pub print: PrintArgs,
}

/// The formats of a plan that is a list of crossings.
const CROSSINGS: Formats = Formats(&[
    (Format::Table, "For eyes"),
    (Format::Json, "For programs"),
    (Format::Svg, "The space-time diagram"),
]);

const FORMATS: Formats = Formats(&[
    (
        Format::Table,
        "The papers' figures: a row for each step, a column for each PE",
    ),
    (Format::Json, "For programs"),
    (Format::Svg, "The space-time diagram"),
]);

/// Help of `--summary` where a plan has messages and control items.
const SUMMARY_HELP: &str =
    "Omit the messages and control items: print only the figures of the whole";

fn gossip_help() -> String {
    let of_trees = TreeGossip::listed().map(Algorithm::name);
    format!(
        "How to gossip. On a tree: {}, and {}. On a --network: auto, approach1, approach2[:A], \
         circgos:A,a,b, torgos:A;b0,b1,..;x0,x1,.., cubgos, phases:A,a,b/A,a,b/.., halves; on \
         complete:N auto, {COMPLETE_FORMS}, approach1",
        joined([AUTO].into_iter().chain(of_trees), "or"),
        CycleGossip::HELP,
    )
}

fn exchange_help() -> String {
    let names = |on_trees| {
        let names = planned_names(Collective::Exchange, on_trees);
        joined([AUTO].into_iter().chain(names), "or")
    };
    let (on_trees, among_all) = (names(true), names(false));
    format!("{on_trees} on a tree; {among_all} with --network complete:N")
}

/// The order in which P0 sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    FarthestFirst,
    NearestFirst,
    /// The order of PEs that are named in this text.
    Given(String),
    /// The best order found in at most this number of nodes.
    Search(u64),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Order, String> {
        match text {
            "fdf" => return Ok(Order::FarthestFirst),
            "nearest-first" => return Ok(Order::NearestFirst),
            "search" => return Ok(Order::Search(DEFAULT_NODES)),
            _ => {}
        }
        if let Some(nodes) = text.strip_prefix("search:") {
            let nodes = nodes.parse().ok().filter(|nodes| *nodes <= MOST_NODES);
            return nodes.map(Order::Search).ok_or_else(|| {
                format!("`{text}`: search:NODES has a number of nodes, at most {MOST_NODES}")
            });
        }
        match text.starts_with(GIVEN) {
            true => Ok(Order::Given(text.to_owned())),
            false => Err(format!(
                "`{text}` is not an order: write fdf, nearest-first, given:5,4 with the PEs' \
                 numbers or names, or search[:NODES]"
            )),
        }
    }
}

/// Options of plans in packets.
#[derive(Debug, Args)]
pub struct PacketArgs {
    /// Plan in packets: the set-up cost of a packet on each link, as a multiple of a flit's time, an
    /// integer or a fraction like 3/2.
    #[arg(long, value_name = "BETA")]
    pub setup: Option<LinkCost>,
    /// How messages are cut: auto; mixed, so that a packet may also have flits for PEs on its way;
    /// COUNT even packets each, or one per flit; sizes:S1,S2,.. of one nonnull message;
    /// sequence:4x1,3x2,3x1 of all, the PE and the flits of each packet that P0 sends, or
    /// sequence:4x1+3x2,3x1 with mixed ones; with --algorithm certification auto or cap:C, the largest packet [default: auto].
    #[arg(long, value_name = "PACKETS", requires = "setup")]
    pub packets: Option<Packets>,
    /// Limit of nodes that the search for a better plan visits, on trees where no plan is known to be
    /// optimal; 0 for no search [default: 200000].
    #[arg(long, value_name = "NODES", requires = "setup",
        value_parser = clap::value_parser!(u64).range(..=MOST_NODES))]
    pub search: Option<u64>,
}

/// The time that a control item takes on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControlArg {
    /// The time of a packet of one flit, as in the paper.
    Packet,
    /// No time: it goes between two packets, as on real links.
    Free,
}

/// How messages are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packets {
    Auto,
    /// The best packets found that may mix messages.
    Mixed,
    Split(Split),
    /// Each message into even packets of at most this number of flits.
    Cap(u64),
}

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Packets, String> {
        let unknown = || {
            format!(
                "`{text}` does not say how to cut messages: auto, mixed, a COUNT of even packets \
                 each, sizes:S1,S2,.. with the flits of each packet of one message, \
                 sequence:PExFLITS,.. with every packet of all messages, or cap:C (C at least 1) \
                 with --algorithm certification"
            )
        };
        let number = |part: &str| part.trim().parse::<u64>().map_err(|_| unknown());
        let part = |part: &str| {
            let (pe, flits) = part.split_once('x').ok_or_else(unknown)?;
            let flits = flits.trim().parse().ok().filter(|&flits| flits > 0);
            Ok::<_, String>(Part {
                pe: parse_pe(pe.trim()).map_err(|_| unknown())?,
                flits: flits.ok_or_else(unknown)?,
            })
        };
        let packet = |parts: &str| {
            let mut parts = parts.split('+').map(part);
            let Part { pe, flits } = parts.next().ok_or_else(unknown)??;
            Ok::<_, String>(Run {
                also: parts.collect::<Result<_, _>>()?,
                ..Run::new(pe, flits, 1)
            })
        };
        match text.split_once(':') {
            None if text == "auto" => Ok(Packets::Auto),
            None if text == "mixed" => Ok(Packets::Mixed),
            None => Ok(Packets::Split(Split::Count(number(text)?))),
            Some(("sizes", sizes)) => {
                let sizes = sizes.split(',').map(number).collect::<Result<_, _>>()?;
                Ok(Packets::Split(Split::Sizes(sizes)))
            }
            Some(("sequence", packets)) => {
                let packets = packets.split(',').map(packet).collect::<Result<_, _>>()?;
                Ok(Packets::Split(Split::Sequence(packets)))
            }
            Some(("cap", cap)) => match number(cap)? {
                0 => Err(unknown()),
                cap => Ok(Packets::Cap(cap)),
            },
            Some(_) => Err(unknown()),
        }
    }
}
