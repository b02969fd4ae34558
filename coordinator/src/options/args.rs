//! What is typed of a scatter or a gather, and shared by the commands that run them. What it
//! means, and whether that can be done, is `request`'s to say: values are texts here, so that
//! what is wrong with several of them is told at once.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flitcast_proto::PeId;
use flitcast_proto::schedule::pace::Pacing;

use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::guard::GuardArgs;
use crate::options::pes::parse_pe;
use crate::options::pictures::PictureArgs;
use crate::options::ports::Ports;
use crate::options::tree::TreeArgs;

/// Arguments of `flitcast scatter`.
#[derive(Debug, Args)]
pub struct ScatterArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to scatter.
    #[arg(long, value_enum, default_value_t = ScatterAlgorithm::Fdf)]
    pub algorithm: ScatterAlgorithm,
    /// In which order the messages leave: fdf (farthest destination first, the best where links are
    /// alike) or search (the quickest that is found for the links and hosts that are there).
    #[arg(long, value_enum, default_value_t = OrderArg::Fdf)]
    pub order: OrderArg,
    /// Deal all files below the input over all other PEs, balanced by size.
    #[arg(long)]
    pub spread: bool,
    /// The PE that has the messages, 3 or P3; the lengths are those of all other PEs
    /// [default: P0].
    #[arg(long, value_name = "P", value_parser = parse_pe)]
    pub from: Option<PeId>,
}

/// In which order a scatter's messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Farthest destination first.
    Fdf,
    /// The quickest that is found.
    Search,
}

/// Arguments of `flitcast gather`.
#[derive(Debug, Args)]
pub struct GatherArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to gather [default: shoulder-tap on a path, else certification].
    #[arg(long, value_enum)]
    pub algorithm: Option<GatherAlgorithm>,
    /// How certification synchronises [default: pipelined].
    #[arg(long, value_enum)]
    pub sync: Option<SyncArg>,
    /// How orders to transmit are obeyed [default: the profile's, else turns with --cluster
    /// and scheduled on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// The PE that gets the messages, 3 or P3; the lengths are those of all other PEs
    /// [default: P0].
    #[arg(long, value_name = "P", value_parser = parse_pe)]
    pub to: Option<PeId>,
}

/// Arguments of `flitcast broadcast`.
#[derive(Debug, Args)]
#[command(
    mut_arg("input", |input| input.help("What all others get: a file or a folder").value_name("PATH")),
    mut_arg("output", |output| output.help("Where the copies arrive: P3's becomes visible as p3, whole or not at all")),
    mut_arg("lengths", |lengths| lengths.hide(true)),
)]
pub struct BroadcastArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to broadcast: over the given tree by rounds (flit after flit), urgent (in each step to
    /// the child that is most behind) or, to measure against, child-by-child; path or kary:K,
    /// over a tree of its own where all PEs reach each other; or auto, what is predicted to take
    /// the least time, flit size included.
    #[arg(long, default_value = "rounds")]
    pub algorithm: BroadcastAlgorithm,
    /// The PE that has the message, 3 or P3 [default: P0].
    #[arg(long, value_name = "P", value_parser = parse_pe)]
    pub from: Option<PeId>,
}

/// Arguments of `flitcast gossip`.
#[derive(Debug, Args)]
#[command(
    mut_arg("input", |input| input.help("Where the messages lie: entry p3, a file or a folder, is P3's for all others")),
    mut_arg("output", |output| output.help("Where they arrive: P3's becomes visible at P5 as p5/p3, whole or not at all")),
    mut_arg("lengths", |lengths| lengths.help("Synthetic messages: a list for P0..Pn (64KiB,0,3MiB), or equal:MEAN, ramp:MEAN, onebig:MEAN, halfnull:MEAN, uniform:LO..HI:SEED")),
    mut_arg("packets", |packets| packets.hide(true)),
    mut_arg("cover", |cover| cover.hide(true)),
)]
pub struct GossipArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to gossip: flood (over the edges of the tree, by the better of two orders) or, to measure
    /// against, ring-emulation (around the tree). Where all
    /// PEs reach each other circulate (in a ring of all), dissemination[:K] (in as few steps as
    /// there can be: Bruck et al., 1997), direct (each sends its own to all others), neighbour
    /// (pairs swap what came from the pair before). On a --network of lines or rings approach1,
    /// approach2[:A], circgos:A,a,b, torgos:A;b0,..;x0,.., cubgos, phases:A,a,b/.. or halves, as
    /// `flitcast plan gossip` plans them. Or auto, what is predicted to take the least time, flit
    /// size included [default: circulate where all PEs reach each other, else flood].
    #[arg(long, value_name = "ALGORITHM")]
    pub algorithm: Option<String>,
    /// Whether a PE sends when its receiver calls (turns) or as soon as it can (eager)
    /// [default: the profile's, else turns with --cluster and eager on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// Whether a PE sends to all its neighbours at once, and takes from all (multi), or does one thing
    /// each way at a time (single); with --link, whether its links share what it has, too [default:
    /// multi where a cluster file says that neighbours have links of their own, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// Arguments of `flitcast exchange`.
