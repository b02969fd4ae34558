//! `flitcast watch`: shows a command that runs in another process of the same user, from the file
//! that it writes (`live`). `draw` formats the snapshots.

mod draw;
mod find;

use std::io::{self, IsTerminal as _, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use clap::Args;

use draw::Screen;
use find::FoundCommand;

use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::system::terminal;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::screen;
use flitcast_cluster::text::units::parse_time;

/// Time between two snapshots, the interval at which the file is written.
const EVERY: Duration = Duration::from_millis(500);
/// Time between two attempts to find a command.
const LOOK: Duration = Duration::from_millis(50);

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

/// Shows a command until it ends.
pub fn run(args: &WatchArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let found = find(args)?;
    Ok(match args.format {
        Format::Json => json(&found, args.once, out),
        _ => table(&found, args.once, out),
    })
}

fn find(args: &WatchArgs) -> anyhow::Result<FoundCommand> {
    let wait = args.wait.as_deref().map(parse_time).transpose();
    let wait = wait.map_err(|error| anyhow!("--wait: {error}"))?;
    let deadline = Instant::now() + Duration::from_nanos(wait.unwrap_or(0));
    loop {
        match (find::find(args.pid)?, args.pid) {
            (Some(found), _) => return Ok(found),
            _ if Instant::now() < deadline => sleep(LOOK),
            (None, None) => bail!("no command is running: start one, or let --wait 1m wait for it"),
            (None, Some(pid)) => {
                bail!("process {pid} is not a running flitcast command of this user")
            }
        }
    }
}

/// Prints a picture on each line.
fn json(found: &FoundCommand, once: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut picture = found.picture.clone();
    loop {
        serde_json::to_writer(&mut *out, &picture)?;
        writeln!(out)?;
        out.flush()?;
        if once {
            return Ok(());
        }
        sleep(EVERY);
        match found.look() {
            Some(next) => picture = next,
            None => return Ok(()),
        }
    }
}

/// Prints the picture in place on a terminal, and otherwise once.
fn table(found: &FoundCommand, once: bool, out: &mut dyn Write) -> io::Result<()> {
    let stdout = io::stdout();
    if once || !stdout.is_terminal() {
        return out
            .write_all(
                draw::lines(&found.picture, None, screen::columns())
                    .join("\n")
                    .as_bytes(),
            )
            .and_then(|()| writeln!(out));
    }
    let mut drawn = Screen::default();
    let mut picture = found.picture.clone();
    loop {
        let rows = terminal::size(&stdout).map_or(24, |(rows, _)| rows.max(2));
        // The last line is left for the cursor.
        let lines = draw::lines(&picture, Some(rows - 1), screen::columns());
        drawn.show(&lines, out)?;
        sleep(EVERY);
        match found.look() {
            Some(next) => picture = next,
            None => {
                let name = draw::name(&picture);
                return writeln!(out, "{name} has ended").and_then(|()| out.flush());
            }
        }
    }
}
