//! The entry point: parses the command line and runs the command's module below `commands`.

mod args;
mod help;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry};

use crate::commands::bench::Bench;
use crate::commands::map::Map;
use crate::commands::transfer::{printable, refuse_standard, replace_standard};
use crate::commands::{
    bench, ca, calibrate, check, compare, map, node, plan, running_cluster, timed, transfer, tree,
    watch,
};
use crate::render::exit::{REFUSED, print_with, refuse, refused, report_error};
use args::{Cli, Command, Deferred, LogFormat, Observed};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::launch::reach::show;
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::observe::emit::emit;
use flitcast_cluster::observe::event::Event;
use flitcast_cluster::observe::live::publish::publish;
use flitcast_cluster::observe::metrics::Metrics;
use flitcast_cluster::options::args::RoundArgs;
use flitcast_cluster::retry::ResumableJob;
use flitcast_cluster::site::slurm::{choose_job, environment};
use flitcast_cluster::system::spool;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::screen::{self, Colors, Detail, Style};
use flitcast_cluster::text::stderr::{self, LogLines};
use help::{with_help_if_requested, with_nearest, wrapped};

/// Number of words that may contain the command: the program, the command, and options before it.
const MOST_BEFORE: usize = 5;

/// Runs the command line.
pub fn main() -> ExitCode {
    let words = words();
    let parsed = with_help_if_requested(Cli::command(), &words).try_get_matches_from(words);
    let code = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => {
            let code = run(cli).unwrap_or_else(report_error);
            end_spool(code);
            code
        }
        Err(error) => not_parsed(error),
    };
    stderr::finish();
    code
}

/// Removes the files in place of standard input and output, unless a run that failed can be continued.
fn end_spool(code: ExitCode) {
    let is_settled = code == ExitCode::SUCCESS || code == ExitCode::from(REFUSED);
    match is_settled {
        true => spool::clear(),
        false => {
            if let Some(folder) = spool::keep() {
                let folder = folder.display();
                stderr::note(format_args!(
                    "  kept for a resume: {folder}; remove it when it is not needed"
                ));
            }
        }
    }
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
    let options = options.map(|it| it.to_string_lossy().into_owned());
    let options: Vec<String> = options.collect();
    if timed::is_timed(&options) {
        let name = words[place].to_string_lossy();
        words[place] = format!("timed-{name}").into();
    }
    words
}

/// Prints the requested help, or the error in the command line.
fn not_parsed(error: clap::Error) -> ExitCode {
    let colors = match given_value("--color").as_deref() {
        Some("never") => Colors::Never,
        Some("always") => Colors::Always,
        _ => Colors::Auto,
    };
    screen::choose(Detail::default(), colors);
    let error = with_nearest(error, &Cli::command());
    let text = error.render().to_string();
    // A closed output has no reader.
    let _ = match error.use_stderr() {
        true if given_value("--log-format").is_some_and(|format| format == "json") => {
            if let Err(fault) = start_logging(LogFormat::Json, 0) {
                stderr::error(fault);
            }
            return refuse(&[text.strip_prefix("error: ").unwrap_or(&text).trim_end()]);
        }
        true => io::stderr().write_all(styled(&text, screen::on_stderr).as_bytes()),
        false => io::stdout()
            .write_all(styled(&wrapped(&text, screen::columns()), screen::on_stdout).as_bytes()),
    };
    ExitCode::from(error.exit_code() as u8)
}

/// Emphasises the headings in a help text or an error. (The feature of clap that does so links six more
/// crates.)
fn styled(text: &str, style: fn(Style, &str) -> String) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let is_heading = line.trim_end().ends_with(':') && !line.starts_with(' ');
        let (head, kind) = match line {
            line if line.starts_with("error:") => ("error:", Style::Red),
            line if line.starts_with("Usage:") => ("Usage:", Style::Bold),
            line if is_heading => (line.trim_end(), Style::Bold),
            _ => ("", Style::Bold),
        };
        if !head.is_empty() {
            out.push_str(&style(kind, head));
        }
        out.push_str(&line[head.len()..]);
    }
    out
}

/// Returns the value of an option in a command line that cannot be parsed.
fn given_value(option: &str) -> Option<String> {
    // The rest is a command of the user.
    let words = std::env::args_os().take_while(|word| word != "--");
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let mut all = words.iter();
    let beside = all.find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let mut pairs = words.windows(2);
    let after = || pairs.find(|pair| pair[0] == option).map(|pair| &*pair[1]);
    beside.or_else(after).map(str::to_owned)
}

/// Puts a file in the place of standard input.
fn read_standard(round: &mut RoundArgs) -> anyhow::Result<()> {
    let (input, tree) = (&mut round.input, &round.transfer.tree);
    replace_standard("--input", input, tree, spool::input)
}

