//! The entry point: parses the command line and runs the command's module below `commands`.

mod args;
mod deferred;
mod help;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry};

use crate::commands::bench::Bench;
use crate::commands::check::CheckArgs;
use crate::commands::map::Map;
use crate::commands::{
    bench, ca, calibrate, check, compare, map, node, plan, running_cluster, timed, transfer, tree,
    watch,
};
use crate::render::exit::{REFUSED, print_with, refuse, refused, report_error};
use args::{Cli, Command, LogFormat, Observed};
use deferred::Deferred;
use flitcast_cluster::job::request::{Request, RequestError};
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::observe::emit::emit;
use flitcast_cluster::observe::event::Event;
use flitcast_cluster::observe::live::publish::publish;
use flitcast_cluster::observe::metrics::Metrics;
use flitcast_cluster::retry::ResumableJob;
use flitcast_cluster::text::stderr::{self, LogLines};
use flitcast_cluster::text::stdout::unless_closed;
use help::{if_asked, with_nearest, wrapped};

/// Number of words that may contain the command: the program, the command, and options before it.
const MOST_BEFORE: usize = 5;

/// Runs the command line.
pub fn main() -> ExitCode {
    let words = words();
    let parsed = if_asked(Cli::command(), &words).try_get_matches_from(words);
    let code = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => run(cli).unwrap_or_else(report_error),
        Err(error) => not_parsed(error),
    };
    stderr::finish();
    code
}

/// Returns the command line, in which a plan or a comparison in bytes and seconds has a separate
/// command: its options are those of the real command.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_command = |word: &OsString| word == "plan" || word == "compare";
    let Some(place) = words.iter().take(MOST_BEFORE).position(is_command) else {
        return words;
    };
    let options = words[place + 1..].iter();
    let options: Vec<String> = options
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    if timed::is_timed(&options) {
        let name = words[place].to_string_lossy();
        words[place] = format!("timed-{name}").into();
    }
    words
}

/// Prints the requested help, or the error in the command line.
fn not_parsed(error: clap::Error) -> ExitCode {
    let error = with_nearest(error, &Cli::command());
    let text = error.render().to_string();
    // A closed output has no reader.
    let _ = match error.use_stderr() {
        true if names_json(std::env::args_os()) => {
            if let Err(fault) = start_logging(LogFormat::Json, 0) {
                stderr::error(fault);
            }
            return refuse(&[text.strip_prefix("error: ").unwrap_or(&text).trim_end()]);
        }
        true => write_help(io::stderr(), &text),
        false => write_help(io::stdout(), &wrapped(&text)),
    };
    ExitCode::from(error.exit_code() as u8)
}

/// Writes help or an error, on a terminal with bold headings. (The feature of clap that does so links
/// six more crates.)
fn write_help(mut out: impl io::Write + IsTerminal, text: &str) -> io::Result<()> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    if is_plain || !out.is_terminal() {
        return out.write_all(text.as_bytes());
    }
    for line in text.split_inclusive('\n') {
        let begin = ["error:", "Usage:"]
            .into_iter()
            .find(|&word| line.starts_with(word));
        let heading =
            || Some(line.trim_end()).filter(|it| it.ends_with(':') && !it.starts_with(' '));
        let bold = begin.or_else(heading).unwrap_or_default();
        match bold.is_empty() {
            true => out.write_all(line.as_bytes())?,
            false => write!(out, "\x1b[1m{bold}\x1b[0m{}", &line[bold.len()..])?,
        }
    }
    out.flush()
}

