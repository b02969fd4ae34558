//! How a command ends: what it prints of that, and its exit status.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::options::format::Format;
use crate::render::report;
use crate::retry::Story;
use crate::rounds::outcome::Failure;
use crate::rounds::run::Ended;
use crate::text::printable::printable;

/// A run failed.
pub const FAILED: u8 = 1;
/// The command line or its input is wrong.
pub const REFUSED: u8 = 2;
/// Ctrl-C, as shells tell it.
pub const INTERRUPTED: u8 = 130;

/// What `flitcast` returns, for the help and the pages of the manual.
pub const EXIT_STATUS: &[(&str, &str)] = &[
    (
        "0",
        "all went well: every message was delivered and verified",
    ),
    (
        "1",
        "a run failed: the message names the PE, the round and what arrived",
    ),
    (
        "2",
        "the command line or a file is wrong, all faults listed; nothing was started",
    ),
    ("130", "Ctrl-C: every process was stopped"),
];

/// Prints how a run ended: what `print` makes of what it came to, or why it came to
/// nothing.
pub fn report_end<T>(
    ended: Ended<Box<T>>,
    format: Format,
    story: &Story,
    print: impl FnOnce(&T) -> (String, ExitCode),
) -> anyhow::Result<ExitCode> {
    let (printed, code) = match ended {
        Ended::Interrupted => {
            eprintln!(
                "interrupted: every process was stopped; what had not fully arrived was removed"
            );
            (String::new(), ExitCode::from(INTERRUPTED))
        }
        Ended::Done(done) => {
            match story.undelivered.len() {
                0 => {}
                1 => eprintln!("error: a message was not delivered"),
                left => eprintln!("error: {left} messages were not delivered"),
            }
            print(&done)
        }
        Ended::Failed(failure) => {
            eprintln!("error: {}", printable(&failure));
            let printed = match format {
                Format::Json => report::failure_json(&failure, None, story),
                _ => String::new(),
            };
            (printed, failed(&failure))
        }
    };
    for line in story.last_words() {
        eprintln!("{}", printable(line));
    }
    write_out(printed.as_bytes())?;
    Ok(code)
}

/// A request that cannot be met is refused, whenever that shows.
pub fn failed(failure: &Failure) -> ExitCode {
    ExitCode::from(match failure.refused {
        true => REFUSED,
        false => FAILED,
    })
}

/// Prints what a command works out, or says what is wrong with its command line.
pub fn print_with<E: std::fmt::Display>(
    command: impl FnOnce(&mut dyn std::io::Write) -> Result<std::io::Result<()>, Vec<E>>,
) -> anyhow::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match command(&mut out) {
        Ok(printed) => {
            printed
                .and_then(|()| out.flush())
                .context("cannot print the result")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => Ok(refuse(&faults)),
    }
}

/// Says all that is wrong with a command line.
pub fn refuse(faults: &[impl std::fmt::Display]) -> ExitCode {
    for fault in faults {
        eprintln!("error: {}", printable(fault));
    }
    ExitCode::from(REFUSED)
}

/// An error and its causes, but for those that it tells itself.
pub fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told.push_str(if told.is_empty() { "" } else { ": " });
            told.push_str(&cause);
        }
    }
    told
}

/// Prints a result.
pub fn write_out(printed: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(printed).context("cannot print the result")
}
