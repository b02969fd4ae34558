//! The command line of `flitcast map`, and its parts: the scatter, the command, the gather, and the
//! working folder between them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use flitcast_node::payload::{self, Others};
use flitcast_node::task::{KEPT_WORK_PREFIX, WORK_PREFIX, clear_dead};
use flitcast_plan::Algorithm;
use flitcast_proto::wire::MAX_JOBS;
use flitcast_proto::wire::control::{Payload, Run};

use super::joblog::{self, JobLog};
use super::order::{Halt, has_braces, parse_halt, with_name};
use super::shards::Shards;
use super::task::ShardTask;
use flitcast_cluster::job::request::{Request, Site, output_fault, relative};
use flitcast_cluster::options::args::{GatherArgs, RoundArgs, ScatterArgs, TransferArgs};
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::transfer::{GuardArgs, ReplacingArgs};
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::guard::{Guard, PLAIN_COMMANDS, random_id};
use flitcast_cluster::site::placement::Placement;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::units::parse_time;

/// Default of `--work` on other hosts: on each Linux, all users may create folders there, and it is on a disk.
const WORK_ON_HOSTS: &str = "/var/tmp";

const EXAMPLES: &str = "\
Examples:
  flitcast map --input shards --output results -- wc -w
  flitcast map -n 4 --jobs 2 --input texts --output out -- gzip -k {}
  flitcast map --cluster cluster.toml --work /scratch --retry 1 \\
      --input /data/shards --output /data/results -- /opt/train --epochs 3";

/// Arguments of `flitcast map`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MapArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Folder of the shards: files or folders of any name, for any PE; or p3 is P3's, if all are named so.
    #[arg(long, value_name = "DIR")]
    pub input: PathBuf,
    /// Deal all files below the input over P1..Pn, balanced by size.
    #[arg(long)]
    pub spread: bool,
    /// Folder for the results: the standard output of the command on the shard NAME becomes NAME/stdout, and
    /// each file that it writes in its current directory NAME/FILE.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Accept files in the output: those that arrive again are replaced.
    #[arg(long)]
    force: bool,
    /// Number of commands that each PE runs at once: on shards of any name.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    pub jobs: usize,
    /// Log each command that has ended: a line with the columns of GNU parallel, and the name of the shard
    /// as last column.
    #[arg(long, value_name = "FILE")]
    pub joblog: Option<PathBuf>,
    /// Run only what is missing: shards that the --joblog does not report as done, or that have no result
    /// in the output. Any PE may run each.
    #[arg(long, requires = "joblog", conflicts_with = "spread")]
    resume: bool,
    /// Folder for shards and results meanwhile, in a hidden folder that is removed at the end: an
    /// absolute path on each PE's host [default: beside the output if all PEs are on this host, or else
    /// /var/tmp].
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Keep that hidden folder.
    #[arg(long)]
    pub keep_work: bool,
    /// Payload of a flit, the unit that a relay holds [default: 64KiB, or another size that is
    /// predicted to be at least a fifth quicker].
    #[arg(long, value_name = "SIZE")]
    flit_size: Option<String>,
    /// Emulate links, as in `flitcast scatter --link`.
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Use the measurements of this profile of `flitcast calibrate`, made on this tree.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    pub faults: FaultArgs,
    #[command(flatten)]
    guard: GuardArgs,
    /// Serve metrics, as `flitcast scatter --metrics` does.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// Format of the result on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    /// The command that runs for each shard: in the shard, if that is a folder, or in an empty folder,
    /// with the shard as standard input. {} in a word, except with --spread, and FLITCAST_SHARD are its name,
    /// FLITCAST_PE is the PE's number, FLITCAST_PES the number of PEs.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Options for faults of commands and PEs.
#[derive(Clone, Debug, Args)]
pub struct FaultArgs {
    /// Run a failed command again, N times at most (up to 16): in a new process if its PE died; and
    /// continue the scatter and the gather without a PE that fails in them.
    #[arg(
        long,
        visible_alias = "retries",
        value_name = "N",
        help_heading = "Faults"
    )]
    retry: Option<String>,
    /// Stop after failures: never, soon,fail=N (no command begins after N have failed for good) or
    /// now,fail=N (which also kills the running ones).
    #[arg(long, value_name = "WHEN", value_parser = parse_halt, default_value = "never", help_heading = "Faults")]
    pub halt: Halt,
    /// Run a shard at an idle PE as well if none waits, and its command takes twice as long as others
    /// and at least this long; the first result counts. `never` runs none twice.
    #[arg(long, value_name = "TIME", value_parser = speculate, default_value = "10s", help_heading = "Faults")]
    pub speculate: Duration,
    /// Time limits, as in `flitcast scatter --timeouts`.
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    timeouts: Option<String>,
    /// Kill a command that runs longer than this, with all processes that it started, and count it
    /// as failed (at least 1ms) [default: no limit].
    #[arg(long, value_name = "DURATION", value_parser = time_limit, help_heading = "Faults")]
    time_limit: Option<Duration>,
}

