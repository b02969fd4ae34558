//! PEs started by others run commands only if their start permits that.

use flitcast_tests::files::{fill, names, names_if_any};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::processes::until;
use flitcast_tests::{Running, scratch, start};
use rustix::process::Signal;

/// P0 with P1 and P2.
const TREE: [u32; 2] = [0, 0];

/// Returns a cluster with two shards, and folders to work in.
fn cluster() -> Joining {
    let cluster = Joining::new(&TREE, "60s");
    for (name, text) in [("in/p1", "one"), ("in/p2", "two two")] {
        cluster.dir.put(name, text);
    }
    cluster
}

/// Starts `map` with these options and this script.
fn map(cluster: &Joining, more: &str, script: &str) -> Running {
    let line = "map --input @/in --output @/out --work @/work --cluster @/cluster.toml";
    let words = cluster.dir.words(&format!("{line} {more}"));
    let command = ["--", "sh", "-c", script].map(str::to_owned);
    start(words.into_iter().chain(command))
}

/// Starts `map` with credentials.
fn guarded(cluster: &Joining, more: &str, script: &str) -> Running {
    map(cluster, &format!("--credentials @/ca {more}"), script)
}

#[test]
fn pes_started_for_it_run_commands_and_clean_up() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let script = "cat; echo from $FLITCAST_PE >&2";
    let done = guarded(&cluster, "", script).finish().ok();
    done.stderr_has(&["P1| from 1\n", "P2| from 2\n"]);
    assert_eq!(cluster.dir.read("out/p2/stdout"), "two two");
    let work = cluster.path("work");
    assert_eq!(names_if_any(&work), [""; 0], "the working folder is gone");

    let more = "--keep-work --force";
    guarded(&cluster, more, "cat").finish().ok();
    for name in names(&work) {
        assert_eq!(super::mode(&work.join(name)), 0o700, "it is private");
    }
    dismiss(nodes);
}

#[test]
fn pes_not_started_for_it_are_named_before_anything_is_sent() {
    let cluster = cluster();
    let mut nodes: Vec<_> = (0..2)
        .map(|pe| cluster.node(pe, "--credentials DIR/ca --stay --commands"))
        .collect();
    nodes.push(cluster.node(2, "--credentials DIR/ca --stay"));
    let refused = guarded(&cluster, "", "touch ran").finish();
    let expected = "P2 h2 may not run commands: start it with `flitcast node --join .. --commands`";
    refused.fails(1, &[expected]);
    assert!(!cluster.path("out").exists());
    assert!(!cluster.path("work").exists());
    dismiss(nodes);
}

#[test]
fn a_dead_pe_is_named_and_the_others_are_gathered() {
    let cluster = cluster();
    let mut nodes = cluster.nodes("--stay --commands");
    let marker = cluster.path("marker");
    let shown = marker.display();
    let script = format!("cat; [ $FLITCAST_PE != 2 ] || {{ touch '{shown}'; sleep 1000; }}");
    let running = guarded(&cluster, "", &script);
    until("the command runs at P2", || marker.exists());
    nodes.remove(2).kill();
    let failed = running.finish();
    let expected = "error: P2 h2: is gone: its process has ended";
    failed.fails(1, &[expected, "may be left: P2 h2 is gone\n"]);
    assert_eq!(names(&cluster.path("out")), ["p1"]);
    dismiss(nodes);
}

#[test]
fn results_of_another_time_are_found_before_a_shard_is_sent() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let older = cluster.path("out/p2");
    fill(&older, 10);
    let marker = cluster.path("marker");
    let script = format!("touch '{}'", marker.display());
    let refused = guarded(&cluster, "", &script).finish();
    refused.fails(2, &["/out/p2 at P0 h0\n", "--force"]);
    assert!(!marker.exists(), "a command was run");
    assert_eq!(names(&cluster.path("out")), ["p2"]);
    guarded(&cluster, "--force", &script).finish().ok();
    assert!(older.join("stdout").exists());
    dismiss(nodes);
}

#[test]
fn pes_that_join_need_a_folder_to_work_in() {
    let cluster = cluster();
    let line = "map --input @/in --output @/out --cluster @/cluster.toml -- true";
    let refused = cluster.dir.run(line);
    refused.fails(
        2,
        &["give --work DIR, a folder below those that each of them lends"],
    );
}

