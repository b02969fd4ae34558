//! Arguments of the operations that move messages, shared by the commands that run them. Values are
//! texts here: `request` parses and checks them, so that all errors are reported at once.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flitcast_proto::ops::Collective;
use flitcast_proto::schedule::pace::Pacing;

use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::ports::Ports;
use crate::options::sync::{SyncArg, TokenArg};
use crate::options::transfer::{
    DivisionArgs, GuardArgs, PictureArgs, ReplacingArgs, SelectionArgs, TransmissionArgs,
};
use crate::options::tree::TreeArgs;
use crate::options::values::{broadcast_help, gossip_help, values_of};

/// Arguments of `flitcast scatter`.
#[derive(Debug, Default, Args)]
pub struct ScatterArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to scatter [default: fdf on a --tree, else as auto].
    #[arg(long, value_parser = values_of(Collective::Scatter))]
    pub algorithm: Option<String>,
    /// The order in which messages leave: tail (the message with the longest remaining time after it
    /// has left first: farthest destination first if links and flits are equal), fdf (farthest
    /// destination first, whatever links and flits cost), search (the quickest order found for the
    /// measured links and hosts), or given:3,1,2 (every nonnull message once, by its PE's number or name)
    /// [default: tail].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// Deal all files below the input, balanced by size.
    #[arg(long)]
    pub spread: bool,
    /// How one file is divided.
    #[command(flatten)]
    pub division: DivisionArgs,
    /// With `spread`: the entries of the input that are dealt whole; empty if all files are dealt.
    #[arg(skip)]
    pub shards: Vec<OsString>,
    /// The PE that holds the messages, as 3 or P3 or by its name in a cluster file; the lengths are those
    /// of all other PEs [default: P0].
    #[arg(long, value_name = "P")]
    pub from: Option<String>,
    /// Whether the sender sends to all its neighbours at once (multi) or to one at a time (single); with
    /// --link, also whether the links of a PE share their rate [default: multi where a cluster file
    /// gives each neighbour its own link, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// Arguments of `flitcast gather`.
#[derive(Debug, Default, Args)]
pub struct GatherArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to gather [default: on a --tree shoulder-tap if it is a path and --ports is not multi, else
    /// certification; without --tree as auto].
    #[arg(long, value_parser = values_of(Collective::Gather))]
    pub algorithm: Option<String>,
    /// How certification synchronises [default: pipelined, or over all links at once with --ports multi].
    #[arg(long, value_enum)]
    pub token: Option<TokenArg>,
    /// How orders to transmit are obeyed [default: the profile's, else turns with --cluster
    /// and scheduled on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// The order in which the messages are taken, by shoulder-tap or certification: given:1,3,2 (every
    /// nonnull message once, by its PE's number or name). It must be that of a walk down the tree: a PE before the PEs
    /// below it, and those of a subtree one after the other [default: each as early as it can come].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// The PE that receives the messages, as 3 or P3 or by its name in a cluster file; the lengths are
    /// those of all other PEs [default: P0].
    #[arg(long, value_name = "P")]
    pub to: Option<String>,
    /// Whether the receiver receives from all its neighbours at once (multi) or from one at a time
    /// (single); with --link, also whether the links of a PE share their rate [default: multi where a
    /// cluster file gives each neighbour its own link, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// Arguments of `flitcast broadcast`.
#[derive(Debug, Default, Args)]
#[command(
    mut_arg("input", |input| input.help("What all others get: a file or a folder").value_name("PATH")),
    mut_arg("output", |output| output.help("Folder for the copies, where p3 is P3's: each becomes visible whole or not at all")),
    mut_arg("lengths", |lengths| lengths.hide(true)),
)]
pub struct BroadcastArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to broadcast.
    #[arg(long, help = broadcast_help())]
    pub algorithm: Option<BroadcastAlgorithm>,
    /// The PE that has the message, as 3 or P3 or by its name in a cluster file [default: P0].
    #[arg(long, value_name = "P")]
    pub from: Option<String>,
}

