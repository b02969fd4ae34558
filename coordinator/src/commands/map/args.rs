//! `flitcast map` as it is typed, and what follows from it: the scatter, the command, the
//! gather, and where what is between them lies.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use flitcast_node::task::WORK_PREFIX;
use thiserror::Error;

use crate::job::request::{Request, RequestError, Site, output_fault};
use crate::options::args::{
    GatherArgs, OrderArg, RoundArgs, ScatterAlgorithm, ScatterArgs, TransferArgs,
};
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::guard::GuardArgs;
use crate::options::pictures::PictureArgs;
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::guard::{Guard, GuardFault, random_id};
use crate::site::topology::Topology;

const EXAMPLES: &str = "\
Examples:
  flitcast map --tree kary:2:8 --input shards --output results -- wc -w
  flitcast map --tree star:5 --input texts --spread --output results -- sh -c 'cat * | wc -w'
  flitcast map --cluster cluster.toml --work /scratch --retry 1 --input /data/shards \\
      --output /data/results -- /opt/model/train --epochs 3";

/// Arguments of `flitcast map`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MapArgs {
    /// Who is connected to whom.
    #[command(flatten)]
    tree: TreeArgs,
    /// Where the shards lie: entry p3, a file or a folder, is P3's.
    #[arg(long, value_name = "DIR")]
    input: PathBuf,
    /// Deal all files below the input over P1..Pn, balanced by size.
    #[arg(long)]
    spread: bool,
    /// Where the results arrive: what P3 prints becomes p3/stdout, and each file that it
    /// writes in its current directory becomes p3/FILE.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Let the output hold files already, and replace those that arrive anew.
    #[arg(long)]
    force: bool,
    /// Where shards and results lie meanwhile, in a hidden folder that is removed at the
    /// end: an absolute path on each PE's host [default: beside the output, where all PEs
    /// are on this host].
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Leave that folder there.
    #[arg(long)]
    keep_work: bool,
    /// Payload of a flit, the unit that a relay holds [default: 64KiB, or what is predicted to
    /// be quicker by a fifth or more].
    #[arg(long, value_name = "SIZE")]
    flit_size: Option<String>,
    /// What the links are to be like, as in `flitcast scatter --link`.
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// What `flitcast calibrate` has measured on this tree.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Run a command that fails again, N times at most (up to 16), at a PE that died in a new
    /// process; and go on without a PE that fails in the scatter or the gather, as these do.
    #[arg(long, value_name = "N", help_heading = "Faults")]
    retry: Option<String>,
    /// How long to wait for what, as in `flitcast scatter --timeouts`.
    #[arg(long, value_name = "TIMES", help_heading = "Faults")]
    timeouts: Option<String>,
    /// How connections are guarded.
    #[command(flatten)]
    guard: GuardArgs,
    /// Tell what is counted, as `flitcast scatter --metrics` does.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// How the result is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    format: Format,
    /// What each PE that has a shard runs: in its shard, where that is a folder, or in an empty
    /// folder, with its shard as standard input. FLITCAST_PE is the PE's number, FLITCAST_PES
    /// how many there are.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Something that is wrong with the command line.
#[derive(Debug, Error)]
pub enum MapFault {
    /// As of a scatter or a gather.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Nobody knows where the PEs may write.
    #[error(
        "the PEs are on hosts of their own: give --work DIR, a folder on each of them where shards and results may lie meanwhile"
    )]
    NoWork,
    /// A path that is not the same everywhere.
    #[error("--work {}: give the path from the root", .0.display())]
    RelativeWork(PathBuf),
    /// The system gives no name for a folder, or no current directory.
    #[error("cannot name a working folder: {0}")]
    Unnamed(#[from] io::Error),
}

/// A command line that has been understood.
#[derive(Debug)]
pub struct Map {
    args: MapArgs,
    /// The scatter of the shards.
    pub scatter: Request,
    /// Where shards and results lie meanwhile.
    pub work: PathBuf,
}

