//! `flitcast watch`: the state that a command publishes while it runs, and its removal at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::names_if_any;
use flitcast_tests::processes::eventually;
use flitcast_tests::run::{begin, start_with};
use flitcast_tests::{Finished, Folder, Running, flitcast, rows, scratch};
use serde_json::Value;

/// Commands of one test, which are not watched by another.
struct Place(Folder);

impl Place {
    fn new() -> Place {
        Place(scratch())
    }

    fn start(&self, line: &str) -> Running {
        let environment = [("XDG_RUNTIME_DIR", self.0.path())];
        start_with(self.0.words(line), &environment)
    }

    /// Starts a map of these shards at two PEs. The script gets the path of a file `go`.
    fn map(&self, shards: &[&str], options: &str, script: &str) -> Running {
        for shard in shards {
            self.0.put(&format!("in/{shard}"), "x");
        }
        self.0.put("script", script);
        let files = "--input @/in --output @/out -- sh @/script @/go";
        self.start(&format!("map --tree star:3 {options} {files}"))
    }

    fn run(&self, line: &str) -> Finished {
        self.start(line).finish()
    }

    /// Starts a gather that takes some twelve seconds; it is interrupted before.
    fn long(&self) -> Running {
        self.start("gather --tree path:4 --size 5MiB --link rate=10mbit -v")
    }

    fn directory(&self) -> PathBuf {
        self.0.join("flitcast")
    }

    fn files(&self) -> Vec<PathBuf> {
        let names = names_if_any(&self.directory()).into_iter();
        names.map(|name| self.directory().join(name)).collect()
    }
}

fn picture(place: &Place) -> Option<Value> {
    let shown = place.run("watch --once --format json");
    (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout).expect("it is JSON"))
}

fn mode(path: &Path) -> u32 {
    let found = fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o777
}

#[test]
fn a_round_is_shown_while_it_runs() {
    let place = Place::new();
    let run = place.long();
    let now = eventually("bytes cross the last edge", || {
        let now = picture(&place)?;
        let rate = now.pointer("/pes/1/edge/up_bytes_per_s")?.as_u64()?;
        (rate > 100_000 && now["moved_bytes"].as_u64()? > 0).then_some(now)
    });
    assert_eq!(now["operation"], "gather");
    assert_eq!(now["cluster"], "path:4");
    assert_eq!(now["phase"], "round");
    assert_eq!(now["bytes"], 3 * 5 * 1024 * 1024);
    let number = |name: &str| now[name].as_u64().expect(name);
    assert!(number("moved_bytes") < number("bytes"));
    // 15 MiB at 10 Mbit/s.
    assert!((10..20).contains(&(number("predicted_ns") / 1_000_000_000)));
    assert!(number("elapsed_ns") > 0 && number("left_ns") > 0);
    let pes = now["pes"].as_array().expect("it has PEs");
    assert_eq!(pes.len(), 4);
    for (i, pe) in pes.iter().enumerate() {
        assert_eq!(pe["pe"], i);
        let parent = i.checked_sub(1).map_or(Value::Null, Value::from);
        assert_eq!(pe["parent"], parent);
        assert_eq!(pe["address"], "127.0.0.1");
        assert_eq!(pe["pid"], run.pe(i as u32).pid);
        assert!(pe["resident_bytes"].as_u64().expect("a number") > 1_000_000);
    }
    assert_eq!(mode(&place.directory()), 0o700);

    let table = place.run("watch --once").ok().stdout;
    let title = "gather on path:4 by shoulder-tap: 4 PEs, process ";
    assert!(table.starts_with(title), "{table}");
    for part in ["round 1 of 1", " of 15 MiB", "predicted ", "└─ P3", "MB/s"] {
        assert!(table.contains(part), "no `{part}` in\n{table}");
    }
    assert!(!table.contains('\x1b'), "{table}");
    run.interrupt();
    assert_eq!(place.files(), Vec::<PathBuf>::new());
}

/// A map of four shards: `a` and `d` wait for a file, and `b` fails. P2 is
/// with `d` when `c` waits behind `a`.
#[test]
fn a_map_is_shown_with_its_shards() {
    let place = Place::new();
    let script =
        "case $FLITCAST_SHARD in b) exit 1;; *) until [ -e $1 ]; do sleep 0.01; done;; esac";
    let run = place.map(&["a", "b", "c", "d"], "--jobs 1", script);
    let now = eventually("all have begun", || {
        let now = picture(&place)?;
        let state = |pe: usize| now["pes"][pe]["state"].as_str();
        (state(1) == Some("running a") && state(2) == Some("running d")).then_some(now)
    });
    for (name, value) in [
        ("operation", "map"),
        ("phase", "run"),
        ("cluster", "star:3"),
    ] {
        assert_eq!(now[name], value);
    }
    let shards = serde_json::json!({ "waiting": 1, "running": 2, "done": 0, "failed": 1 });
    assert_eq!(now["shards"], shards);
    let table = place.run("watch --once").ok().stdout;
    assert!(
        table.starts_with("map on star:3: 3 PEs, process "),
        "{table}"
    );
    for part in [
        "\n0 of 4 shards done, 2 running, 1 waiting, 1 failed\n",
        "  PE     host       state         memory\n",
        "  ├─ P1  127.0.0.1  running a  ",
        "  P0     127.0.0.1  no shard  ",
    ] {
        assert!(table.contains(part), "no `{part}` in\n{table}");
    }
    place.0.put("go", "");
    run.finish().with_code(1);
}

