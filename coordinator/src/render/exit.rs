//! The end of a command: its last messages and its exit status.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::render::json::failure_json;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::outcome::AftermathOf;
use flitcast_cluster::rounds::run::{Interrupted, RunResult};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::stdout::{self, unless_closed};

/// Exit status of a run that failed.
pub const FAILED: u8 = 1;
/// Exit status if the command line or its input is invalid.
pub const REFUSED: u8 = 2;
/// The exit statuses of `flitcast` and their meanings, for the help and the man pages.
pub const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "success: every message was delivered and verified"),
    (
        "1",
        "a run failed: the message names the PE, the round and what arrived",
    ),
    (
        "2",
        "the command line or a file is wrong, all faults listed; nothing was sent",
    ),
    (
        "130",
        "Ctrl-C: the run was cancelled; what had arrived is kept to resume it",
    ),
    ("129", "SIGHUP, as when a terminal is closed: likewise"),
    ("131", "SIGQUIT: likewise"),
    ("143", "SIGTERM: likewise"),
];

/// Prints the end of a run: on success the output of `print`, otherwise the cause of the failure.
/// Returns the exit status.
pub fn report_end<T>(
    ended: RunResult<Box<T>>,
    format: Format,
    story: &RetryReport,
    print: impl FnOnce(&T) -> (String, ExitCode),
) -> anyhow::Result<ExitCode> {
    let (printed, code) = match ended {
        RunResult::Interrupted(interrupted) => {
            stderr::note(interrupted_note(&interrupted));
            (String::new(), interrupted.signal.exit_code())
        }
        RunResult::Done(done) => {
            match story.undelivered.len() {
                0 => {}
                1 => stderr::error("a message was not delivered"),
                left => stderr::error(format_args!("{left} messages were not delivered")),
            }
            print(&done)
        }
        RunResult::Failed(failure) => {
            stderr::error(&failure);
            let printed = match format {
                Format::Json => failure_json(&failure, None, story),
                _ => String::new(),
            };
            // A request may be refused after the launch, too.
            let code = if failure.refused { REFUSED } else { FAILED };
            (printed, ExitCode::from(code))
        }
    };
    for line in story.final_message() {
        stderr::note(line);
    }
    if format == Format::Json || screen::detail() != Detail::Quiet {
        write_out(printed.as_bytes())?;
    }
    Ok(code)
}

/// Describes the processes and the messages after a run that a signal ended.
fn interrupted_note(interrupted: &Interrupted) -> String {
    let failure = interrupted.failure.as_deref();
    let aftermath = failure.map_or_else(String::new, |it| AftermathOf(it).to_string());
    let processes = interrupted.processes;
    format!("interrupted: {processes}; what had not fully arrived was removed{aftermath}")
}

/// Prints the result of a command, or all faults of its command line.
pub fn print_with(
    command: impl FnOnce(&mut dyn std::io::Write) -> Result<std::io::Result<()>, Faults>,
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(stdout::lock());
    let printed = command(&mut out).map_err(refused)?;
    unless_closed(printed.and_then(|()| out.flush())).context("cannot print the result")?;
    Ok(ExitCode::SUCCESS)
}

/// The faults of a command line or its input.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
struct Refused(Vec<String>);

/// Turns the faults of a command line into an error, for the exit status `REFUSED`.
pub fn refused(faults: impl IntoIterator<Item: std::fmt::Display>) -> anyhow::Error {
    Refused(faults.into_iter().map(|it| it.to_string()).collect()).into()
}

/// Prints the error of a command, or all faults of its command line, and returns the exit status.
pub fn report_error(error: anyhow::Error) -> ExitCode {
    match error.downcast() {
        Ok(Refused(faults)) => refuse(&faults),
        Err(error) => {
            stderr::error(error_chain(&error));
            ExitCode::from(FAILED)
        }
    }
}

/// Prints all faults of a command line and returns the exit status `REFUSED`.
pub fn refuse(faults: &[impl std::fmt::Display]) -> ExitCode {
    faults.iter().for_each(stderr::error);
    ExitCode::from(REFUSED)
}

/// Joins an error and its causes; leaves out a cause whose text ends the text before it.
pub fn error_chain(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !message.ends_with(&cause) {
            message.push_str(if message.is_empty() { "" } else { ": " });
            message.push_str(&cause);
        }
    }
    message
}

pub fn write_out(printed: &[u8]) -> anyhow::Result<()> {
    stdout::print(printed).context("cannot print the result")
}
