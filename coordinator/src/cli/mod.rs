//! The command line, understood and done: each command by its module below `commands`.

mod args;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use tracing_subscriber::EnvFilter;

use crate::commands::bench::{Bench, BenchArgs};
use crate::commands::check::CheckArgs;
use crate::commands::map::{Map, MapArgs};
use crate::commands::{
    bench, ca, calibrate, check, compare, kept, manual, map, node, plan, transfer, tree, watch,
};
use crate::job::request::Request;
use crate::launch::log_args::LogArgs;
use crate::launch::runtime::conducting;
use crate::observe::event::Event;
use crate::observe::live::publish::publish;
use crate::observe::metrics::Metrics;
use crate::observe::tell::tell;
use crate::render::ending::{FAILED, REFUSED, print_with, refuse, told};
use crate::retry::Undertaking;
use crate::text::printable::printable;
use args::{Cli, Command, LogFormat, Observed};

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(fault) = start_logging(&cli) {
        return refuse(&[fault]);
    }
    let logs = log_args(&cli);
    let seen = cli.command.observed();
    let result = match cli.command {
        Command::Node(args) => node::play(args),
        Command::SelfHash => node::self_hash(),
        Command::SelfServe { listen } => node::self_serve(listen),
        Command::Health(args) => node::health(&args),
        Command::Bench(args) => time(args, &logs, seen),
        Command::Calibrate(args) if args.host => calibrate::measure_host_and_report(&args, &logs),
        Command::Calibrate(args) => match args.understand() {
            Ok(calibration) => observed(seen, calibrate::calibrate_and_report(&calibration, &logs)),
            Err(faults) => Ok(refuse(&faults)),
        },
        Command::Plan(args) => print_with(|out| plan::run(args, out)),
        Command::Compare(args) => print_with(|out| compare::run(args, out)),
        Command::Ca(args) => print_with(|out| ca::run(args, out)),
        Command::Check(args) => looked_at(args),
        Command::Up(args) => kept::up(args, &logs),
        Command::Status(args) => kept::status(&args, &logs),
        Command::Down(args) => kept::down(&args),
        Command::Keep(args) => kept::keep(args, &logs),
        Command::Completions(args) => print_with(|out| {
            let printed: Result<_, Vec<String>> =
                Ok(manual::completions(&args, Cli::command(), out));
            printed
        }),
        Command::Man(args) => print_with(|out| manual::man(&args, Cli::command(), out)),
        Command::Watch(args) => print_with(|out| watch::run(&args, out)),
        Command::Tree(args) => print_with(|out| tree::run(args, out)),
        Command::Scatter(args) => {
            understood(Request::scatter(args).map(Undertaking::new), logs, seen)
        }
        Command::Gather(args) => {
            understood(Request::gather(args).map(Undertaking::new), logs, seen)
        }
        Command::Broadcast(args) => {
            understood(Request::broadcast(args).map(Undertaking::new), logs, seen)
        }
        Command::Gossip(args) => {
            understood(Request::gossip(args).map(Undertaking::new), logs, seen)
        }
        Command::Exchange(args) => {
            understood(Request::exchange(args).map(Undertaking::new), logs, seen)
        }
        Command::Map(args) => mapped(args, &logs, seen),
        Command::Leash(args) => args.hold(),
        Command::Stage(args) => args.enter(),
        Command::Resume(args) => understood(Undertaking::resume(args), logs, seen),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {}", printable(told(&error)));
        ExitCode::from(FAILED)
    })
}

fn start_logging(cli: &Cli) -> Result<(), String> {
    let by_flag = ["warn", "info", "debug", "trace"][usize::from(cli.verbose.min(3))];
    let by_user = std::env::var("RUST_LOG")
        .ok()
        .filter(|filter| !filter.is_empty());
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .parse(by_user.as_deref().unwrap_or(by_flag))
        .map_err(|error| {
            format!(
                "RUST_LOG {}: {error}",
                by_user.as_deref().unwrap_or(by_flag)
            )
        })?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter);
    match cli.log_format {
        LogFormat::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}

/// The PEs log as their coordinator does.
fn log_args(cli: &Cli) -> LogArgs {
    let json = cli.log_format == LogFormat::Json;
    let mut args = vec!["-v".to_owned(); cli.verbose.into()];
    if json {
        args.extend(["--log-format".to_owned(), "json".to_owned()]);
    }
    LogArgs { args, json }
}

/// `flitcast check`.
fn looked_at(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let is_good = check::run(args, &mut out);
    let is_good = is_good.and_then(|is_good| out.flush().map(|()| is_good));
    Ok(match is_good.context("cannot print the result")? {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(REFUSED),
    })
}

fn understood<E: std::fmt::Display>(
    undertaking: Result<Undertaking, Vec<E>>,
    logs: LogArgs,
    seen: Observed,
) -> anyhow::Result<ExitCode> {
    match undertaking {
        Ok(undertaking) => observed(seen, transfer::run_and_report(undertaking, &logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}

/// `flitcast map`.
fn mapped(args: MapArgs, logs: &LogArgs, seen: Observed) -> anyhow::Result<ExitCode> {
    match Map::understand(args) {
        Ok(map) => observed(seen, map::run(&map, logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}

/// Conducts, seen by `flitcast watch` and by who scrapes metrics meanwhile, and by who reads
/// its traces afterwards.
fn observed(
    seen: Observed,
    what: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let metrics = match Metrics::listen(seen.metrics) {
        Ok(metrics) => metrics,
        Err(fault) => return Ok(refuse(&[fault])),
    };
    let runtime = conducting()?;
    tell(Event::Begins { command: seen.name });
    let published = publish();
    let result = runtime.block_on(async {
        if let Some(metrics) = metrics {
            metrics.tell_conducted();
        }
        what.await
    });
    drop(published);
    let went_well = matches!(result, Ok(ExitCode::SUCCESS));
    tell(Event::Ends { went_well });
    result
}

/// `flitcast bench`.
fn time(args: BenchArgs, logs: &LogArgs, seen: Observed) -> anyhow::Result<ExitCode> {
    match Bench::new(args) {
        Ok(bench) => observed(seen, bench::time_and_report(bench, logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}