#[derive(Clone, Debug)]
pub struct Map {
    pub args: MapArgs,
    pub shards: Shards,
    pub scatter: Request,
    pub work: PathBuf,
    /// A hidden folder in the output, from which results are moved to their places.
    pub gathered: PathBuf,
}

impl Map {
    pub fn from_args(mut args: MapArgs) -> Result<Map, Faults> {
        let mut faults = Faults::default();
        // Errors in the tree itself are reported by the scatter.
        let offered = args.tree.offered(SpanningArg::Bfs).unwrap_or_default();
        let placement = offered.first().map(Topology::places);
        let is_spread = placement.as_ref().is_some_and(Placement::is_spread);
        let elsewhere = placement.as_ref().is_some_and(Placement::is_elsewhere);
        let names = placement.as_ref().map(Placement::names).unwrap_or_default();
        let shards = shards(&mut args, &names, elsewhere).unwrap_or_else(|all| {
            faults.0.extend(all);
            Shards::dealt(&[])
        });
        match &args.work {
            Some(work) if work.is_relative() => {
                let work = work.display();
                faults.add(anyhow!("--work {work}: give the path from the root"));
            }
            None if placement.is_some_and(|places| places.is_confined()) => faults.add(anyhow!(
                "the PEs join: give --work DIR, a folder below those that each of them lends, where shards \
                 and results may lie meanwhile"
            )),
            _ => {}
        }
        let gathered = random_id().map(|id| args.output.join(format!("{WORK_PREFIX}{id:016x}")));
        let fault = match elsewhere {
            true => relative("--output", Some(&args.output)),
            false => {
                let _ = gathered.as_ref().map(|gathered| clear_dead(gathered));
                let (output, input) = (&args.output, Some(&*args.input));
                output_fault(output, (false, Others::all(0)), input, args.replaces())
            }
        };
        faults.0.extend(fault);
        if !elsewhere
            && !faults.0.is_empty()
            && let Err(fault) = payload::list(&args.input)
        {
            // The scatter, which reports it otherwise, is not checked.
            faults.0.insert(0, anyhow!("--input: {fault}"));
        }
        let work = working_folder(&args, is_spread)
            .map_err(|error| anyhow!("cannot name a working folder: {error}"));
        let work = faults.take(work);
        // Creates the folder if there is no error.
        let scatter = work.as_ref().filter(|_| faults.0.is_empty());
        let scatter = scatter.and_then(|work| {
            faults.take(Request::scatter(ScatterArgs {
                round: args.round(args.input.clone(), work.join("in"), false),
                algorithm: Some(Algorithm::FARTHEST_FIRST.name().to_owned()),
                spread: args.spread || matches!(shards, Shards::Named { .. }),
                shards: shards.names(),
                ..ScatterArgs::default()
            }))
        });
        if let Some(Site {
            guard, placement, ..
        }) = scatter.as_ref().map(|scatter| &scatter.site)
            && *guard == Guard::Insecure
            && !placement.is_on_loopback()
        {
            faults.add(anyhow!(PLAIN_COMMANDS));
        }
        match (scatter, work, gathered) {
            (Some(mut scatter), Some(work), Ok(gathered)) if faults.0.is_empty() => {
                let is_direct = shards.are_of_pes();
                scatter.messages.later_output = later_output(&args).filter(|_| is_direct);
                number_outputs(&mut scatter);
                scatter.again = true;
                scatter.commands = true;
                Ok(Map {
                    scatter,
                    shards,
                    args,
                    work,
                    gathered,
                })
            }
            _ => Err(faults),
        }
    }

    /// Returns the gather of the results, which exist now: to the output, or to the hidden folder in it.
    pub fn gather(&self, is_direct: bool) -> Result<Request, Faults> {
        let args = &self.args;
        let output = match is_direct {
            true => &args.output,
            false => &self.gathered,
        };
        let round = args.round(self.work.join("out"), output.clone(), args.force);
        let mut gather = Request::gather(GatherArgs {
            round,
            ..GatherArgs::default()
        })?;
        number_outputs(&mut gather);
        Ok(Request {
            again: true,
            commands: true,
            ..gather
        })
    }

    /// Returns whether `{}` in a word is replaced by the name of the shard.
    fn has_braces(&self) -> bool {
        // The files that are spread are not one entry with a name.
        !self.args.spread && self.args.command.iter().any(has_braces)
    }

    pub fn words_for(&self, task: &ShardTask) -> Vec<OsString> {
        let words = self.args.command.iter();
        match self.has_braces() {
            true => words.map(|word| with_name(word, &task.name)).collect(),
            false => words.cloned().collect(),
        }
    }