#[derive(Debug, Args)]
#[command(
    mut_arg("input", |input| input.help("Where the messages lie: entry p2/p5, a file or a folder, is P2's for P5")),
    mut_arg("output", |output| output.help("Where they arrive: P2's becomes visible at P5 as p5/p2, whole or not at all")),
    mut_arg("lengths", |lengths| lengths.help("Synthetic messages: a file with a row for each sender and a column for each receiver, or equal:MEAN").value_name("FILE")),
    mut_arg("packets", |packets| packets.hide(true)),
    mut_arg("cover", |cover| cover.hide(true)),
)]
pub struct ExchangeArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to exchange [default: rounds where all PEs reach each other, else tree].
    #[arg(long, value_enum)]
    pub algorithm: Option<ExchangeAlgorithm>,
    /// Whether a PE sends when its receiver calls (turns) or as soon as it can (eager)
    /// [default: the profile's, else turns with --cluster and eager on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// Whether a PE sends to all its neighbours at once, and takes from all (multi), or does one thing
    /// each way at a time (single); with --link, whether its links share what it has, too [default:
    /// multi where a cluster file says that neighbours have links of their own, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// How to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExchangeAlgorithm {
    /// Where all PEs reach each other, in rounds of pairs, so that nobody gets two streams at
    /// once: as long as the busiest PE has to send or to take.
    Rounds,
    /// To measure against: in round k everybody sends to the k-th PE behind it.
    Shifts,
    /// Over the edges of the tree.
    Tree,
    /// To measure against: everybody sends to all others at the same time.
    AtOnce,
    /// What is predicted to take the least time, flit size included.
    Auto,
}

/// How to scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScatterAlgorithm {
    /// Farthest destination first: any tree, and none is faster.
    Fdf,
    /// What is predicted to take the least time, flit size included.
    Auto,
    /// To measure against, on complete:N: one PE after the other.
    Linear,
    /// To measure against, on complete:N: a binomial tree of PEs that hold what they
    /// send on.
    Binomial,
    /// To measure against, on complete:N: the same on a tree that spares long messages
    /// detours (Träff, arXiv 1702.05967).
    Adaptive,
    /// What fdf does, by a list of what each PE sends and takes: to hold one against the other.
    #[value(hide = true)]
    Listed,
}

/// How to gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GatherAlgorithm {
    /// Shoulder-Tap: paths only.
    ShoulderTap,
    /// Transmission-Certification: any tree.
    Certification,
    /// What is predicted to take the least time, pacing and flit size included.
    Auto,
    /// To measure against, on complete:N: one PE after the other.
    Linear,
    /// To measure against, on complete:N: four PEs under way at once.
    Window,
    /// To measure against, on complete:N: a binomial tree of PEs that hold what they
    /// send on.
    Binomial,
    /// To measure against, on complete:N: the same on a tree that spares long messages
    /// detours (Träff, arXiv 1702.05967).
    Adaptive,
}

/// How TRANSMIT AFTER is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PacingArg {
    /// By the clock: orders go out at once and say how long to wait.
    Scheduled,
    /// In turns: an order goes out when the stream before it is about to end.
    Turns,
    /// At once: streams wait in the network until they are read.
    Eager,
}

impl From<PacingArg> for Pacing {
    fn from(pacing: PacingArg) -> Pacing {
        match pacing {
            PacingArg::Scheduled => Pacing::Scheduled,
            PacingArg::Turns => Pacing::Turns,
            PacingArg::Eager => Pacing::Eager,
        }
    }
}

