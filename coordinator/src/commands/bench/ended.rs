//! Execution of a bench and output of its result.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context as _;

use super::checked::Bench;
use super::measure::{BenchEnd, run};
use super::samples::Figures;
use super::{csv, json, table};
use crate::render::exit::{FAILED, write_out};
use crate::render::json::failure_json;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::stdout::{self, unless_closed};

/// Times the algorithms and prints the result.
///
/// # Errors
///
/// Returns an error if partial output could not be removed or the result could not be printed.
pub async fn time_and_report(mut bench: Bench, logs: &[String]) -> anyhow::Result<ExitCode> {
    match run(&mut bench, logs).await? {
        BenchEnd::Done(figures) => {
            print(&bench, figures).context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        BenchEnd::Failed(algorithm, failure) => {
            stderr::error(format_args!("{algorithm}: {failure}"));
            if bench.format == Format::Json {
                write_out(
                    failure_json(&failure, Some(algorithm), &RetryReport::default()).as_bytes(),
                )?;
            }
            Ok(ExitCode::from(FAILED))
        }
        BenchEnd::Interrupted(interrupted) => {
            let kept = bench.raw.as_ref().map(|raw| raw.path().display());
            let kept = kept.map(|path| format!("; the samples until then are in {path}"));
            let kept = kept.unwrap_or_default();
            let processes = interrupted.processes;
            stderr::note(format_args!("interrupted: {processes}{kept}"));
            Ok(interrupted.signal.exit_code())
        }
    }
}

fn print(bench: &Bench, figures: Vec<Figures>) -> io::Result<()> {
    if bench.format == Format::Table && screen::detail() == Detail::Quiet {
        return Ok(());
    }
    let mut out = stdout::lock();
    let printed = match bench.format {
        Format::Json => out.write_all(json::json(bench, &figures).as_bytes()),
        Format::Csv => {
            // The lines have no columns for algorithms that did not run.
            for skipped in &bench.skipped {
                let (algorithm, why) = (skipped.algorithm, &skipped.why);
                stderr::note(format_args!("skipped: {algorithm} is {why}"));
            }
            out.write_all(csv::csv(bench, &figures).as_bytes())
        }
        _ => {
            let table = table::table(bench, figures, screen::columns());
            out.write_all(table.as_bytes())
        }
    };
    unless_closed(printed)
}
