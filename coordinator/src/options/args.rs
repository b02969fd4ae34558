//! The command line as it is typed. What it means, and whether that can be done,
//! is `request`'s to say: values are texts here, so that what is wrong with several of
//! them is told at once.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flitcast_node::limits::Timeouts;

use crate::commands::bench::BenchArgs;
use crate::commands::ca::CaArgs;
use crate::commands::calibrate::CalibrateArgs;
use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::leash::{LeashArgs, StageArgs};
use crate::commands::manual::{CompletionsArgs, ManArgs};
use crate::commands::map::MapArgs;
use crate::commands::plan::PlanArgs;
use crate::commands::tree::PrintTreeArgs;
use crate::commands::view::WatchArgs;
use crate::options::guard::GuardArgs;
use crate::options::pictures::PictureArgs;
use crate::options::timeouts;
use crate::options::tree::TreeArgs;
use crate::site::kept::{DownArgs, KeepArgs, StatusArgs, UpArgs};

/// What `flitcast` returns, for the help and the pages of the manual.
pub const EXIT_STATUS: &[(&str, &str)] = &[
    (
        "0",
        "all went well: every message was delivered and verified",
    ),
    (
        "1",
        "a run failed: the message names the PE, the round and what arrived",
    ),
    (
        "2",
        "the command line or a file is wrong, all faults listed; nothing was started",
    ),
    ("130", "Ctrl-C: every process was stopped"),
];

fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit status:\n");
    for (code, meaning) in EXIT_STATUS {
        text.push_str(&format!("  {code:>3}  {meaning}\n"));
    }
    text
}

const EXAMPLES: &str = "\
Examples:
  flitcast scatter --tree kary:2:8 --input shards --output out/scattered
  flitcast scatter --tree kary:2:8 --input shards --output out/scattered --retry 2
  flitcast resume out/scattered/.flitcast-round-*.toml
  flitcast gather --tree kary:2:8 --input out/scattered --output out/gathered
  flitcast map --tree kary:2:8 --input shards --output results -- wc -w
  flitcast gather --tree star:8 --size 1MiB --rounds 30 --report star.html
  flitcast watch
  flitcast calibrate --tree kary:2:8 --output profile.toml
  flitcast check cluster.toml
  flitcast plan gather --tree path:6 --lengths 2,3,0,2,1
  flitcast compare gather --network mesh:8x8 --lengths uniform:0..64:7
  flitcast bench gather --tree kary:2:8 --lengths ramp:64KiB --rounds 30";

/// Scatter different messages to many processes, and gather them back, over a
/// tree of TCP links.
#[derive(Debug, Parser)]
#[command(name = "flitcast", version, max_term_width = 100, after_help = after_help())]
pub struct Cli {
    /// Say more on stderr; twice, still more. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Logging")]
    pub verbose: u8,
    /// How log lines look.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = LogFormat::Text,
        help_heading = "Logging"
    )]
    pub log_format: LogFormat,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For eyes.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send every PE its own message from P0.
    Scatter(ScatterArgs),
    /// Bring every PE's message to P0.
    Gather(GatherArgs),
    /// Scatter shards, run a command on each where it arrives, and gather what it writes.
    Map(MapArgs),
    /// Go on with a scatter or gather that failed: what is missing, without the dead.
    Resume(ResumeArgs),
    /// Measure a cluster, and keep what was found in a profile for --profile.
    Calibrate(CalibrateArgs),
    /// Work out a round step by step, without running it.
    Plan(PlanArgs),
    /// Compare the algorithms, and what users know, on a tree.
    Compare(CompareArgs),
    /// Time the algorithms, and what users know, against what is predicted.
    Bench(BenchArgs),
    /// Print a tree, or the one that spans a network, with what its shape costs.
    Tree(PrintTreeArgs),
    /// Watch a command that runs: the tree, what crosses its edges, how far each PE is.
    Watch(WatchArgs),
    /// Check a cluster file, and show the cluster that it describes.
    Check(CheckArgs),
    /// Start the PEs of a cluster file, and keep them for the commands that follow.
    Up(UpArgs),
    /// Say which clusters are up, and how the PEs of one fare.
    Status(StatusArgs),
    /// Stop a cluster that is up.
    Down(DownArgs),
    /// Keep a cluster: `flitcast up` runs this in the background.
    #[command(hide = true)]
    Keep(KeepArgs),
    /// Print what a shell needs to complete command lines.
    Completions(CompletionsArgs),
    /// Write the pages of the manual, one for each command.
    Man(ManArgs),
    /// Make the certificates by which the processes of a cluster know each other.
    Ca(CaArgs),
    /// Play one PE of a cluster: the other commands start these themselves, unless the
    /// cluster file says that they join.
    Node(NodeArgs),
    /// Print the hash of this program, for who has copied it to a host.
    #[command(hide = true)]
    SelfHash,
    /// Hand this program out to other hosts until standard input ends.
    #[command(hide = true)]
    SelfServe {
        /// Where they come; which port, standard output says.
        #[arg(value_name = "ADDRESS")]
        listen: IpAddr,
    },
    /// Tell whether a PE lives, by the file of its --health.
    Health(HealthArgs),
    /// Run a command for a PE, and end it with that.
    #[command(hide = true)]
    Leash(LeashArgs),
    /// Become a command that ends with the process that has it run.
    #[command(hide = true)]
    Stage(StageArgs),
}

