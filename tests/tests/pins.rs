//! Output that must not change while code is moved: that of several hundred command lines that run no
//! round: plans of all operations and algorithms, in steps and over given links, tables, pictures,
//! help, errors. `storm.rs` has a hash of the traces of simulated rounds.
//!
//! `pins.txt` has a line for each command line, with a hash of its exit status and output. After an
//! intended change, `FLITCAST_PINS=write cargo test pins::` updates the file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use flitcast_tests::run;
use twox_hash::XxHash3_64;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pins.txt")
}

/// Runs a command line, and returns a hash of its exit status and output.
fn hash(line: &str) -> u64 {
    let ended = run(line.split(' '));
    let output = format!("{:?}\n{}\n{}", ended.code, ended.stdout, ended.stderr);
    XxHash3_64::oneshot(output.as_bytes())
}

/// Runs all command lines, as many at once as there are cores, and returns their hashes.
fn hashes(lines: &[&str]) -> Vec<u64> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let places = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
        let places = places.take_while(|place| *place < lines.len());
        places.map(|place| (place, hash(lines[place]))).collect()
    };
    let mut all: Vec<(usize, u64)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let each = running.into_iter().map(|it| it.join().expect("it ends"));
        each.flat_map(|hashes: Vec<_>| hashes).collect()
    });
    all.sort_unstable();
    all.into_iter().map(|(_, hash)| hash).collect()
}

#[test]
fn commands_print_what_they_printed() {
    let text = std::fs::read_to_string(file()).expect("it is there");
    let pins: Vec<(&str, &str)> = text
        .lines()
        .map(|line| line.split_once(' ').expect("a hash and a command line"))
        .collect();
    let lines: Vec<&str> = pins.iter().map(|(_, line)| *line).collect();
    let hashes = hashes(&lines)
        .into_iter()
        .map(|hash| format!("{hash:016x}"));
    let found: Vec<(String, &str)> = hashes.zip(lines).collect();
    if std::env::var("FLITCAST_PINS").as_deref() == Ok("write") {
        let text: String = found
            .iter()
            .map(|(hash, line)| format!("{hash} {line}\n"))
            .collect();
        std::fs::write(file(), text).expect("it can be written");
        return;
    }
    let changed: Vec<&str> = pins
        .iter()
        .zip(&found)
        .filter(|((pinned, _), (hash, _))| pinned != hash)
        .map(|(_, (_, line))| *line)
        .collect();
    let changed = changed.join("\n");
    assert!(changed.is_empty(), "other output than before of\n{changed}");
}
