//! The command line: the list of commands, and the options that all of them share. Each command defines
//! its own arguments.

use std::net::{IpAddr, SocketAddr};

use clap::{ArgMatches, Args, Error, FromArgMatches, Id, Parser, Subcommand, ValueEnum};

use crate::commands::bench::BenchOperation;
use crate::commands::ca::CaArgs;
use crate::commands::calibrate::CalibrateArgs;
use crate::commands::check::CheckArgs;
use crate::commands::compare::CompareOperation;
#[cfg(feature = "packaging")]
use crate::commands::manual::{CompletionsArgs, ManArgs};
use crate::commands::map::MapArgs;
use crate::commands::node::{HealthArgs, NodeArgs};
use crate::commands::plan::PlanOperation;
use crate::commands::running_cluster::{DownArgs, KeepArgs, StatusArgs, UpArgs};
use crate::commands::supervise::{LeashArgs, StageArgs};
use crate::commands::timed::{TIMED_HELP, TimedOperation};
use crate::commands::tree::PrintTreeArgs;
use crate::commands::watch::WatchArgs;
use crate::render::exit::EXIT_STATUS;
use flitcast_cluster::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, ResumeArgs, ScatterArgs, TransferArgs,
};
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::text::screen::{Colors, Detail};

fn after_help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit status:\n");
    for (code, meaning) in EXIT_STATUS {
        text.push_str(&format!("  {code:>3}  {meaning}\n"));
    }
    text
}

const MORE_HELP: &str =
    "`flitcast COMMAND -h` lists the usual options of a command, --help all of them.";

const EXAMPLES: &str = "\
Examples:
  flitcast scatter --input shards --output out/scattered
  flitcast scatter -n 8 --input shards --output out/scattered --retry 2
  flitcast resume out/scattered/.flitcast-round-*.toml
  flitcast gather --tree kary:2:8 --input out/scattered --output out/gathered
  flitcast map --input shards --output results -- wc -w
  flitcast gather --tree star:8 --size 1MiB --rounds 30 --report star.html
  flitcast watch
  flitcast calibrate --tree kary:2:8 --output profile.toml
  flitcast check cluster.toml
  flitcast plan gather --tree path:6 --lengths 2,3,0,2,1
  flitcast compare gather --network mesh:8x8 --lengths uniform:0..64:7
  flitcast bench gather --tree kary:2:8 --lengths ramp:64KiB --rounds 30";

/// Scatter messages to many processes over a tree of links, and gather them back.
#[derive(Debug, Parser)]
#[command(name = "flitcast", version, max_term_width = 80, after_help = MORE_HELP, after_long_help = after_help())]
pub struct Cli {
    /// Print the whole report, and log on stderr: twice and three times, more. RUST_LOG overrides what is
    /// logged.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
    /// Print no report and no progress: errors and warnings alone, and JSON if it is requested.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub quiet: bool,
    /// Colour text [default: on a terminal, unless NO_COLOR is set].
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t = Colors::Auto,
        hide_default_value = true,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub color: Colors,
    /// Format of log lines.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = LogFormat::Text,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub log_format: LogFormat,
    #[command(subcommand)]
    pub command: Command,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object a line.
    Json,
}

