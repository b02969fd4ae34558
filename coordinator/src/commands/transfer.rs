//! `flitcast scatter`, `gather` and `resume`: runs a job, with its retries, and prints the result.

use std::process::ExitCode;

use crate::render::exit::{FAILED, report_end};
use crate::render::json::json;
use crate::render::{certificates, pictures, report};
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::{self, ResumableJob};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;

/// Runs the job and prints the result.
///
/// # Errors
///
/// Returns an error if partial output could not be removed or the result could not be printed.
pub async fn run_and_report(job: ResumableJob, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let concluded = retry::run(job, logs, &mut interrupts).await?;
    let retry::Concluded {
        ended,
        request,
        story,
        ..
    } = concluded;
    let request = &request;
    report_end(ended, request.format, &story, |outcome| {
        let drawn = pictures::draw(&request.pictures, request, outcome);
        let mut printed = match request.format {
            Format::Json => json(request, outcome, &story),
            _ => {
                let (detail, columns) = (screen::detail(), screen::columns());
                let more = (detail == Detail::Full).then(|| certificates::table(request, outcome));
                report::table(request, outcome, detail, columns)
                    + &more.unwrap_or_default()
                    + &story.lines()
            }
        };
        let code = match drawn {
            Ok(files) => {
                if request.format == Format::Table {
                    printed.push_str(&report::pictures_line(&files));
                }
                match story.undelivered.is_empty() {
                    true => ExitCode::SUCCESS,
                    false => ExitCode::from(FAILED),
                }
            }
            Err(error) => {
                stderr::error(error);
                ExitCode::from(FAILED)
            }
        };
        (printed, code)
    })
}