/// How certification synchronises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SyncArg {
    /// One child after the other, as the paper words it.
    Serial,
    /// All in twice the tree's broadcast time.
    Pipelined,
}

/// Arguments of whatever moves messages for real, over what, once or to measure it.
#[derive(Clone, Debug, Args)]
pub struct TransferArgs {
    /// Who is connected to whom.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Synthetic messages of this size for everyone, like 1MiB.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Synthetic messages: a list for P1..Pn (64KiB,0,3MiB), or equal:MEAN,
    /// ramp:MEAN, onebig:MEAN, halfnull:MEAN, uniform:LO..HI:SEED.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// Payload of a flit, the unit that a relay holds [default: 64KiB, or what is predicted to
    /// be quicker by a fifth or more].
    #[arg(long, value_name = "SIZE")]
    pub flit_size: Option<String>,
    /// What the links are to be like: rate=RATE (kbit, mbit, gbit), latency=TIME (ns, us,
    /// ms, s) or both, as in rate=200mbit,latency=1ms, and setup=TIME, for which each flit has the
    /// link besides. A tree file may say it of single
    /// edges [default: as fast as the machine].
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
    /// What `flitcast calibrate` has measured on this tree: instead of a short
    /// measurement before the rounds.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// How long to wait for what before somebody is taken for dead: any of
    /// heartbeat=0.5s,silence=3s,handshake=2s,connect=5s,write=10s,disk=300s, which are
    /// the defaults.
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    pub timeouts: Option<String>,
    /// How connections are guarded.
    #[command(flatten)]
    pub guard: GuardArgs,
    /// Tell what is counted at http://ADDR/metrics, for Prometheus, as long as this runs; in
    /// the clear, to anybody who reaches the address. 127.0.0.1:9464, say.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
}

/// Arguments that all operations share.
#[derive(Debug, Args)]
pub struct RoundArgs {
    /// What is moved, over what.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Into how many packets each message is cut: auto (what is predicted to take the least time),
    /// a COUNT, or the SIZE that none exceeds, like 64KiB. A packet is one flit, which a relay has
    /// whole before it sends any of it on.
    #[arg(long, value_name = "auto|COUNT|SIZE")]
    pub packets: Option<String>,
    /// Sends on all trees of a cover of the network at once, which share no link, where each PE has
    /// a network card for each neighbour (reached_by in the cluster file).
    #[arg(long)]
    pub cover: bool,
    /// Where the messages lie: entry p3, a file or a folder, is P3's.
    #[arg(long, value_name = "DIR")]
    pub input: Option<PathBuf>,
    /// Where they arrive: P3's becomes visible as p3, whole or not at all.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Let the output hold files already, and replace those that arrive anew.
    #[arg(long)]
    pub force: bool,
    /// When a PE fails, go on without it, N times at most (up to 16): those below it move to
    /// another parent, and only what is missing is sent.
    #[arg(long, value_name = "N", help_heading = "Faults")]
    pub retry: Option<String>,
    /// How often to do it; the report gives median and spread.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,
    /// How the result is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    /// What is drawn of it.
    #[command(flatten)]
    pub pictures: PictureArgs,
}

/// Arguments of `flitcast resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The record that the failed round left in its output directory, as it said.
    #[arg(value_name = "ROUND")]
    pub record: PathBuf,
    /// Try those again that were left out as dead: their hosts may be mended.
    #[arg(long, help_heading = "Faults")]
    pub revive: bool,
    /// When a PE fails, go on without it, N times at most (up to 16).
    #[arg(long, value_name = "N", help_heading = "Faults")]
    pub retry: Option<String>,
    /// How long to wait for what, as in `flitcast scatter --timeouts` [default: as it was].
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    pub timeouts: Option<String>,
    /// How connections are guarded: as they were, but for --insecure, which is typed anew.
    #[command(flatten)]
    pub guard: GuardArgs,
    /// Replace what stands in the output where a message is missing.
    #[arg(long)]
    pub force: bool,
    /// Tell what is counted at http://ADDR/metrics, for Prometheus, as long as this runs; in
    /// the clear, to anybody who reaches the address. 127.0.0.1:9464, say.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// How the result is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}