/// Refuses standard output where the output has to be a folder.
fn refuse_standard_output(output: Option<&Path>) -> anyhow::Result<()> {
    let why = "only a gather writes to standard output; give a folder";
    refuse_standard("--output", output, why)
}

fn run(mut cli: Cli) -> anyhow::Result<ExitCode> {
    screen::choose(cli.detail(), cli.color);
    start_logging(cli.log_format, cli.verbose).map_err(|fault| refused([fault]))?;
    let logs = log_args(&cli);
    let (seen, tree) = cli.command.observed();
    if let Some(tree) = tree {
        choose_job(tree, environment);
    }
    let transferred = |request: Result<Request, Faults>| {
        let job = ResumableJob::new(request.map_err(refused)?);
        observed(seen, transfer::run_and_report(job, &logs))
    };
    match cli.command {
        Command::Node(Deferred(args)) => node::play(args),
        Command::SelfHash => node::self_hash(),
        Command::SelfServe { listen } => node::self_serve(listen),
        Command::SelfReach {
            listen,
            coordinator,
        } => show(listen, coordinator).map(|()| ExitCode::SUCCESS),
        Command::Health(Deferred(args)) => node::health(&args),
        Command::Bench(Deferred(args)) => {
            let bench = Bench::new(args.operation).map_err(refused)?;
            observed(seen, bench::time_and_report(bench, &logs))
        }
        Command::Calibrate(Deferred(args)) if args.host => {
            calibrate::measure_host_and_report(&args, &logs)
        }
        Command::Calibrate(Deferred(args)) => {
            let calibration = args.into_calibration().map_err(refused)?;
            observed(seen, calibrate::calibrate_and_report(&calibration, &logs))
        }
        Command::Plan(Deferred(args)) => print_with(|out| plan::run(&args.operation, out)),
        Command::Compare(Deferred(args)) => print_with(|out| compare::run(&args.operation, out)),
        Command::TimedPlan(Deferred(args)) => print_with(|out| timed::plan(args.operation, out)),
        Command::TimedCompare(Deferred(args)) => {
            print_with(|out| timed::compare(args.operation, out))
        }
        Command::Ca(Deferred(args)) => print_with(|out| ca::run(args, out)),
        Command::Check(Deferred(args)) => check::run(args),
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
        Command::Scatter(Deferred(mut args)) => {
            refuse_standard_output(args.round.output.as_deref())?;
            if !args.division.is_given() {
                let why = "it is one file; add --lines, --blocks SIZE or --split N";
                refuse_standard("--input", args.round.input.as_deref(), why)?;
            }
            read_standard(&mut args.round)?;
            transferred(Request::scatter(args))
        }
        Command::Gather(Deferred(mut args)) => {
            let RoundArgs {
                transfer, output, ..
            } = &mut args.round;
            replace_standard("--output", output, &transfer.tree, spool::output_folder)?;
            transferred(Request::gather(args).and_then(printable))
        }
        Command::Broadcast(Deferred(mut args)) => {
            refuse_standard_output(args.round.output.as_deref())?;
            read_standard(&mut args.round)?;
            transferred(Request::broadcast(args))
        }
        Command::Gossip(Deferred(args)) => {
            refuse_standard_output(args.round.output.as_deref())?;
            transferred(Request::gossip(args))
        }
        Command::Exchange(Deferred(args)) => {
            refuse_standard_output(args.round.output.as_deref())?;
            transferred(Request::exchange(args))
        }
        Command::Map(Deferred(args)) => {
            refuse_standard_output(Some(&args.output))?;
            if args.tree.cluster_file().is_none() && args.input.is_file() {
                let input = args.input.display();
                let why = "it is a file; give a folder of shards";
                return Err(refused([format!("--input {input}: {why}")]));
            }
            let map = Map::from_args(args).map_err(refused)?;
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
    let by_user = std::env::var("RUST_LOG").ok();
    let by_user = by_user.filter(|filter| !filter.is_empty());
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
            let lines = lines.with_ansi(screen::is_stderr_colored());
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
fn log_args(cli: &Cli) -> Vec<String> {
    let json = cli.log_format == LogFormat::Json;
    let mut args = vec!["-v".to_owned(); cli.verbose.into()];
    if json {
        args.extend(["--log-format".to_owned(), "json".to_owned()]);
    }
    args
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
            metrics.serve_coordinator_metrics();
        }
        what.await
    });
    drop(published);
    let succeeded = matches!(result, Ok(ExitCode::SUCCESS));
    emit(Event::Ends { succeeded });
    result
}