impl Map {
    /// Understands `flitcast map`.
    pub fn understand(args: MapArgs) -> Result<Map, Vec<MapFault>> {
        let mut faults = Vec::new();
        // What is wrong with the tree itself, the scatter will say.
        let offered = args.tree.offered(SpanningArg::Bfs).unwrap_or_default();
        let placement = offered.first().map(Topology::places);
        let is_spread = placement.as_ref().is_some_and(|places| places.is_spread());
        let elsewhere = placement
            .as_ref()
            .is_some_and(|places| places.is_elsewhere());
        match &args.work {
            Some(work) if work.is_relative() => {
                faults.push(MapFault::RelativeWork(work.clone()));
            }
            None if is_spread => faults.push(MapFault::NoWork),
            _ => {}
        }
        match elsewhere {
            true if args.output.is_relative() => {
                let (option, path) = ("--output", args.output.clone());
                faults.push(RequestError::Relative { option, path }.into());
            }
            true => {}
            false => {
                let fault = output_fault(&args.output, Some(&args.input), args.force);
                faults.extend(fault.map(MapFault::from));
            }
        }
        let work = working_folder(&args).map_err(|error| faults.push(error.into()));
        let scatter = work.as_ref().ok().and_then(|work| {
            let spread = args.spread;
            let round = args.round(args.input.clone(), work.join("in"), false);
            let scatter = ScatterArgs {
                from: None,
                round,
                order: OrderArg::Fdf,
                algorithm: ScatterAlgorithm::Fdf,
                spread,
            };
            // It makes the folder, if nothing is wrong.
            let scatter = faults.is_empty().then_some(scatter)?;
            let scatter = Request::scatter(scatter);
            let understood =
                scatter.map_err(|found| faults.extend(found.into_iter().map(MapFault::from)));
            understood.ok()
        });
        if let Some(Site {
            guard, placement, ..
        }) = scatter.as_ref().map(|scatter| &scatter.site)
            && *guard == Guard::Insecure
            && !placement.is_on_loopback()
        {
            faults.push(RequestError::from(GuardFault::PlainCommands).into());
        }
        match (scatter, work) {
            (Some(mut scatter), Ok(work)) if faults.is_empty() => {
                scatter.messages.later_output = later_output(&args);
                scatter.again = true;
                scatter.commands = true;
                Ok(Map {
                    scatter,
                    args,
                    work,
                })
            }
            _ => Err(faults),
        }
    }

    /// The gather of the results, which are there now.
    pub fn gather(&self) -> Result<Request, Vec<RequestError>> {
        let args = &self.args;
        let round = args.round(self.work.join("out"), args.output.clone(), args.force);
        let gather = Request::gather(GatherArgs {
            to: None,
            round,
            algorithm: None,
            sync: None,
            pacing: None,
        })?;
        Ok(Request {
            again: true,
            commands: true,
            ..gather
        })
    }

    /// What is run.
    pub fn command(&self) -> &[OsString] {
        &self.args.command
    }

    /// Where the results arrive.
    pub fn output(&self) -> &Path {
        &self.args.output
    }

    /// Whether the working folder is left where it is.
    pub fn keeps_work(&self) -> bool {
        self.args.keep_work
    }

    /// How the result is printed.
    pub fn format(&self) -> Format {
        self.args.format
    }

    /// Whether the working folder is on this host, and nowhere else.
    pub fn is_local(&self) -> bool {
        !self.scatter.site.placement.is_spread()
    }
}

/// Where nothing may stand when the results are gathered: that is found before the shards
/// are sent.
fn later_output(args: &MapArgs) -> Option<PathBuf> {
    let output = std::path::absolute(&args.output).ok();
    output.filter(|_| !args.force)
}

/// A folder that is not there yet.
fn working_folder(args: &MapArgs) -> io::Result<PathBuf> {
    let beside = || {
        let output = std::path::absolute(&args.output)?;
        Ok(output.parent().unwrap_or(&output).to_owned())
    };
    let above = args.work.clone().map_or_else(beside, io::Result::Ok)?;
    Ok(above.join(format!("{WORK_PREFIX}{:016x}", random_id()?)))
}

impl MapArgs {
    fn round(&self, input: PathBuf, output: PathBuf, force: bool) -> RoundArgs {
        let MapArgs {
            tree,
            flit_size,
            link,
            profile,
            timeouts,
            guard,
            metrics,
            retry,
            format,
            ..
        } = self.clone();
        RoundArgs {
            transfer: TransferArgs {
                tree,
                size: None,
                lengths: None,
                flit_size,
                link,
                profile,
                timeouts,
                metrics,
                guard,
            },
            packets: None,
            cover: false,
            input: Some(input),
            output: Some(output),
            force,
            retry,
            rounds: 1,
            format,
            pictures: PictureArgs::default(),
        }
    }
}
