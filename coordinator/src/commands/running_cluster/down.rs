//! `flitcast down`: stops a running cluster.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::render::exit::refused;
use flitcast_cluster::site::running_cluster::{Pes, claim, find, is_kept};
use flitcast_cluster::system::process::{Process, Signal, started_at};
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::stdout::print;

/// Time for the daemon to stop all PEs, which have 3 s, and to remove the folder.
const STOP: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(10);

const EXAMPLES: &str = "\
A command that is using the cluster fails.

Exit status: 0 when it is down, 2 if it was not up.";

/// Arguments of `flitcast down`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DownArgs {
    /// Cluster file (TOML); it may be missing if the cluster is still up
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Stops a cluster and waits until nothing of it is left.
pub fn down(args: &DownArgs) -> anyhow::Result<ExitCode> {
    let shown = args.file.display();
    let found = find(&args.file).map_err(|fault| refused([fault]))?;
    let kept = found.ok_or_else(|| refused([format!("{shown}: this cluster is not up")]))?;
    let pes = Pes::read(&kept.folder)?.context("its keeper has not begun yet")?;
    let keeper = pes.keeper;
    let process = Process::numbered(keeper).context("its keeper has no process")?;
    let began = started_at(keeper);
    // The lock is free a moment before the process ends, and another process may get its number then.
    let has_ended = || started_at(keeper).is_none_or(|at| Some(at) != began);
    let is_over = || Ok(!is_kept(&kept.folder)? && has_ended());
    let is_over = end(Some(process), is_over)?;
    ensure!(is_over, "process {keeper}, its keeper, does not end");
    // Another command may have started the cluster again.
    claim::remove_forsaken(&kept.folder)?;
    print(format!("{} is down\n", printable(&kept.record.name)).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Signals the daemon to end; kills it if it does not end, which ends the PEs as well. Returns whether it
/// is over.
pub(super) fn end(
    process: Option<Process>,
    mut is_over: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    for signal in [Signal::TERM, Signal::KILL] {
        process.inspect(|process| process.signal(signal));
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if is_over()? {
                return Ok(true);
            }
            std::thread::sleep(LOOK);
        }
    }
    Ok(false)
}
