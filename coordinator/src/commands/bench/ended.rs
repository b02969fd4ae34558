//! A bench from beginning to end, and what is printed of it.

use std::process::ExitCode;

use anyhow::Context as _;

use super::{Bench, BenchEnd, print, run};
use crate::launch::log_args::LogArgs;
use crate::options::format::Format;
use crate::render::ending::{FAILED, INTERRUPTED, write_out};
use crate::render::report;
use crate::retry::Story;
use crate::text::printable::printable;

/// Times the algorithms, and prints what came of it.
///
/// # Errors
///
/// What was half written could not be removed, or the result not printed.
pub async fn time_and_report(mut bench: Bench, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    match run(&mut bench, logs).await? {
        BenchEnd::Done(figures) => {
            print(&bench, figures).context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        BenchEnd::Failed(algorithm, failure) => {
            eprintln!("error: {algorithm}: {}", printable(&failure));
            if bench.format == Format::Json {
                write_out(
                    report::failure_json(&failure, Some(algorithm), &Story::default()).as_bytes(),
                )?;
            }
            Ok(ExitCode::from(FAILED))
        }
        BenchEnd::Interrupted => {
            let kept = bench.raw.as_ref().map(|raw| raw.path().display());
            let kept = kept.map(|path| format!("; the samples until then are in {path}"));
            let kept = kept.unwrap_or_default();
            eprintln!("interrupted: every process was stopped{kept}");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
