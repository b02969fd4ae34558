//! `flitcast calibrate`: measures the edges and the clocks of a cluster, then runs rounds on it,
//! learns the costs of its processes from their durations, and writes a profile.

mod args;
mod calibration;
mod fit;
mod learn;
mod report;
mod rounded;
mod steps;
mod this_host;
mod workloads;

use std::process::ExitCode;

use calibration::Calibration;
use report::{json, table};
use this_host::measure_host;

use crate::render::exit::report_end;
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

pub use args::CalibrateArgs;

/// Runs `flitcast calibrate`.
pub async fn calibrate_and_report(
    calibration: &Calibration,
    logs: &[String],
) -> anyhow::Result<ExitCode> {
    stderr::note(calibration.announcement());
    let mut interrupts = Interrupts::new()?;
    let ended = calibration.run(logs, &mut interrupts).await?;
    report_end(
        ended,
        calibration.format,
        &RetryReport::default(),
        |found| {
            let printed = match calibration.format {
                Format::Json => json(found),
                _ => table(found),
            };
            (printed, ExitCode::SUCCESS)
        },
    )
}

/// Runs `flitcast calibrate --host`. It is neither watched nor traced, because another command may
/// be waiting for it.
pub fn measure_host_and_report(args: &CalibrateArgs, logs: &[String]) -> anyhow::Result<ExitCode> {
    let measured = conducting()?.block_on(async {
        let mut interrupts = Interrupts::new()?;
        measure_host(args.encrypted, logs, &mut interrupts).await
    })?;
    report_end(measured, args.format, &RetryReport::default(), |measured| {
        (measured.report(args.format), ExitCode::SUCCESS)
    })
}
