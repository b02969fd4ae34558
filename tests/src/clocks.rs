//! Processes that read another clock than this machine's, as those of another host do, or of some
//! containers: each has a time namespace, whose monotonic clock is ahead. Needs root, and
//! `unshare` (Debian's util-linux).

use std::path::Path;

use crate::privileges::needs_root;

/// How far that clock is ahead: no time of a test comes near it.
pub const AHEAD_S: u64 = 100_000;

/// Words that `run` of a cluster file puts ahead of a PE's command, as TOML. On another host, the
/// boot's id is what this file has; in a container it is this machine's.
#[track_caller]
pub fn with_another_clock(boot_id: Option<&Path>) -> String {
    needs_root("a clock of its own");
    let moved = boot_id.map_or("true".to_owned(), |file| {
        let file = file.display();
        format!("mount --bind '{file}' /proc/sys/kernel/random/boot_id")
    });
    let (ahead, script) = (
        AHEAD_S.to_string(),
        format!("{moved} && exec \"$0\" \"$@\""),
    );
    let words = [
        "unshare",
        "--mount",
        "--time",
        "--monotonic",
        &ahead,
        "--boottime",
        &ahead,
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        &script,
    ];
    serde_json::to_string(&words).expect("words are JSON, and so TOML")
}