/// P0 lists the shards, and moves the results to their places.
#[test]
fn shards_of_any_name_are_listed_by_p0() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    for name in ["a", "b", "c d", "e"] {
        cluster.dir.put(&format!("in/{name}/file"), name);
    }
    let script = "cat file 2>/dev/null || cat; [ '{}' != b ] || { echo no; exit 3; }";
    let options = "--joblog @/log --keep-work";
    let failed = guarded(&cluster, options, script).finish();
    failed.fails(
        1,
        &["error: b at P", "; it last printed: bno; its output is in "],
    );
    let out = cluster.path("out");
    assert_eq!(names(&out), ["a", "b.failed", "c d", "e", "p1", "p2"]);
    assert_eq!(cluster.dir.read("out/c d/stdout"), "c d");
    assert_eq!(cluster.dir.read("out/b.failed/stdout"), "bno\n");
    assert_eq!(cluster.dir.read("out/p1/stdout"), "one");

    let refused = guarded(&cluster, "", script).finish();
    refused.fails(2, &["/out/a exists already; --force replaces it"]);
    let script = "[ '{}' = b ] || exit 1; echo $FLITCAST_SHARD";
    let options = "--joblog @/log --resume";
    let done = guarded(&cluster, options, script).finish().ok();
    done.prints(&["  earlier      5 shards have results already\n", "1 of 1"]);
    assert_eq!(names(&out), ["a", "b", "c d", "e", "p1", "p2"]);
    assert_eq!(cluster.dir.read("out/b/stdout"), "b\n");
    assert_eq!(cluster.dir.read("log").lines().count(), 8);
    dismiss(nodes);
}

#[test]
fn an_interruption_gathers_what_those_that_join_have_done() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let [joblog, marker] = ["log", "marker"].map(|name| cluster.path(name));
    let script = format!(
        "cat; [ $FLITCAST_PE != 2 ] || {{ touch '{}'; sleep 1000; }}",
        marker.display()
    );
    let options = format!("--joblog {}", joblog.display());
    let running = guarded(&cluster, &options, &script);
    until("the command of P1 has ended, and that of P2 runs", || {
        let log = std::fs::read_to_string(&joblog).unwrap_or_default();
        log.lines().count() == 2 && marker.exists()
    });
    running.signal(Signal::INT);
    let ended = running.finish().with_code(130);
    ended.stderr_has(&["1 of 2 shards are done, in `", "--resume runs the others\n"]);
    assert_eq!(names(&cluster.path("out")), ["p1"]);
    let resumed = guarded(&cluster, &format!("{options} --resume"), "echo again; cat");
    resumed
        .finish()
        .ok()
        .prints(&["  earlier      1 shard has"]);
    assert_eq!(cluster.dir.read("out/p1/stdout"), "one");
    assert_eq!(cluster.dir.read("out/p2/stdout"), "again\ntwo two");
    dismiss(nodes);
}

const NAMED: &str = r#"
    coordinator = "127.0.6.1"
    [[pe]]
    name = "a"
    address = "127.0.6.2"
    [[pe]]
    name = "b"
    address = "127.0.6.3"
    parent = "a"
    [[pe]]
    name = "c"
    address = "127.0.6.4"
    parent = "a"
    [[pe]]
    name = "d"
    address = "127.0.6.5"
    parent = "a"
"#;

/// The entry `p3` has the number of its PE, and stays `p3`.
#[test]
fn entries_keep_their_names_wherever_a_map_names_them() {
    let dir = scratch();
    dir.put("cluster.toml", NAMED);
    for entry in ["b", "c", "p3"] {
        dir.put(&format!("in/{entry}"), entry);
    }
    let map = |more: &str, script: &str| {
        let line =
            "map --cluster @/cluster.toml --work @/ --input @/in --output @/out --joblog @/log";
        let mut words = dir.words(&format!("{line} {more} --"));
        words.extend(["sh", "-c", script].map(str::to_owned));
        flitcast_tests::run(words)
    };
    let script = "echo {} $FLITCAST_SHARD $FLITCAST_PE; echo at {} >&2; [ {} != c ] || exit 3";
    let failed = map("", script).with_code(1);
    let output = dir.shown("out");
    failed.stderr_has(&[
        "b| at b\n",
        "c| at c\n",
        "P3| at p3\n",
        &format!("error: P2 c: the command ended with exit status 3; it last printed: at c; its output is in {output}/c.failed\n"),
    ]);
    failed.prints(&["  P1 b  ", "  P2 c  ", "  P3 d  "]);
    assert_eq!(names(&dir.join("out")), ["b", "c.failed", "p3"]);
    assert_eq!(dir.read("out/b/stdout"), "b b 1\n");
    assert_eq!(dir.read("out/p3/stdout"), "p3 p3 3\n");
    let log = dir.read("log");
    let mut shards: Vec<&str> = log
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next_back())
        .collect();
    shards.sort_unstable();
    assert_eq!(shards, ["b", "c", "p3"]);
    map("--resume", "echo again {}")
        .ok()
        .prints(&["  earlier      2 shards have"]);
    assert_eq!(names(&dir.join("out")), ["b", "c", "p3"]);
    assert_eq!(dir.read("out/b/stdout"), "b b 1\n");
    assert_eq!(dir.read("out/c/stdout"), "again c\n");
    let report = map("--force --format json", "true").ok().report();
    let named = report.list("/pes").iter().map(|pe| pe["shard"].as_str());
    assert!(named.eq([Some("b"), Some("c"), Some("p3")]));
}
