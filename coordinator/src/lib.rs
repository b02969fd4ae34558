//! The `flitcast` command: `src/bin/flitcast.rs` is only its door, and tests come in by
//! [`parsers`].
//!
//! Exit status: 0 when all went well, 1 when a run failed, 2 when the command
//! line or its input is wrong (nothing was launched or written then), 130 after
//! Ctrl-C.

mod args;
mod authority;
mod baseline;
mod bench;
mod ca;
mod calibrate;
mod candidates;
mod check;
mod choose;
mod cluster;
mod cluster_file;
mod compare;
mod conduct;
mod console;
mod edge_file;
mod guard;
mod host_costs;
mod kept;
mod leash;
mod link_spec;
mod live;
mod manual;
mod map;
mod metrics;
mod model;
mod node;
mod otel;
mod outcome;
mod page;
pub mod parsers;
mod pictures;
mod placement;
mod plan;
mod printable;
mod profile;
mod reach;
mod report;
mod request;
mod retry;
mod run;
mod runtime_dir;
mod slurm;
mod ssh;
mod starter;
mod timeouts;
mod toml_file;
mod topology;
mod tree;
mod tree_file;
mod units;
mod view;
mod watch;
mod workload;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, LogFormat, OutputFormat, Seen};
use bench::{Bench, BenchArgs, BenchFormat};
use calibrate::{CalibrateArgs, Calibration};
use check::CheckArgs;
use cluster::LogArgs;
use live::publish::publish;
use map::{Map, MapArgs};
use metrics::Metrics;
use outcome::Failure;
use printable::printable;
use request::Request;
use retry::{Story, Undertaking};
use run::{Ended, Interrupts};

/// A run failed.
const FAILED: u8 = 1;
/// The command line or its input is wrong.
const REFUSED: u8 = 2;
/// Ctrl-C, as shells tell it.
const INTERRUPTED: u8 = 130;

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(fault) = start_logging(&cli) {
        return refuse(&[fault]);
    }
    let logs = log_args(&cli);
    let seen = cli.command.seen();
    let result = match cli.command {
        Command::Node(args) => node::play(args),
        Command::SelfHash => node::self_hash(),
        Command::SelfServe { listen } => node::self_serve(listen),
        Command::Health(args) => node::health(&args),
        Command::Bench(args) => time(args, &logs, seen),
        Command::Calibrate(args) if args.host => measure_host_and_report(&args, &logs),
        Command::Calibrate(args) => match args.understand() {
            Ok(calibration) => observed(seen, calibrate_and_report(&calibration, &logs)),
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
            let printed: Result<_, Vec<String>> = Ok(manual::completions(&args, out));
            printed
        }),
        Command::Man(args) => print_with(|out| manual::man(&args, out)),
        Command::Watch(args) => print_with(|out| view::run(&args, out)),
        Command::Tree(args) => print_with(|out| tree::run(args, out)),
        Command::Scatter(args) => {
            understood(Request::scatter(args).map(Undertaking::new), logs, seen)
        }
        Command::Gather(args) => {
            understood(Request::gather(args).map(Undertaking::new), logs, seen)
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

/// An error and its causes, but for those that it tells itself.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told.push_str(if told.is_empty() { "" } else { ": " });
            told.push_str(&cause);
        }
    }
    told
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

