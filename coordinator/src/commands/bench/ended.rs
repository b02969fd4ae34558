//! Execution of a bench and output of its result.

use std::process::ExitCode;

use anyhow::Context as _;

use super::{Bench, BenchEnd, print, run};
use crate::launch::log_args::LogArgs;
use crate::options::format::Format;
use crate::render::ending::{FAILED, write_out};
use crate::render::json::failure_json;
use crate::retry::Story;
use crate::text::stderr;

/// Times the algorithms and prints the result.
///
/// # Errors
///
/// Returns an error if partial output could not be removed or the result could not be printed.
pub async fn time_and_report(mut bench: Bench, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    match run(&mut bench, logs).await? {
        BenchEnd::Done(figures) => {
            print(&bench, figures).context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        BenchEnd::Failed(algorithm, failure) => {
            stderr::error(format_args!("{algorithm}: {failure}"));
            if bench.format == Format::Json {
                write_out(failure_json(&failure, Some(algorithm), &Story::default()).as_bytes())?;
            }
            Ok(ExitCode::from(FAILED))
        }
        BenchEnd::Interrupted(interrupted) => {
            let kept = bench.raw.as_ref().map(|raw| raw.path().display());
            let kept = kept.map(|path| format!("; the samples until then are in {path}"));
            let kept = kept.unwrap_or_default();
            stderr::note(format_args!("{interrupted}{kept}"));
            Ok(interrupted.signal.exit_code())
        }
    }
}
