//! The `flitcast` command: `src/bin/flitcast.rs` is only its door, and tests come in by
//! [`parsers`].
//!
//! Exit status: 0 when all went well, 1 when a run failed, 2 when the command
//! line or its input is wrong (nothing was launched or written then), 130 after
//! Ctrl-C.

mod args;
mod baseline;
mod bench;
mod calibrate;
mod candidates;
mod choose;
mod cluster;
mod cluster_file;
mod compare;
mod conduct;
mod console;
mod edge_file;
mod link_spec;
mod model;
mod outcome;
mod page;
pub mod parsers;
mod pictures;
mod placement;
mod plan;
mod printable;
mod profile;
mod report;
mod request;
mod run;
mod timeouts;
mod toml_file;
mod topology;
mod tree;
mod tree_file;
mod units;
mod watch;
mod workload;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use flitcast_node::NodeConfig;
use flitcast_proto::PeId;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, LogFormat, NodeArgs, OutputFormat};
use bench::{Bench, BenchArgs, BenchFormat};
use calibrate::Calibration;
use cluster::LogArgs;
use printable::printable;
use request::{Request, RequestError};
use run::{Ended, Interrupts};

/// A run failed.
const FAILED: u8 = 1;
/// The command line or its input is wrong.
const REFUSED: u8 = 2;
/// Ctrl-C, as shells tell it.
const INTERRUPTED: u8 = 130;

/// For a PE's disk to finish what it is doing when the PE is told to end.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Does what the command line says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(fault) = start_logging(&cli) {
        return refuse(&[fault]);
    }
    let logs = log_args(&cli);
    let result = match cli.command {
        Command::Node(args) => play_node(args),
        Command::Bench(args) => time(args, &logs),
        Command::Calibrate(args) => match args.understand() {
            Ok(calibration) => {
                conducting().and_then(|r| r.block_on(calibrate_and_report(&calibration, &logs)))
            }
            Err(faults) => Ok(refuse(&faults)),
        },
        Command::Plan(args) => print_with(|out| plan::run(args, out)),
        Command::Compare(args) => print_with(|out| compare::run(args, out)),
        Command::Tree(args) => print_with(|out| tree::run(args, out)),
        Command::Scatter(args) => understood(Request::scatter(args), logs),
        Command::Gather(args) => understood(Request::gather(args), logs),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {}", printable(format_args!("{error:#}")));
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

/// Says all that is wrong with a command line.
fn refuse(faults: &[impl std::fmt::Display]) -> ExitCode {
    for fault in faults {
        eprintln!("error: {}", printable(fault));
    }
    ExitCode::from(REFUSED)
}

fn understood(
    request: Result<Request, Vec<RequestError>>,
    logs: LogArgs,
) -> anyhow::Result<ExitCode> {
    match request {
        Ok(request) => conducting()?.block_on(run_and_report(&request, &logs)),
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

/// Of a PE: one thread does everything, so that a PE that answers pings is not stuck.
fn playing() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

async fn run_and_report(request: &Request, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let ended = run::run(request, logs, &mut interrupts).await?;
    report_end(ended, request.format, |outcome| {
        let drawn = request.pictures.draw(request, outcome);
        let mut printed = match request.format {
            OutputFormat::Table => report::table(request, outcome),
            OutputFormat::Json => report::json(request, outcome),
        };
        let code = match drawn {
            Ok(files) => {
                if request.format == OutputFormat::Table {
                    printed.push_str(&report::pictures_line(&files));
                }
                ExitCode::SUCCESS
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
    report_end(ended, calibration.format, |found| {
        let printed = match calibration.format {
            OutputFormat::Table => calibrate::table(found),
            OutputFormat::Json => calibrate::json(found),
        };
        (printed, ExitCode::SUCCESS)
    })
}

/// Prints how a run ended: what `print` makes of what it came to, or why it came to
/// nothing.
fn report_end<T>(
    ended: Ended<Box<T>>,
    format: OutputFormat,
    print: impl FnOnce(&T) -> (String, ExitCode),
) -> anyhow::Result<ExitCode> {
    let (printed, code) = match ended {
        Ended::Interrupted => {
            eprintln!(
                "interrupted: every process was stopped; what had not fully arrived was removed"
            );
            (String::new(), ExitCode::from(INTERRUPTED))
        }
        Ended::Done(done) => print(&done),
        Ended::Failed(failure) => {
            eprintln!("error: {}", printable(&failure));
            let printed = match format {
                OutputFormat::Table => String::new(),
                OutputFormat::Json => report::failure_json(&failure, None),
            };
            (printed, ExitCode::from(FAILED))
        }
    };
    write_out(printed.as_bytes())?;
    Ok(code)
}

fn write_out(printed: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(printed).context("cannot print the result")
}

/// `flitcast bench`.
fn time(args: BenchArgs, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut bench = match Bench::new(args) {
        Ok(bench) => bench,
        Err(faults) => return Ok(refuse(&faults)),
    };
    match conducting()?.block_on(bench::run(&mut bench, logs))? {
        bench::Ended::Done(figures) => {
            bench::print(&bench, figures).context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        bench::Ended::Failed(algorithm, failure) => {
            eprintln!("error: {algorithm}: {}", printable(&failure));
            if bench.format == BenchFormat::Json {
                write_out(report::failure_json(&failure, Some(algorithm)).as_bytes())?;
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

fn play_node(args: NodeArgs) -> anyhow::Result<ExitCode> {
    // If the launcher dies, even by SIGKILL, the end of its channel tells us; this
    // tells us should that not come.
    let signal_at_death = Some(rustix::process::Signal::TERM);
    rustix::process::set_parent_process_death_signal(signal_at_death).context("prctl")?;
    let runtime = playing()?;
    let result = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate())?;
        let cancel = shutdown.clone();
        tokio::spawn(async move {
            terminate.recv().await;
            cancel.cancel();
        });
        let listener = TcpListener::bind(args.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", args.listen))?;
        let config = NodeConfig {
            pe: PeId(args.pe),
            coordinator: args.coordinator,
            cluster: args.cluster,
            timeouts: args.timeouts.unwrap_or_default(),
        };
        anyhow::Ok(flitcast_node::run(config, listener, shutdown).await?)
    });
    runtime.shutdown_timeout(LAST_WRITES);
    result.map(|()| ExitCode::SUCCESS)
}
