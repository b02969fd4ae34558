//! Execution of a calibration, or of a measurement of this host, and output of the result.

use std::process::ExitCode;

use super::args::CalibrateArgs;
use super::calibration::Calibration;
use super::report::{json, table};
use super::this_host::measure_host;
use crate::render::exit::report_end;
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

/// Runs `flitcast calibrate`.
pub async fn calibrate_and_report(
    calibration: &Calibration,
    logs: &LogArgs,
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
pub fn measure_host_and_report(args: &CalibrateArgs, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let measured = conducting()?.block_on(async {
        let mut interrupts = Interrupts::new()?;
        measure_host(args.encrypted, logs, &mut interrupts).await
    })?;
    report_end(measured, args.format, &RetryReport::default(), |measured| {
        (measured.told(args.format), ExitCode::SUCCESS)
    })
}
