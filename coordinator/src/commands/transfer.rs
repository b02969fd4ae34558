//! `flitcast scatter`, `gather` and `resume`: an undertaking, from its first run to what is
//! printed of it.

use std::process::ExitCode;

use crate::launch::log_args::LogArgs;
use crate::options::format::Format;
use crate::render::ending::{FAILED, report_end};
use crate::render::{pictures, report};
use crate::retry::{self, Undertaking};
use crate::rounds::run::Interrupts;

/// Does it, and prints what came of it.
///
/// # Errors
///
/// What was half written could not be removed, or the result not printed.
pub async fn run_and_report(undertaking: Undertaking, logs: &LogArgs) -> anyhow::Result<ExitCode> {
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
        let drawn = pictures::draw(&request.pictures, request, outcome);
        let mut printed = match request.format {
            Format::Json => report::json(request, outcome, &story),
            _ => report::table(request, outcome) + &story.lines(),
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
                eprintln!("error: {error}");
                ExitCode::from(FAILED)
            }
        };
        (printed, code)
    })
}