/// Prints what a command works out, or says what is wrong with its command line.
fn print_with<E: std::fmt::Display>(
    command: impl FnOnce(&mut dyn std::io::Write) -> Result<std::io::Result<()>, Vec<E>>,
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match command(&mut out) {
        Ok(printed) => {
            printed
                .and_then(|()| out.flush())
                .context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => Ok(refuse(&faults)),
    }
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

/// Says all that is wrong with a command line.
fn refuse(faults: &[impl std::fmt::Display]) -> ExitCode {
    for fault in faults {
        eprintln!("error: {}", printable(fault));
    }
    ExitCode::from(REFUSED)
}

fn understood<E: std::fmt::Display>(
    undertaking: Result<Undertaking, Vec<E>>,
    logs: LogArgs,
    seen: Seen,
) -> anyhow::Result<ExitCode> {
    match undertaking {
        Ok(undertaking) => observed(seen, run_and_report(undertaking, &logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}

/// `flitcast map`.
fn mapped(args: MapArgs, logs: &LogArgs, seen: Seen) -> anyhow::Result<ExitCode> {
    match Map::understand(args) {
        Ok(map) => observed(seen, map::run(&map, logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}

/// Of the coordinator: one thread that conducts, and one that keeps the connections to the
/// PEs alive while the first works something out.
fn conducting() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Conducts, seen by `flitcast watch` and by who scrapes metrics meanwhile, and by who reads
/// its traces afterwards.
fn observed(
    seen: Seen,
    what: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let metrics = match Metrics::listen(seen.metrics) {
        Ok(metrics) => metrics,
        Err(fault) => return Ok(refuse(&[fault])),
    };
    let runtime = conducting()?;
    otel::NOW.begin(seen.name);
    let published = publish();
    let result = runtime.block_on(async {
        if let Some(metrics) = metrics {
            metrics.tell_conducted();
        }
        what.await
    });
    drop(published);
    otel::NOW.end(matches!(result, Ok(ExitCode::SUCCESS)));
    result
}

async fn run_and_report(undertaking: Undertaking, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let concluded = retry::run(undertaking, logs, &mut interrupts).await?;
    let retry::Concluded {
        ended,
        request,
        story,
        ..
    } = concluded;
    let request = &request;
    report_end(ended, request.format, &story, |outcome| {
        let drawn = request.pictures.draw(request, outcome);
        let mut printed = match request.format {
            OutputFormat::Table => report::table(request, outcome) + &story.lines(),
            OutputFormat::Json => report::json(request, outcome, &story),
        };
        let code = match drawn {
            Ok(files) => {
                if request.format == OutputFormat::Table {
                    printed.push_str(&report::pictures_line(&files));
                }
                match story.undelivered.is_empty() {
                    true => ExitCode::SUCCESS,
                    false => ExitCode::from(FAILED),
                }
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(FAILED)
            }
        };
        (printed, code)
    })
}

async fn calibrate_and_report(
    calibration: &Calibration,
    logs: &LogArgs,
) -> anyhow::Result<ExitCode> {
    eprintln!("{}", calibration.announcement());
    let mut interrupts = Interrupts::new()?;
    let ended = calibration.run(logs, &mut interrupts).await?;
    report_end(ended, calibration.format, &Story::default(), |found| {
        let printed = match calibration.format {
            OutputFormat::Table => calibrate::table(found),
            OutputFormat::Json => calibrate::json(found),
        };
        (printed, ExitCode::SUCCESS)
    })
}

/// `flitcast calibrate --host`. Nobody watches or traces it: another command may be waiting.
fn measure_host_and_report(args: &CalibrateArgs, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let measured = conducting()?.block_on(async {
        let mut interrupts = Interrupts::new()?;
        calibrate::measure_host(args.encrypted, logs, &mut interrupts).await
    })?;
    report_end(measured, args.format, &Story::default(), |measured| {
        (measured.told(args.format), ExitCode::SUCCESS)
    })
}

/// Prints how a run ended: what `print` makes of what it came to, or why it came to
/// nothing.
fn report_end<T>(
    ended: Ended<Box<T>>,
    format: OutputFormat,
    story: &Story,
    print: impl FnOnce(&T) -> (String, ExitCode),
) -> anyhow::Result<ExitCode> {
    let (printed, code) = match ended {
        Ended::Interrupted => {
            eprintln!(
                "interrupted: every process was stopped; what had not fully arrived was removed"
            );
            (String::new(), ExitCode::from(INTERRUPTED))
        }
        Ended::Done(done) => {
            match story.undelivered.len() {
                0 => {}
                1 => eprintln!("error: a message was not delivered"),
                left => eprintln!("error: {left} messages were not delivered"),
            }
            print(&done)
        }
        Ended::Failed(failure) => {
            eprintln!("error: {}", printable(&failure));
            let printed = match format {
                OutputFormat::Table => String::new(),
                OutputFormat::Json => report::failure_json(&failure, None, story),
            };
            (printed, failed(&failure))
        }
    };
    for line in story.last_words() {
        eprintln!("{}", printable(line));
    }
    write_out(printed.as_bytes())?;
    Ok(code)
}

/// A request that cannot be met is refused, whenever that shows.
fn failed(failure: &Failure) -> ExitCode {
    ExitCode::from(match failure.refused {
        true => REFUSED,
        false => FAILED,
    })
}

fn write_out(printed: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(printed).context("cannot print the result")
}

/// `flitcast bench`.
fn time(args: BenchArgs, logs: &LogArgs, seen: Seen) -> anyhow::Result<ExitCode> {
    match Bench::new(args) {
        Ok(bench) => observed(seen, time_and_report(bench, logs)),
        Err(faults) => Ok(refuse(&faults)),
    }
}

async fn time_and_report(mut bench: Bench, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    match bench::run(&mut bench, logs).await? {
        bench::Ended::Done(figures) => {
            bench::print(&bench, figures).context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        bench::Ended::Failed(algorithm, failure) => {
            eprintln!("error: {algorithm}: {}", printable(&failure));
            if bench.format == BenchFormat::Json {
                write_out(
                    report::failure_json(&failure, Some(algorithm), &Story::default()).as_bytes(),
                )?;
            }
            Ok(ExitCode::from(FAILED))
        }
        bench::Ended::Interrupted => {
            let kept = bench.raw.as_ref().map(|raw| raw.path().display());
            let kept = kept.map(|path| format!("; the samples until then are in {path}"));
            let kept = kept.unwrap_or_default();
            eprintln!("interrupted: every process was stopped{kept}");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