/// The shard `a` has been moved to P2, by a cluster of P0 and P2.
#[test]
fn a_map_is_shown_with_all_pes_after_a_move() {
    let place = Place::new();
    let script = "[ $FLITCAST_SHARD = b ] || until [ -e $1 ]; do sleep 0.01; done";
    let run = place.map(&["a", "b"], "--speculate 1ms", script);
    let now = eventually("both run it", || {
        let now = picture(&place)?;
        let runs_it = |pe: usize| now["pes"][pe]["state"] == "running a";
        (runs_it(1) && runs_it(2)).then_some(now)
    });
    assert_eq!(now["operation"], "map");
    assert_eq!(now["elapsed_ns"], Value::Null);
    let shards = serde_json::json!({ "waiting": 0, "running": 1, "done": 1, "failed": 0 });
    assert_eq!(now["shards"], shards);
    place.0.put("go", "");
    run.finish().ok();
}

#[test]
fn without_a_command_there_is_nothing_to_watch() {
    let place = Place::new();
    for [line, why] in rows(
        "
        watch | no command is running
        watch --pid 1 | process 1 is not a running flitcast command
        watch --wait 5 | has no unit
        watch --wait 10ms | no command is running
    ",
    ) {
        place.run(line).fails(2, &[why]);
    }
}

#[test]
fn a_waiting_watch_shows_the_next_command_and_its_end() {
    let place = Place::new();
    let watch = place.start("watch --wait 30s --format json");
    // Long enough for several pictures.
    let round = place.start("gather --tree path:3 --size 1MiB --link rate=10mbit");
    round.finish().ok();
    let seen = watch.finish().ok().stdout;
    let pictures = seen.lines().map(serde_json::from_str::<Value>);
    let pictures: Vec<Value> = pictures.map(|one| one.expect("it is JSON")).collect();
    assert!(pictures.len() > 1, "{seen}");
    assert_eq!(pictures[pictures.len() - 1]["cluster"], "path:3");
    let mut moved = pictures.iter().map(|one| one["moved_bytes"].as_u64());
    assert!(moved.any(|bytes| bytes > Some(0)), "{seen}");
}

#[test]
fn one_of_several_commands_is_chosen() {
    let place = Place::new();
    let (one, other) = (place.long(), place.long());
    let refused = eventually("both are seen", || {
        let refused = place.run("watch");
        refused.stderr.contains("several").then_some(refused)
    });
    for run in [&one, &other] {
        let pid = run.pid();
        refused.fails(2, &[&format!("{pid}  gather on path:4")]);
        let shown = place.run(&format!("watch --once --pid {pid}")).ok();
        shown.prints(&[&format!("process {pid}\n")]);
    }
    // A killed command leaves its file, which does not count as a running command.
    one.kill();
    let shown = place.run("watch --once").ok();
    shown.prints(&[&format!("process {}\n", other.pid())]);
    other.interrupt();
    assert_eq!(place.files(), Vec::<PathBuf>::new());
}

#[test]
fn a_command_runs_where_nobody_can_watch_it() {
    let place = Place::new();
    fs::write(place.directory(), "in the way").expect("it can be written");
    place.run("gather --tree path:3 --size 1MiB").ok();
    place.run("watch").fails(2, &["is not a directory"]);
}

/// The file of its state is a pipe without a reader, so opening it never returns.
#[test]
fn a_disk_that_hangs_does_not_keep_a_command_from_ending() {
    let place = Place::new();
    let script = r#"mkdir -m 700 "$XDG_RUNTIME_DIR/flitcast" &&
        mkfifo "$XDG_RUNTIME_DIR/flitcast/.$$.part" && exec "$0" "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(flitcast());
    // Half a second, in which the picture is written twice.
    let line = "gather --tree path:2 --size 640KiB --link rate=10mbit";
    command
        .args(line.split(' '))
        .env("XDG_RUNTIME_DIR", place.0.path());
    begin(command).finish().ok();
}
