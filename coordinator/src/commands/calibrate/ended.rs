//! A calibration, or a measurement of this host, from beginning to end, and what is printed of
//! it.

use std::process::ExitCode;

use super::{CalibrateArgs, Calibration, measure_host};
use crate::launch::log_args::LogArgs;
use crate::launch::runtime::conducting;
use crate::options::format::Format;
use crate::render::ending::report_end;
use crate::retry::Story;
use crate::rounds::run::Interrupts;

/// `flitcast calibrate`.
pub async fn calibrate_and_report(
    calibration: &Calibration,
    logs: &LogArgs,
) -> anyhow::Result<ExitCode> {
    eprintln!("{}", calibration.announcement());
    let mut interrupts = Interrupts::new()?;
    let ended = calibration.run(logs, &mut interrupts).await?;
    report_end(ended, calibration.format, &Story::default(), |found| {
        let printed = match calibration.format {
            Format::Json => super::json(found),
            _ => super::table(found),
        };
        (printed, ExitCode::SUCCESS)
    })
}

/// `flitcast calibrate --host`. Nobody watches or traces it: another command may be waiting.
pub fn measure_host_and_report(args: &CalibrateArgs, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let measured = conducting()?.block_on(async {
        let mut interrupts = Interrupts::new()?;
        measure_host(args.encrypted, logs, &mut interrupts).await
    })?;
    report_end(measured, args.format, &Story::default(), |measured| {
        (measured.told(args.format), ExitCode::SUCCESS)
    })
}