/// Returns whether a command line that cannot be parsed asks for `--log-format json`.
fn names_json(args: impl Iterator<Item = OsString>) -> bool {
    // The rest is a command of the user.
    let args: Vec<OsString> = args.take_while(|arg| arg != "--").collect();
    let is_pair = |pair: &[OsString]| pair[0] == "--log-format" && pair[1] == "json";
    args.windows(2).any(is_pair) || args.iter().any(|arg| arg == "--log-format=json")
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    start_logging(cli.log_format, cli.verbose).map_err(|fault| refused([fault]))?;
    let logs = log_args(&cli);
    let seen = cli.command.observed();
    let transferred = |request: Result<Request, Vec<RequestError>>| {
        let job = ResumableJob::new(request.map_err(refused)?);
        observed(seen, transfer::run_and_report(job, &logs))
    };
    match cli.command {
        Command::Node(Deferred(args)) => node::play(args),
        Command::SelfHash => node::self_hash(),
        Command::SelfServe { listen } => node::self_serve(listen),
        Command::Health(Deferred(args)) => node::health(&args),
        Command::Bench(Deferred(args)) => {
            let bench = Bench::new(args).map_err(refused)?;
            observed(seen, bench::time_and_report(bench, &logs))
        }
        Command::Calibrate(Deferred(args)) if args.host => {
            calibrate::measure_host_and_report(&args, &logs)
        }
        Command::Calibrate(Deferred(args)) => {
            let calibration = args.understand().map_err(refused)?;
            observed(seen, calibrate::calibrate_and_report(&calibration, &logs))
        }
        Command::Plan(Deferred(args)) => print_with(|out| plan::run(&args, out)),
        Command::Compare(Deferred(args)) => print_with(|out| compare::run(&args, out)),
        Command::TimedPlan(Deferred(args)) => print_with(|out| timed::plan(args, out)),
        Command::TimedCompare(Deferred(args)) => print_with(|out| timed::compare(args, out)),
        Command::Ca(Deferred(args)) => print_with(|out| ca::run(args, out)),
        Command::Check(Deferred(args)) => looked_at(args),
        Command::Up(Deferred(args)) => running_cluster::up(args, &logs),
        Command::Status(Deferred(args)) => running_cluster::status(&args, &logs),
        Command::Down(Deferred(args)) => running_cluster::down(&args),
        Command::Keep(Deferred(args)) => running_cluster::keep(args, &logs),
        #[cfg(feature = "packaging")]
        Command::Completions(Deferred(args)) => print_with(|out| args.run(Cli::command(), out)),
        #[cfg(feature = "packaging")]
        Command::Man(Deferred(args)) => print_with(|out| args.run(Cli::command(), out)),
        Command::Watch(Deferred(args)) => print_with(|out| watch::run(&args, out)),
        Command::Tree(Deferred(args)) => print_with(|out| tree::run(args, out)),
        Command::Scatter(Deferred(args)) => transferred(Request::scatter(args)),
        Command::Gather(Deferred(args)) => transferred(Request::gather(args)),
        Command::Broadcast(Deferred(args)) => transferred(Request::broadcast(args)),
        Command::Gossip(Deferred(args)) => transferred(Request::gossip(args)),
        Command::Exchange(Deferred(args)) => transferred(Request::exchange(args)),
        Command::Map(Deferred(args)) => {
            let map = Map::understand(args).map_err(refused)?;
            observed(seen, map::run(&map, &logs))
        }
        Command::Leash(Deferred(args)) => args.hold(),
        Command::Stage(Deferred(args)) => args.enter(),
        Command::Resume(Deferred(args)) => {
            let job = ResumableJob::resume(args).map_err(refused)?;
            observed(seen, transfer::run_and_report(job, &logs))
        }
    }
}

/// Starts to write log lines and messages.
///
/// # Errors
///
/// Returns an error if `RUST_LOG` is not a filter. The error can be written as all others are.
fn start_logging(format: LogFormat, verbose: u8) -> Result<(), String> {
    stderr::set_json(format == LogFormat::Json);
    let by_flag = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let by_user = std::env::var("RUST_LOG")
        .ok()
        .filter(|filter| !filter.is_empty());
    let text = by_user.as_deref().unwrap_or(by_flag);
    let filter = text.parse::<Targets>().map_err(|error| {
        format!("RUST_LOG {text}: {error}; write for example flitcast_node=debug")
    });
    let (filter, result) = match filter {
        Ok(filter) => (filter, Ok(())),
        Err(fault) => (Targets::new(), Err(fault)),
    };
    let filter = filter.with_target(stderr::MESSAGES, LevelFilter::TRACE);
    let lines = fmt::layer().with_writer(LogLines);
    match format {
        LogFormat::Text => {
            let lines = lines.with_ansi(std::io::stderr().is_terminal());
            registry().with(filter).with(lines).init();
        }
        LogFormat::Json => {
            registry().with(filter).with(lines.json()).init();
            std::panic::set_hook(Box::new(|panic| stderr::error(panic)));
        }
    }
    result
}

/// Returns the log options of PEs, which are those of their coordinator.
fn log_args(cli: &Cli) -> LogArgs {
    let json = cli.log_format == LogFormat::Json;
    let mut args = vec!["-v".to_owned(); cli.verbose.into()];
    if json {
        args.extend(["--log-format".to_owned(), "json".to_owned()]);
    }
    LogArgs { args }
}

/// Runs `flitcast check`.
fn looked_at(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let is_good = check::run(args, &mut out);
    let is_good = is_good.and_then(|is_good| unless_closed(out.flush()).map(|()| is_good));
    Ok(match is_good.context("cannot print the result")? {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(REFUSED),
    })
}

/// Runs a command that `flitcast watch` and metrics clients can observe meanwhile, and whose traces
/// are exported at the end.
fn observed(
    seen: Observed,
    what: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let metrics = Metrics::listen(seen.metrics).map_err(|fault| refused([fault]))?;
    let runtime = conducting()?;
    emit(Event::Begins { command: seen.name });
    let published = publish();
    let result = runtime.block_on(async {
        if let Some(metrics) = metrics {
            metrics.tell_conducted();
        }
        what.await
    });
    drop(published);
    let went_well = matches!(result, Ok(ExitCode::SUCCESS));
    emit(Event::Ends { went_well });
    result
}
