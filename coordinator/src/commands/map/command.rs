//! The execution of a map, from the protected working folder to the printed result.

use std::process::ExitCode;

use super::args::Map;
use super::three_runs::{execute, print_errors};
use super::{at_root, report, work};
use crate::render::exit::{FAILED, REFUSED, report_end};
use flitcast_cluster::options::format::Format;
use flitcast_cluster::rounds::run::RunResult;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

/// Runs the map, prints its result, and removes everything else.
///
/// # Errors
///
/// Returns an error if the working folder could not be removed.
pub async fn run(map: &Map, logs: &[String]) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let mut map = map.clone();
    if map.scatter.site.placement.is_elsewhere() && !map.args.spread {
        let looked = at_root::look(&mut map, logs, &mut interrupts).await?;
        if let Err(faults) = looked {
            faults.iter().for_each(stderr::error);
            return Ok(ExitCode::from(REFUSED));
        }
    }
    let map = &map;
    let mut dead_pes = Vec::new();
    // Held until the folder is removed or kept.
    let restricted = work::restrict(map).await;
    let mapped = match &restricted {
        Ok(_lock) => execute(map, logs, &mut interrupts, &mut dead_pes).await,
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let cleared = work::clear_gathered(map).await;
    let cleared = cleared.and(match map.args.keep_work {
        true => {
            let work = map.work.display();
            stderr::note(format_args!("the working folder is kept: {work}"));
            Ok(())
        }
        false => work::clear(map, &dead_pes, logs, &mut interrupts).await,
    });
    let (mut ended, story) = mapped?;
    if let RunResult::Interrupted(interrupted) = &mut ended {
        // In the working folder, which is removed.
        interrupted.failure = None;
    }
    let code = report_end(ended, map.args.format, &story, |mapped| {
        print_errors(map, mapped);
        if let Some(interrupted) = &mapped.interrupted {
            stderr::note(report::interrupted_note(map, mapped, interrupted));
            if !mapped.is_gathered {
                return (String::new(), interrupted.signal.exit_code());
            }
        }
        let printed = match map.args.format {
            Format::Json => report::json(map, mapped),
            _ => report::table(map, mapped),
        };
        let code = match &mapped.interrupted {
            Some(interrupted) => interrupted.signal.exit_code(),
            None if mapped.is_complete() => ExitCode::SUCCESS,
            None => ExitCode::from(FAILED),
        };
        (printed, code)
    })?;
    cleared?;
    Ok(code)
}