/// Arguments of `flitcast gossip`.
#[derive(Debug, Default, Args)]
#[command(
    mut_arg("input", |input| input.help("Folder of the messages, where p3 is P3's for all: a file or a folder")),
    mut_arg("output", |output| output.help("Folder for copies, where p5/p3 is P3's at P5: each becomes visible whole or not at all")),
    mut_arg("lengths", |lengths| lengths.help("Synthetic messages, like 64KiB,0,3MiB: a list for P0..Pn, or equal:MEAN, ramp:MEAN, onebig:MEAN, halfnull:MEAN, uniform:LO..HI:SEED")),
    mut_arg("packets", |packets| packets.hide(true)),
    mut_arg("cover", |cover| cover.hide(true)),
)]
pub struct GossipArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to gossip.
    #[arg(long, value_name = "ALGORITHM", help = gossip_help())]
    pub algorithm: Option<String>,
    /// Whether a PE sends when its receiver asks for data (turns) or as soon as it can (eager)
    /// [default: the profile's, else turns with --cluster and eager on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// Whether a PE sends to all its neighbours at once and receives from all of them (multi), or does
    /// one thing in each direction at a time (single); with --link, also whether its links share their
    /// rate [default: multi where a cluster file gives each neighbour its own link, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// Arguments of `flitcast exchange`.
#[derive(Debug, Default, Args)]
#[command(
    mut_arg("input", |input| input.help("Folder of messages, where p2/p5 is P2's for P5: a file or a folder")),
    mut_arg("output", |output| output.help("Folder for messages, where p5/p2 is P2's at P5: each becomes visible whole or not at all")),
    mut_arg("lengths", |lengths| lengths.help("Synthetic messages, by a file or equal:MEAN. The file has a row for each sender and a column for each receiver").value_name("FILE")),
    mut_arg("packets", |packets| packets.hide(true)),
    mut_arg("cover", |cover| cover.hide(true)),
)]
pub struct ExchangeArgs {
    /// Arguments that all operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to exchange [default: tree on a --tree, else auto].
    #[arg(long, value_parser = values_of(Collective::Exchange))]
    pub algorithm: Option<String>,
    /// Whether a PE sends when its receiver asks for data (turns) or as soon as it can (eager)
    /// [default: the profile's, else turns with --cluster and eager on this machine].
    #[arg(long, value_enum)]
    pub pacing: Option<PacingArg>,
    /// Whether a PE sends to all its neighbours at once and receives from all of them (multi), or does
    /// one thing in each direction at a time (single); with --link, also whether its links share their
    /// rate [default: multi where a cluster file gives each neighbour its own link, else single].
    #[arg(long, value_enum)]
    pub ports: Option<Ports>,
}

/// How TRANSMIT AFTER is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PacingArg {
    /// Clock-based: orders are sent at once and carry the time to wait.
    Scheduled,
    /// In turns: an order is sent when the stream before it is about to end.
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

/// Arguments of all commands that move messages: the tree, the messages, the links.
#[derive(Clone, Debug, Default, Args)]
pub struct TransferArgs {
    /// The tree that connects the PEs.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Synthetic messages of this size, like 1MiB.
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Synthetic messages, like 64KiB,0,3MiB: a list for P1..Pn, or equal:MEAN, ramp:MEAN, onebig:MEAN, halfnull:MEAN, uniform:LO..HI:SEED.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// Payload of a flit, the unit that a relay holds [default: 64KiB, or another size that is
    /// predicted to be at least a fifth quicker].
    #[arg(long, value_name = "SIZE")]
    pub flit_size: Option<String>,
    /// Emulate links, like rate=200mbit,latency=1ms: rate=RATE (kbit, mbit, gbit), latency=TIME (ns, us,
    /// ms, s) or both, and setup=TIME, for which each flit occupies the link in addition, or
    /// each packet of a gossip or an exchange. A tree file may set these for single edges [default: as fast as the machine].
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
    /// Use the measurements of this profile of `flitcast calibrate`, made on this tree, instead of a
    /// short measurement before the rounds.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Time limits after which a PE or a client is considered dead: any of
    /// heartbeat=0.5s,silence=3s,handshake=2s,connect=5s,write=10s,disk=300s, which are the defaults.
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    pub timeouts: Option<String>,
    /// How connections are protected.
    #[command(flatten)]
    pub guard: GuardArgs,
    /// Serve Prometheus metrics at http://ADDR/metrics while the command runs, for example at
    /// 127.0.0.1:9464; unencrypted, without authentication.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
}

