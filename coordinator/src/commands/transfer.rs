//! `flitcast scatter`, `gather` and `resume`: runs a job, with its retries, and prints the result.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use flitcast_node::payload::{Others, Pattern, output_entry};
use flitcast_proto::PeId;
use flitcast_proto::items::Address;
use flitcast_proto::wire::control::Payload;

use crate::render::exit::{FAILED, refused, report_end};
use crate::render::json::json;
use crate::render::{certificates, pictures, report};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::retry::{self, ResumableJob, RetryReport};
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::rounds::run::RunResult;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::system::spool;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::pe_names::with_names;
use flitcast_cluster::text::phrases::names;
use flitcast_cluster::text::screen::{self, Detail};
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::stdout::{self, unless_closed};

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

/// Refuses an option that names standard input or output.
pub fn refuse_standard(option: &str, named: Option<&Path>, why: &str) -> anyhow::Result<()> {
    match named == Some(Path::new(spool::STANDARD)) {
        true => Err(refused([format!("{option} -: {why}")])),
        false => Ok(()),
    }
}

/// Returns the request of a gather, unless its messages are to be written to standard output and one is
/// known to be a folder.
pub fn printable(request: Request) -> Result<Request, Faults> {
    let Payload::Files(files) = &request.messages.payload else {
        return Ok(request);
    };
    if !spool::is_output(&files.output) {
        return Ok(request);
    }
    let (site, pattern) = (&request.site, Pattern::of(&files.input));
    let chooses_entries = !site.placement.is_elsewhere();
    let refused =
        |what: &str| Err(anyhow!("--output -: {what}; give a folder for the output").into());
    let is_dealt = |it: &Pattern| it.is_dealt(chooses_entries);
    if pattern.as_ref().is_some_and(is_dealt) {
        return refused("what matches a pattern arrives as a folder");
    }
    let names = site.placement.names();
    let others = Others::of(&site.tree).named(&names);
    let folder = pattern.map_or_else(|| files.input.clone(), |pattern| pattern.folder);
    let is_folder = |pe: &PeId| others.entry(&folder, *pe).is_ok_and(|entry| entry.is_dir());
    let found = others.iter().map(|pe| PeId(pe as u32)).find(is_folder);
    // Other hosts have other files.
    match found.filter(|_| !site.placement.is_elsewhere()) {
        Some(pe) => refused(&format!("the message of {pe} is a folder")),
        None => Ok(request),
    }
}

/// Warns of PEs on other hosts where nothing matches the wildcards of the input.
fn warn_of_no_match(request: &Request, outcome: &Outcome, story: &RetryReport) {
    let Payload::Files(files) = &request.messages.payload else {
        return;
    };
    let Some(pattern) = Pattern::of(&files.input) else {
        return;
    };
    let (site, bytes) = (&request.site, &outcome.rounds.bytes);
    if !site.placement.is_elsewhere() {
        return;
    }
    let (collective, tree) = (request.way.operation.collective(), &site.tree);
    let is_sent = |message: Address| {
        message.ends(tree).any(|end| {
            let id = collective.delivery(tree, message.id, end);
            bytes.get(id.index()).is_some_and(|bytes| *bytes > 0)
                || request.messages.left_out.contains(&id)
                || story.skipped.contains(&collective.delivery_name(tree, id))
        })
    };
    let is_there = |pe: PeId| outcome.pes.iter().any(|it| it.pe == pe);
    let without = collective.messages(tree);
    let without = without.filter(|message| is_there(message.source) && !is_sent(*message));
    let mut pes: Vec<PeId> = without.map(|message| message.source).collect();
    pes.dedup();
    if !pes.is_empty() {
        let pes = names(&pes);
        stderr::warning(format_args!("--input {pattern}: nothing matches at {pes}"));
    }
}

/// Writes the gathered messages to standard output, in the order of PEs.
fn print_messages(output: &Path, request: &Request) -> anyhow::Result<()> {
    let names = request.site.placement.names();
    for pe in request.site.tree.pes() {
        let path = output_entry(output, pe, &names);
        match File::open(&path) {
            Ok(_) if path.is_dir() => bail!(
                "the message of {pe} is a folder, which cannot be written to standard output; all messages are in {}",
                output.display()
            ),
            Ok(mut file) => {
                let printed = io::copy(&mut file, &mut stdout::lock()).map(drop);
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
pub async fn run_and_report(job: ResumableJob, logs: &[String]) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let concluded = retry::run(job, logs, &mut interrupts).await?;
    let (request, story) = (&concluded.request, concluded.story);
    let output = match &request.messages.payload {
        Payload::Files(files) => Some(&*files.output).filter(|path| spool::is_output(path)),
        Payload::Synthetic { .. } => None,
    };
    if let (Some(output), RunResult::Done(_)) = (output, &concluded.ended) {
        print_messages(output, request)?;
    }
    report_end(concluded.ended, request.format, &story, |outcome| {
        warn_of_no_match(request, outcome, &story);
        let is_repeated = !story.skipped.is_empty();
        let drawn = pictures::draw(&request.pictures, request, outcome, is_repeated);
        let mut printed = match request.format {
            Format::Json => json(request, outcome, &story),
            _ => {
                let (detail, columns) = (screen::detail(), screen::columns());
                let more = match detail {
                    Detail::Full => certificates::table(request, outcome, columns),
                    _ => String::new(),
                };
                let table = report::table(request, outcome, is_repeated, detail, columns);
                table + &more + &with_names(&story.lines())
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
        if output.is_none() {
            return (printed, code);
        }
        if screen::detail() != Detail::Quiet {
            stderr::note(printed.trim_end());
        }
        (String::new(), code)
    })
}
