//! `flitcast bench`: times the algorithms on one tree and one set of lengths in real rounds and
//! compares them with their predictions.

mod checked;
mod measure;
mod raw;
mod samples;
mod table;

use std::process::ExitCode;

use serde_json::{Value, json};

pub use checked::{Bench, BenchOperation};
use measure::{BenchEnd, passes, run};
use samples::Figures;

use crate::render::exit::{FAILED, write_out};
use crate::render::json::failure_json;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::outcome::MedianMinMax;
use flitcast_cluster::text::figures::micros;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;

/// Times the algorithms and prints the result.
///
/// # Errors
///
/// Returns an error if partial output could not be removed or the result could not be printed.
pub async fn time_and_report(mut bench: Bench, logs: &[String]) -> anyhow::Result<ExitCode> {
    match run(&mut bench, logs).await? {
        BenchEnd::Done(figures) => print(&bench, figures).map(|()| ExitCode::SUCCESS),
        BenchEnd::Failed(algorithm, failure) => {
            stderr::error(format_args!("{algorithm}: {failure}"));
            if bench.format == Format::Json {
                let failure = failure_json(&failure, Some(algorithm), &RetryReport::default());
                write_out(failure.as_bytes())?;
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

fn print(bench: &Bench, figures: Vec<Figures>) -> anyhow::Result<()> {
    let printed = match bench.format {
        Format::Table if screen::detail() == Detail::Quiet => return Ok(()),
        Format::Json => json(bench, &figures),
        Format::Csv => {
            // The lines have no columns for algorithms that did not run.
            for skipped in &bench.skipped {
                let (algorithm, why) = (skipped.algorithm, &skipped.why);
                stderr::note(format_args!("skipped: {algorithm} is {why}"));
            }
            csv(bench, &figures)
        }
        _ => table::table(bench, figures, screen::columns()),
    };
    write_out(printed.as_bytes())
}

/// Returns a header, which contains the units, and a line for each algorithm.
fn csv(bench: &Bench, figures: &[Figures]) -> String {
    let mut text = String::new();
    for (place, f) in figures.iter().enumerate() {
        let columns = columns(bench, f);
        if place == 0 {
            text += &raw::line(columns.iter().map(|(name, _)| *name));
        }
        text += &raw::line(columns.iter().map(|(_, value)| value.as_str()));
    }
    text
}

fn columns(bench: &Bench, f: &Figures) -> [(&'static str, String); 18] {
    let slip =
        |pick: fn(MedianMinMax) -> u64| f.slip.map_or(String::new(), |s| raw::micros(pick(s)));
    [
        ("operation", bench.operation.to_owned()),
        ("tree", bench.tree.clone()),
        ("lengths", bench.lengths.clone()),
        ("rounds", bench.rounds.to_string()),
        ("algorithm", f.algorithm.to_owned()),
        ("predicted_us", raw::micros(f.predicted_ns)),
        ("min_us", raw::micros(f.measured.min)),
        ("median_us", raw::micros(f.measured.median)),
        ("p95_us", raw::micros(f.measured.p95)),
        ("max_us", raw::micros(f.measured.max)),
        ("spread_pct", format!("{:.1}", f.spread_pct())),
        ("error_pct", format!("{:.1}", f.error_pct())),
        (
            "goodput_bytes_per_s",
            format!("{:.0}", f.goodput_bytes_per_s),
        ),
        ("collisions", f.collisions.to_string()),
        ("peak_buffered_flits", f.peak_buffered_flits.to_string()),
        ("slip_median_us", slip(|s| s.median)),
        ("slip_max_us", slip(|s| s.max)),
        ("security", bench.guard.name().to_owned()),
    ]
}

/// Returns JSON. Keys may be added; existing keys keep their names and units.
fn json(bench: &Bench, figures: &[Figures]) -> String {
    let skipped = bench.skipped.iter().map(
        |skipped| json!({ "algorithm": skipped.algorithm, "reason": skipped.why.to_string() }),
    );
    let result = json!({
        "operation": bench.operation,
        "tree": bench.tree,
        "lengths": bench.lengths,
        "rounds": bench.rounds,
        "results": figures.iter().map(result).collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "warm_up_rounds": bench.warm_up,
        "passes": passes(bench.rounds),
        "bytes": bench.bytes,
        "flit_bytes": bench.flit_bytes,
        "security": bench.guard.name(),
    });
    format!("{result:#}\n")
}

fn result(f: &Figures) -> Value {
    json!({
        "algorithm": f.algorithm,
        "predicted_us": micros(f.predicted_ns),
        "measured_us": {
            "min": micros(f.measured.min),
            "median": micros(f.measured.median),
            "p95": micros(f.measured.p95),
            "max": micros(f.measured.max),
        },
        "error_pct": f.error_pct(),
        "goodput_bytes_per_s": f.goodput_bytes_per_s,
        "collisions": f.collisions,
        "peak_buffered_flits": f.peak_buffered_flits,
        "spread_pct": f.spread_pct(),
        "slip_us": f.slip.map(|slip| json!({
            "median": micros(slip.median),
            "max": micros(slip.max),
        })),
        "tree": f.tree,
    })
}