/// Arguments that all operations share.
#[derive(Debug, Default, Args)]
pub struct RoundArgs {
    /// The messages and the tree.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Number of packets per message: auto (the shortest predicted time), a COUNT, or the largest SIZE
    /// of a packet, like 64KiB. A packet is one flit, which a relay receives as a whole before it sends
    /// any of it on. In a scatter mixed, too: packets that also have flits for PEs on their way.
    #[arg(long, value_name = "auto|COUNT|SIZE|mixed")]
    pub packets: Option<String>,
    /// Send on all trees of a cover of the network at once. The trees share no link; each PE has a
    /// network card for each neighbour (reached_by in the cluster file), or on this machine a
    /// separate emulated link (--link).
    #[arg(long)]
    pub cover: bool,
    /// Folder of the messages, where p3 is P3's: a file or a folder.
    #[arg(long, value_name = "DIR")]
    pub input: Option<PathBuf>,
    /// Folder for the messages, where p3 is P3's: each becomes visible whole or not at all.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which files of the input are sent.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Options about entries of the output that differ from what is sent.
    #[command(flatten)]
    pub replacing: ReplacingArgs,
    /// When arrived files survive a power cut: with their message, which then becomes visible (message);
    /// each when it is complete (file); some time after the round (none) [default: message].
    #[arg(long, value_enum, value_name = "WHEN", hide_short_help = true)]
    pub sync: Option<SyncArg>,
    /// Options about the bytes on all connections.
    #[command(flatten)]
    pub transmission: TransmissionArgs,
    /// Continue without a PE that fails, N times at most (up to 16): the PEs below it move to another
    /// parent, and only what is missing is sent.
    #[arg(long, alias = "retries", value_name = "N", help_heading = "Faults")]
    pub retry: Option<String>,
    /// Number of rounds; the report gives median and spread.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,
    /// Connect, measure and predict, but send nothing: report what would go where and how long it would
    /// take; write no file.
    #[arg(long, conflicts_with_all = ["rounds", "retry", "report", "trace"])]
    pub dry_run: bool,
    /// Whether every algorithm is predicted: `flitcast compare` sets this.
    #[arg(skip)]
    pub compares: bool,
    /// Format of the result on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    /// Pictures to draw of the run.
    #[command(flatten)]
    pub pictures: PictureArgs,
}

/// Arguments of `flitcast resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The record that the failed round left in its output directory.
    #[arg(value_name = "ROUND")]
    pub record: PathBuf,
    /// Include the PEs that were excluded as dead: their hosts may have been repaired.
    #[arg(long, help_heading = "Faults")]
    pub revive: bool,
    /// Continue without a PE that fails, N times at most (up to 16).
    #[arg(long, alias = "retries", value_name = "N", help_heading = "Faults")]
    pub retry: Option<String>,
    /// Time limits, as in `flitcast scatter --timeouts` [default: those of the failed round].
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    pub timeouts: Option<String>,
    /// How connections are protected: as in the failed round, except that --insecure must be given
    /// again.
    #[command(flatten)]
    pub guard: GuardArgs,
    /// Replace files in the output where a message is missing.
    #[arg(long)]
    pub force: bool,
    /// Serve Prometheus metrics at http://ADDR/metrics while the command runs, for example at
    /// 127.0.0.1:9464; unencrypted, without authentication.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// Format of the result on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}
