//! `flitcast scatter`, `gather` and `resume`: runs a job, with its retries, and prints the result.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use flitcast_node::payload::destination;
use flitcast_proto::wire::control::Payload;

use crate::render::exit::{FAILED, refused, report_end};
use crate::render::json::json;
use crate::render::{certificates, pictures, report};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::retry::{self, ResumableJob};
use flitcast_cluster::rounds::run::RunResult;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::system::spool;
use flitcast_cluster::text::pe_names::with_names;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::stdout::unless_closed;

/// Puts a path in the place of standard input or output, if an option names that.
///
/// # Errors
///
/// Returns an error if P0 may be on another host, or if the path cannot be had.
pub fn replace_standard(
    option: &str,
    named: &mut Option<PathBuf>,
    tree: &TreeArgs,
    substitute: fn() -> io::Result<PathBuf>,
) -> anyhow::Result<()> {
    if named.as_deref() != Some(Path::new(spool::STANDARD)) {
        return Ok(());
    }
    if tree.cluster.is_some() {
        return Err(refused([format!(
            "{option} -: with --cluster, P0 may be on another host; name a path there"
        )]));
    }
    *named = Some(substitute().with_context(|| format!("{option} -"))?);
    Ok(())
}

/// Writes the gathered messages to standard output, in the order of PEs.
fn print_messages(output: &Path, request: &Request) -> anyhow::Result<()> {
    for pe in request.site.tree.pes() {
        let path = destination(output, pe);
        match File::open(&path) {
            Ok(_) if path.is_dir() => bail!(
                "the message of {pe} is a folder, which cannot be written to standard output; name a folder with --output"
            ),
            Ok(mut file) => {
                let printed = io::copy(&mut file, &mut io::stdout()).map(drop);
                unless_closed(printed).with_context(|| format!("the message of {pe}"))?;
            }
            // It has no message.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
    }
    Ok(())
}

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
    let output = match &request.messages.payload {
        Payload::Files(files) => Some(&*files.output).filter(|path| spool::is_output(path)),
        Payload::Synthetic { .. } => None,
    };
    if let (Some(output), RunResult::Done(_)) = (output, &ended) {
        print_messages(output, request)?;
    }
    report_end(ended, request.format, &story, |outcome| {
        let drawn = pictures::draw(&request.pictures, request, outcome);
        let mut printed = match request.format {
            Format::Json => json(request, outcome, &story),
            _ => {
                let (detail, columns) = (screen::detail(), screen::columns());
                let more = (detail == Detail::Full)
                    .then(|| certificates::table(request, outcome, columns));
                report::table(request, outcome, detail, columns)
                    + &more.unwrap_or_default()
                    + &with_names(&story.lines())
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
        match output {
            Some(_) => {
                if screen::detail() != Detail::Quiet {
                    stderr::note(printed.trim_end());
                }
                (String::new(), code)
            }
            None => (printed, code),
        }
    })
}
