//! The command line: which commands there are, and what all of them share. What each takes is
//! its own.

use std::net::{IpAddr, SocketAddr};

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::bench::BenchArgs;
use crate::commands::ca::CaArgs;
use crate::commands::calibrate::CalibrateArgs;
use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::kept::{DownArgs, KeepArgs, StatusArgs, UpArgs};
use crate::commands::leash::{LeashArgs, StageArgs};
use crate::commands::manual::{CompletionsArgs, ManArgs};
use crate::commands::map::MapArgs;
use crate::commands::node::{HealthArgs, NodeArgs};
use crate::commands::plan::PlanArgs;
use crate::commands::tree::PrintTreeArgs;
use crate::commands::watch::WatchArgs;
use crate::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, ResumeArgs, ScatterArgs,
};
use crate::render::ending::EXIT_STATUS;

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
    /// Send every PE a copy of one file or folder of P0's.
    Broadcast(BroadcastArgs),
    /// Bring every PE's message to all others.
    #[command(visible_alias = "allgather")]
    Gossip(GossipArgs),
    /// Send from every PE a message of its own to each other.
    #[command(visible_alias = "alltoall")]
    Exchange(ExchangeArgs),
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
pub struct Observed {
    /// Its name.
    pub name: &'static str,
    /// Where it tells what it counts.
    pub metrics: Option<SocketAddr>,
}

impl Command {
    /// How it is seen from outside, if it conducts rounds.
    pub fn observed(&self) -> Observed {
        let (name, metrics) = match self {
            Command::Scatter(args) => ("scatter", args.round.transfer.metrics),
            Command::Gather(args) => ("gather", args.round.transfer.metrics),
            Command::Broadcast(args) => ("broadcast", args.round.transfer.metrics),
            Command::Gossip(args) => ("gossip", args.round.transfer.metrics),
            Command::Exchange(args) => ("exchange", args.round.transfer.metrics),
            Command::Bench(args) => ("bench", args.operation.transfer().metrics),
            Command::Map(args) => ("map", args.metrics),
            Command::Resume(args) => ("resume", args.metrics),
            Command::Calibrate(args) => ("calibrate", args.metrics),
            _ => ("", None),
        };
        Observed { name, metrics }
    }
}