    /// Returns the message to the PE that runs the command on a shard.
    pub fn run_on(&self, task: &ShardTask) -> Run {
        let limit = self.args.faults.time_limit;
        Run {
            words: self.words_for(task),
            work: self.work.clone(),
            pes: self.scatter.site.tree.len() as u32,
            time_limit_ns: limit.map_or(0, |limit| limit.as_nanos() as u64),
            shard: task.name.clone(),
            home: task.is_named.then_some(task.home),
            linked: task.is_named || self.has_braces(),
        }
    }

    /// Returns whether all PEs share the working folder, so that each can run the command on any shard.
    pub fn is_shared(&self) -> bool {
        !self.shards.are_of_pes() && !self.scatter.site.placement.is_spread()
    }

    /// Opens the log of commands, if one is to be written.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn joblog(&self) -> anyhow::Result<Option<JobLog>> {
        let Some(path) = &self.args.joblog else {
            return Ok(None);
        };
        let opened = JobLog::open(path, self.args.resume);
        Ok(Some(opened.with_context(|| {
            format!("--joblog {}: it cannot be written", path.display())
        })?))
    }
}

/// Has the messages of PEs arrive at entries with their numbers, whatever the PEs' names: commands run in
/// such folders, and results are called like their shards.
fn number_outputs(request: &mut Request) {
    if let Payload::Files(files) = &mut request.messages.payload {
        files.output_names.clear();
    }
}

/// Returns the kind of shards, and sets the number of PEs where no option gives it. The input of PEs on
/// other hosts is listed later.
fn shards(
    args: &mut MapArgs,
    names: &[String],
    is_elsewhere: bool,
) -> Result<Shards, Vec<anyhow::Error>> {
    if args.spread || is_elsewhere {
        return Ok(Shards::dealt(names));
    }
    let has_result = |shard: &OsStr| args.output.join(shard).symlink_metadata().is_ok();
    let done = args.done(has_result).map_err(|fault| vec![fault])?;
    Shards::of(&args.input, &mut args.tree, done.as_ref())
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok();
    let jobs = jobs.filter(|jobs| (1..=MAX_JOBS).contains(jobs));
    jobs.ok_or_else(|| format!("it is not an integer from 1 to {MAX_JOBS}"))
}

/// Returns the path that must not exist when the results are gathered, so that this is checked
/// before shards are sent.
fn later_output(args: &MapArgs) -> Option<PathBuf> {
    let output = std::path::absolute(&args.output).ok();
    output.filter(|_| !args.force)
}

fn speculate(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Ok(Duration::MAX),
        text => Ok(Duration::from_nanos(parse_time(text)?)),
    }
}

fn time_limit(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(1);
    let limit = parse_time(text)?;
    match Duration::from_nanos(limit) {
        limit if limit >= SHORTEST => Ok(limit),
        _ => Err(format!("`{text}` is less than {SHORTEST:?}")),
    }
}

fn working_folder(args: &MapArgs, is_spread: bool) -> io::Result<PathBuf> {
    let above = match &args.work {
        Some(work) => work.clone(),
        None if is_spread => PathBuf::from(WORK_ON_HOSTS),
        None => {
            let output = std::path::absolute(&args.output)?;
            output.parent().unwrap_or(&output).to_owned()
        }
    };
    let prefix = match args.keep_work {
        true => KEPT_WORK_PREFIX,
        false => WORK_PREFIX,
    };
    Ok(above.join(format!("{prefix}{:016x}", random_id()?)))
}

impl MapArgs {
    /// Returns the shards that are done according to the log and have results, if `--resume` is given.
    pub fn done(
        &self,
        has_result: impl Fn(&OsStr) -> bool,
    ) -> anyhow::Result<Option<BTreeSet<OsString>>> {
        let Some(log) = self.joblog.as_ref().filter(|_| self.resume) else {
            return Ok(None);
        };
        let done =
            joblog::done_in(log).map_err(|error| anyhow!("--joblog {}: {error}", log.display()))?;
        let done = done.into_iter().filter(|shard| has_result(shard));
        Ok(Some(done.collect()))
    }

    /// Returns whether results in the output are replaced.
    pub fn replaces(&self) -> bool {
        self.force || self.resume
    }

    fn round(&self, input: PathBuf, output: PathBuf, force: bool) -> RoundArgs {
        let args = self.clone();
        RoundArgs {
            transfer: TransferArgs {
                tree: args.tree,
                flit_size: args.flit_size,
                link: args.link,
                profile: args.profile,
                timeouts: args.faults.timeouts,
                metrics: args.metrics,
                guard: args.guard,
                ..TransferArgs::default()
            },
            input: Some(input),
            output: Some(output),
            replacing: ReplacingArgs {
                force,
                ..ReplacingArgs::default()
            },
            retry: args.faults.retry,
            rounds: 1,
            format: args.format,
            ..RoundArgs::default()
        }
    }
}
