//! Processes that read a different clock: a monotonic one that is ahead, as on another host or in
//! some containers (with a time namespace; needs root, and `unshare` of Debian's util-linux); or a
//! wall clock that a test sets while they run (needs Debian's `faketime`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::run::run_program;
use crate::{Folder, scratch};

/// Time by which that clock is ahead; no time in a test is close to it.
pub const AHEAD_S: u64 = 100_000;

/// Returns words for `run` of a cluster file, as TOML. With `boot_id`, the host's boot id is the
/// content of that file, as on another host; otherwise it is this machine's, as in a container.
pub fn with_another_clock(boot_id: Option<&Path>) -> String {
    let moved = boot_id.map_or("true".to_owned(), |file| {
        let file = file.display();
        format!("mount --bind '{file}' /proc/sys/kernel/random/boot_id")
    });
    let ahead = format!("--monotonic {AHEAD_S} --boottime {AHEAD_S}");
    let line = format!("unshare --mount --time {ahead} --fork --kill-child sh -c");
    let script = format!("{moved} && exec \"$0\" \"$@\"");
    let words: Vec<&str> = line.split(' ').chain([&*script]).collect();
    serde_json::to_string(&words).expect("words are JSON, and so TOML")
}

/// A wall clock that a test can set, for commands with its environment and their child processes.
/// It jumps in all of them at once; their monotonic clocks and this machine's clock are unchanged.
/// Timestamps of the kernel, such as those of files, are unchanged as well.
pub struct WallClock {
    folder: Folder,
    library: String,
}

const DAY_S: i64 = 24 * 60 * 60;

impl WallClock {
    /// Creates a clock that shows noon of today.
    #[track_caller]
    pub fn new() -> WallClock {
        // `faketime` sets the path of its library for the loader.
        let line = ["-m", "-f", "+0", "printenv", "LD_PRELOAD"];
        let finished = run_program(Command::new("faketime").args(line)).ok();
        let clock = WallClock {
            folder: scratch(),
            library: finished.stdout.trim().to_owned(),
        };
        clock.set(0);
        clock
    }

    /// Sets the clock to noon of the day `days` days from today, so that no test reaches the end of
    /// a day.
    #[track_caller]
    pub fn set(&self, days: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.expect("this machine's clock is set").as_secs() as i64;
        let ahead_s = days * DAY_S + DAY_S / 2 - now_s % DAY_S;
        // Written at once: a partial file would be an invalid time.
        let new = self.folder.put("new", format!("{ahead_s:+}\n"));
        fs::rename(new, self.timestamp_file()).expect("a scratch directory can be written to");
    }

    fn timestamp_file(&self) -> PathBuf {
        self.folder.join("ahead")
    }

    /// Makes a command use this clock.
    pub fn rule<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", self.timestamp_file())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1")
    }

    /// Returns the date of the clock, like `2026-11-22`, as a command prints it.
    #[track_caller]
    pub fn day(&self) -> String {
        let mut date = Command::new("date");
        let day = run_program(self.rule(date.args(["-u", "+%F"]))).ok().stdout;
        day.trim().to_owned()
    }
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock::new()
    }
}
