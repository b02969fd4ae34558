//! `flitcast watch`: shows a command that runs in another process of the same user, from the file
//! that it writes (`live`). `draw` formats the snapshots.

mod draw;

use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::Args;
use flitcast_node::system::regular;

use draw::{Screen, name};

use flitcast_cluster::files::runtime_dir::runtime_dir;
use flitcast_cluster::observe::live::snapshot::Snapshot;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::system::{process, terminal};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::phrases::at;
use flitcast_cluster::text::screen;
use flitcast_cluster::text::units::parse_time;

/// Time between two snapshots, the interval at which the file is written.
const EVERY: Duration = Duration::from_millis(500);
/// Time between two attempts to find a command.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum bytes of a file: 100,000 PEs with 400 bytes each.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Arguments of `flitcast watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Process id of the command [default: the only one that runs]
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Show one snapshot and end, as when the output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Wait at most this time for a command to start
    #[arg(long, value_name = "TIME")]
    pub wait: Option<String>,
    /// Format of the output: json prints a snapshot per line, twice a second
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// The file of a running command, and its snapshot.
type Found = (PathBuf, Snapshot);

/// Shows a command until it ends.
pub fn run(args: &WatchArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let (path, picture) = find(args)?;
    let stdout = io::stdout();
    let is_once = args.once || args.format == Format::Table && !stdout.is_terminal();
    if is_once {
        return Ok(show_once(&picture, args.format, out));
    }
    let mut drawn = Screen::default();
    let mut show = |picture: &Snapshot, out: &mut dyn Write| match args.format {
        Format::Json => show_once(picture, Format::Json, out),
        _ => {
            let rows = terminal::size(&stdout).map_or(24, |(rows, _)| rows.max(2));
            // The last line is left for the cursor.
            let lines = draw::lines(picture, Some(rows - 1), screen::columns());
            drawn.show(&lines, out)
        }
    };
    Ok(
        follow(&path, picture, |picture| show(picture, out)).and_then(|last| match args.format {
            Format::Json => Ok(()),
            _ => writeln!(out, "{} has ended", name(&last)).and_then(|()| out.flush()),
        }),
    )
}

/// Prints a snapshot, as JSON on one line.
fn show_once(picture: &Snapshot, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => serde_json::to_writer(&mut *out, picture)?,
        _ => {
            let lines = draw::lines(picture, None, screen::columns());
            out.write_all(lines.join("\n").as_bytes())?;
        }
    }
    writeln!(out)?;
    out.flush()
}

/// Shows a command twice a second until it ends, and returns the last snapshot.
fn follow(
    path: &Path,
    mut picture: Snapshot,
    mut show: impl FnMut(&Snapshot) -> io::Result<()>,
) -> io::Result<Snapshot> {
    loop {
        show(&picture)?;
        sleep(EVERY);
        match read(path) {
            Ok(next) if is_alive(&next) => picture = next,
            _ => return Ok(picture),
        }
    }
}

fn find(args: &WatchArgs) -> anyhow::Result<Found> {
    let wait = args.wait.as_deref().map(parse_time).transpose();
    let wait = wait.map_err(|error| anyhow!("--wait: {error}"))?;
    let deadline = Instant::now() + Duration::from_nanos(wait.unwrap_or(0));
    loop {
        match (running(args.pid)?, args.pid) {
            (Some(found), _) => return Ok(found),
            _ if Instant::now() < deadline => sleep(LOOK),
            (None, None) => bail!("no command is running: start one, or let --wait 1m wait for it"),
            (None, Some(pid)) => {
                bail!("process {pid} is not a running flitcast command of this user")
            }
        }
    }
}

/// Returns the command with this process id, or the only one, if it runs.
///
/// # Errors
///
/// Returns an error if there are several.
fn running(pid: Option<u32>) -> anyhow::Result<Option<Found>> {
    let directory = runtime_dir()?;
    if let Some(pid) = pid {
        return one(directory.join(format!("{pid}.json")));
    }
    let mut running = Vec::new();
    for entry in fs::read_dir(&directory).map_err(at(&directory))? {
        let path = entry.map_err(at(&directory))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_pid = stem.is_some_and(|stem| stem.parse::<u32>().is_ok());
        if is_pid && path.extension().is_some_and(|it| it == "json") {
            running.extend(one(path)?);
        }
    }
    running.sort_by_key(|(_, picture)| picture.pid);
    if running.len() > 1 {
        let lines = running.iter().map(|(_, picture)| line(picture));
        let lines = lines.collect::<Vec<_>>().join("\n");
        bail!("several commands are running; choose one with --pid:\n{lines}");
    }
    Ok(running.pop())
}

/// Reads a snapshot; returns `None` if the file is missing or its command has ended, and then
/// removes the file.
fn one(path: PathBuf) -> anyhow::Result<Option<Found>> {
    match read(&path) {
        Ok(picture) if is_alive(&picture) => Ok(Some((path, picture))),
        Ok(_) => {
            // The command was killed. Another process may have removed the file.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(&path)(error)),
    }
}

fn read(path: &Path) -> io::Result<Snapshot> {
    Ok(serde_json::from_slice(&regular::read_file(path, LONGEST)?)?)
}

fn is_alive(picture: &Snapshot) -> bool {
    process::started_at(picture.pid) == Some(picture.process_start)
}

/// Returns the line of one of several commands.
fn line(picture: &Snapshot) -> String {
    let round = match picture.round {
        0 => picture.doing.clone(),
        round => format!("round {round} of {}", picture.rounds),
    };
    format!("  {:>7}  {}, {round}", picture.pid, name(picture))
}