impl Cli {
    pub fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (false, 0) => Detail::Short,
            (false, _) => Detail::Full,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send every PE its own message from P0.
    Scatter(Deferred<ScatterArgs>),
    /// Bring every PE's message to P0.
    Gather(Deferred<GatherArgs>),
    /// Send every PE a copy of one file or folder of P0.
    Broadcast(Deferred<BroadcastArgs>),
    /// Bring every PE's message to all others (or: allgather).
    #[command(visible_alias = "allgather")]
    Gossip(Deferred<GossipArgs>),
    /// Send a message from every PE to each other PE (or: alltoall).
    #[command(visible_alias = "alltoall")]
    Exchange(Deferred<ExchangeArgs>),
    /// Scatter shards, run a command on each, and gather its results.
    Map(Deferred<MapArgs>),
    /// Continue a run that failed: send what is missing.
    Resume(Deferred<ResumeArgs>),
    /// Check a cluster file, and show the cluster that it describes.
    Check(Deferred<CheckArgs>),
    /// Start the PEs of a cluster file, and keep them for later commands.
    Up(Deferred<UpArgs>),
    /// List the running clusters, and show the state of the PEs of one.
    Status(Deferred<StatusArgs>),
    /// Watch a running command: its tree, its traffic, its progress.
    Watch(Deferred<WatchArgs>),
    /// Stop a running cluster.
    Down(Deferred<DownArgs>),
    /// Make certificates, by which processes authenticate each other.
    Ca(Deferred<CaArgs>),
    /// Work out a round step by step, without running it.
    #[command(after_help = TIMED_HELP)]
    Plan(Deferred<Operation<PlanOperation>>),
    /// Compare the algorithms and the baselines on a tree.
    #[command(after_help = TIMED_HELP)]
    Compare(Deferred<Operation<CompareOperation>>),
    /// Predict a round in bytes and seconds: `flitcast plan` with the options of the real command.
    #[command(hide = true, bin_name = "flitcast plan")]
    TimedPlan(Deferred<Operation<TimedOperation>>),
    /// Predict all algorithms: `flitcast compare` with the options of the real command.
    #[command(hide = true, bin_name = "flitcast compare")]
    TimedCompare(Deferred<Operation<TimedOperation>>),
    /// Time the algorithms and the baselines beside their predictions.
    Bench(Deferred<Operation<BenchOperation>>),
    /// Measure a cluster, and write a profile for --profile.
    Calibrate(Deferred<CalibrateArgs>),
    /// Print a tree, or a spanning tree of a network.
    Tree(Deferred<PrintTreeArgs>),
    /// Keep a cluster: `flitcast up` runs this in the background.
    #[command(hide = true)]
    Keep(Deferred<KeepArgs>),
    #[cfg(feature = "packaging")]
    /// Print the shell script that completes command lines.
    Completions(Deferred<CompletionsArgs>),
    #[cfg(feature = "packaging")]
    /// Write the manual pages, one for each command.
    Man(Deferred<ManArgs>),
    /// Run one PE of a cluster; other commands start these, unless they join.
    Node(Deferred<NodeArgs>),
    /// Print the hash of this program, to verify a copy of it on a host.
    #[command(hide = true)]
    SelfHash,
    /// Serve this program to other hosts until standard input ends.
    #[command(hide = true)]
    SelfServe {
        /// The address to listen on; standard output names the port.
        #[arg(value_name = "ADDRESS")]
        listen: IpAddr,
    },
    /// Show that a coordinator and this host reach each other, until standard input ends.
    #[command(hide = true)]
    SelfReach {
        /// The address to listen on; standard error names the port.
        #[arg(value_name = "ADDRESS")]
        listen: IpAddr,
        /// The address of the coordinator.
        #[arg(value_name = "ADDRESS:PORT")]
        coordinator: SocketAddr,
    },
    /// Report whether a PE is alive, by the file of its --health.
    Health(Deferred<HealthArgs>),
    /// Run a command for a PE, and end it with that.
    #[command(hide = true)]
    Leash(Deferred<LeashArgs>),
    /// Become a command that ends with the process that has it run.
    #[command(hide = true)]
    Stage(Deferred<StageArgs>),
}

/// The operation of a command, with its arguments.
#[derive(Debug, Args)]
pub struct Operation<O: Subcommand> {
    #[command(subcommand)]
    pub operation: O,
}

/// The name of a command that runs rounds, and its metrics address.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    pub name: &'static str,
    pub metrics: Option<SocketAddr>,
}

impl Command {
    /// Returns the command's name and its metrics address, and the options that choose its PEs.
    pub fn observed(&mut self) -> (Observed, Option<&mut TreeArgs>) {
        let (name, (metrics, tree)) = match self {
            Command::Scatter(Deferred(args)) => ("scatter", of(&mut args.round.transfer)),
            Command::Gather(Deferred(args)) => ("gather", of(&mut args.round.transfer)),
            Command::Broadcast(Deferred(args)) => ("broadcast", of(&mut args.round.transfer)),
            Command::Gossip(Deferred(args)) => ("gossip", of(&mut args.round.transfer)),
            Command::Exchange(Deferred(args)) => ("exchange", of(&mut args.round.transfer)),
            Command::Bench(Deferred(args)) => ("bench", of(&mut args.operation.parts().1.transfer)),
            Command::Map(Deferred(args)) => ("map", (args.metrics, Some(&mut args.tree))),
            Command::Resume(Deferred(args)) => ("resume", (args.metrics, None)),
            Command::Calibrate(Deferred(args)) => {
                ("calibrate", (args.metrics, Some(&mut args.tree)))
            }
            _ => ("", (None, None)),
        };
        (Observed { name, metrics }, tree)
    }
}

fn of(transfer: &mut TransferArgs) -> (Option<SocketAddr>, Option<&mut TreeArgs>) {
    (transfer.metrics, Some(&mut transfer.tree))
}

/// The arguments of a command, defined when it is used: defining those of all commands took half of the processor time
/// of a process that only parses its command line, and each PE is a process.
#[derive(Debug)]
pub struct Deferred<A>(pub A);

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(defined::<A>)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Defines the arguments. The help text of the list of commands has priority over that of the arguments,
/// and the arguments are listed before those that all commands share.
fn defined<A: Args>(command: clap::Command) -> clap::Command {
    let about = command.get_about().cloned();
    let after_help = command.get_after_help().cloned();
    let shared = command.get_arguments().map(|it| it.get_id().clone());
    let shared: Vec<Id> = shared.collect();
    let mut command = A::augment_args(command);
    for id in shared {
        // That moves it to the end.
        command = command.mut_arg(id, |shared| shared);
    }
    if let Some(about) = about {
        command = command.about(about).long_about(None);
    }
    match after_help {
        Some(after_help) => command.after_help(after_help),
        None => command,
    }
}