/// How a command that conducts rounds is seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its name.
    pub name: &'static str,
    /// Where it tells what it counts.
    pub metrics: Option<SocketAddr>,
}

impl Command {
    /// How it is seen from outside, if it conducts rounds.
    pub fn seen(&self) -> Seen {
        let (name, metrics) = match self {
            Command::Scatter(args) => ("scatter", args.round.transfer.metrics),
            Command::Gather(args) => ("gather", args.round.transfer.metrics),
            Command::Bench(args) => ("bench", args.operation.transfer().metrics),
            Command::Map(args) => ("map", args.metrics),
            Command::Resume(args) => ("resume", args.metrics),
            Command::Calibrate(args) => ("calibrate", args.metrics),
            _ => ("", None),
        };
        Seen { name, metrics }
    }
}

/// Arguments of `flitcast scatter`.
#[derive(Debug, Args)]
pub struct ScatterArgs {
    /// Arguments that both operations share.
    #[command(flatten)]
    pub round: RoundArgs,
    /// How to scatter.
    #[arg(long, value_enum, default_value_t = ScatterAlgorithm::Fdf)]
    pub algorithm: ScatterAlgorithm,
    /// Deal all files below the input over P1..Pn, balanced by size.
    #[arg(long)]
    pub spread: bool,
}

/// Arguments of `flitcast gather`.
#[derive(Debug, Args)]
pub struct GatherArgs {
    /// Arguments that both operations share.
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
    /// Payload of a flit, the unit that a relay holds [default: 64KiB].
    #[arg(long, value_name = "SIZE")]
    pub flit_size: Option<String>,
    /// What the links are to be like: rate=RATE (kbit, mbit, gbit), latency=TIME (ns, us,
    /// ms, s) or both, as in rate=200mbit,latency=1ms. A tree file may say it of single
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

/// Arguments that both operations share.
#[derive(Debug, Args)]
pub struct RoundArgs {
    /// What is moved, over what.
    #[command(flatten)]
    pub transfer: TransferArgs,
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
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
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
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub format: OutputFormat,
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For eyes.
    Table,
    /// For programs.
    Json,
}

/// Arguments of `flitcast node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Which PE to play; of a job of Slurm, SLURM_PROCID says it.
    #[arg(long, value_name = "I", required_unless_present = "join")]
    pub pe: Option<u32>,
    /// Join the command that listens there, or will: the `coordinator` of a cluster file with
    /// [launch] kind = "join". Or `slurm`, under srun: a command with --cluster slurm in the
    /// script of the job (slurm:PORT, if both say so).
    #[arg(
        long,
        value_name = "HOST:PORT",
        help_heading = "Joining",
        conflicts_with_all = ["coordinator", "timeouts"]
    )]
    pub join: Option<String>,
    /// How long to try until the coordinator is there [default: 60s].
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "stay"
    )]
    pub wait: Option<String>,
    /// Join the next command when one is over, until this is stopped.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub stay: bool,
    /// Run the commands of `flitcast map`: whoever has the coordinator's certificate then has
    /// this user's rights on this host.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub commands: bool,
    /// Show no certificate, and ask for none; the command needs its --insecure as well. The PE
    /// then plays synthetic messages only: it reads and writes no files and runs no commands.
    #[arg(
        long,
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "credentials"
    )]
    pub insecure: bool,
    /// With --join slurm: which PE each task plays, in turn; else the one of its number.
    #[arg(
        long,
        value_name = "I,J,..",
        hide = true,
        requires = "join",
        value_delimiter = ','
    )]
    pub pes: Vec<u32>,
    /// Who starts it keeps it: what makes it one of the cluster is on its standard input, and
    /// when that ends, it leaves.
    #[arg(long, hide = true, requires = "stay", conflicts_with = "insecure")]
    pub kept: bool,
    /// Say every second in this file what the PE does, for `flitcast health`.
    #[arg(long, value_name = "FILE", help_heading = "Joining", requires = "join")]
    pub health: Option<PathBuf>,
    /// Where the PE's children reach it [default: the address that the cluster file gives,
    /// and any port].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Tell what is counted at http://ADDR/metrics, for Prometheus, as long as this runs; in
    /// the clear, to anybody who reaches the address. 127.0.0.1:9464, say.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// The folder with ca.pem and its certificate and key, p3.pem and p3.key for P3 (see
    /// `flitcast ca`).
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
    /// Where the coordinator listens that has started this process.
    #[arg(
        long,
        value_name = "ADDR",
        hide = true,
        required_unless_present = "join"
    )]
    pub coordinator: Option<SocketAddr>,
    /// How long to wait for what, as in `flitcast scatter --timeouts`; who joins is told.
    #[arg(long, value_name = "TIMES", hide = true, value_parser = parse_timeouts)]
    pub timeouts: Option<Timeouts>,
}

/// Arguments of `flitcast health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The file that a `flitcast node --join .. --health FILE` writes.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn parse_timeouts(text: &str) -> Result<Timeouts, String> {
    timeouts::parse(text).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        faults.join("; ")
    })
}
