//! PEs started by others run commands only if their start permits that.

use std::fs;

use flitcast_tests::files::names;
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::processes::until;

/// P0 with P1 and P2.
const TREE: [u32; 2] = [0, 0];

/// Returns a cluster with two shards, and folders to work in.
fn cluster() -> Joining {
    let cluster = Joining::new(&TREE, "60s");
    fs::create_dir(cluster.path("in")).expect("it can be made");
    for (pe, text) in [(1, "one"), (2, "two two")] {
        fs::write(cluster.path(&format!("in/p{pe}")), text).expect("it can be written");
    }
    cluster
}

const MAP: &str = "map --input DIR/in --output DIR/out --work DIR/work";

/// Starts `map` with these options and this script, after the options that `Joining` appends.
fn map(cluster: &Joining, more: &str, script: &str) -> flitcast_tests::Running {
    let path = |name: &str| cluster.path(name).display().to_string();
    let line = format!("{MAP} {more} --cluster DIR/cluster.toml").replace("DIR", &path(""));
    let words = line.split_whitespace().map(str::to_owned);
    let command = ["--", "sh", "-c", script].map(str::to_owned);
    flitcast_tests::start(words.chain(command))
}

#[test]
fn who_was_started_for_it_runs_commands_and_clears_away() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let credentials = format!("--credentials {}", cluster.path("ca").display());
    let script = "cat; echo from $FLITCAST_PE >&2";
    let done = map(&cluster, &credentials, script).finish().ok();
    done.says(&["P1| from 1\n", "P2| from 2\n"]);
    let result = fs::read_to_string(cluster.path("out/p2/stdout"));
    assert_eq!(result.expect("it is there"), "two two");
    let left = fs::read_dir(cluster.path("work")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the working folder is gone");
    dismiss(nodes);
}

#[test]
fn the_working_folder_is_private_there_as_well() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let more = format!("--keep-work --credentials {}", cluster.path("ca").display());
    map(&cluster, &more, "cat").finish().ok();
    let work = cluster.path("work");
    for name in names(&work) {
        assert_eq!(super::mode(&work.join(name)), 0o700);
    }
    dismiss(nodes);
}

#[test]
fn who_was_not_is_named_before_anything_is_sent() {
    let cluster = cluster();
    let mut nodes: Vec<_> = (0..2)
        .map(|pe| cluster.node(pe, "--credentials DIR/ca --stay --commands"))
        .collect();
    nodes.push(cluster.node(2, "--credentials DIR/ca --stay"));
    let credentials = format!("--credentials {}", cluster.path("ca").display());
    let refused = map(&cluster, &credentials, "touch ran").finish();
    let told = "P2 may not run commands: start it with `flitcast node --join .. --commands`";
    refused.fails(1, &[told]);
    assert!(!cluster.path("out").exists());
    assert!(!cluster.path("work").exists());
    dismiss(nodes);
}

#[test]
fn one_that_dies_is_named_and_the_others_are_gathered_without_it() {
    let cluster = cluster();
    let mut nodes = cluster.nodes("--stay --commands");
    let credentials = format!("--credentials {}", cluster.path("ca").display());
    let marker = cluster.path("marker");
    let shown = marker.display();
    let script = format!("cat; [ $FLITCAST_PE != 2 ] || {{ touch '{shown}'; sleep 1000; }}");
    let running = map(&cluster, &credentials, &script);
    until("the command runs at P2", || marker.exists());
    nodes.remove(2).kill();
    let failed = running.finish();
    let told = "error: P2: is gone: its process has ended";
    failed.fails(1, &[told, "may be left: P2 is gone\n"]);
    assert_eq!(names(&cluster.path("out")), ["p1"]);
    dismiss(nodes);
}

#[test]
fn results_of_another_time_are_found_before_a_shard_is_sent() {
    let cluster = cluster();
    let nodes = cluster.nodes("--stay --commands");
    let older = cluster.path("out/p2");
    flitcast_tests::files::fill(&older, 10);
    let credentials = format!("--credentials {}", cluster.path("ca").display());
    let marker = cluster.path("marker");
    let script = format!("touch '{}'", marker.display());
    let refused = map(&cluster, &credentials, &script).finish();
    refused.fails(2, &["/out/p2 at P0 on h0\n", "--force"]);
    assert!(!marker.exists(), "a command was run");
    assert_eq!(names(&cluster.path("out")), ["p2"]);
    let forced = format!("{credentials} --force");
    map(&cluster, &forced, &script).finish().ok();
    assert!(older.join("stdout").exists());
    dismiss(nodes);
}

#[test]
fn nobody_runs_commands_over_plain_connections_that_join() {
    let cluster = cluster();
    let refused = map(&cluster, "--insecure", "cat").finish();
    let told = "PEs that join with --insecure play synthetic messages only";
    refused.fails(2, &[told]);
    assert!(!cluster.path("out").exists());
    assert!(!cluster.path("work").exists());
}

#[test]
fn hosts_of_their_own_need_a_folder_to_work_in() {
    let cluster = cluster();
    let line = "map --input DIR/in --output DIR/out --cluster DIR/cluster.toml -- true";
    let line = line.replace("DIR", &cluster.path("").display().to_string());
    let refused = flitcast_tests::run(line.split(' '));
    refused.fails(2, &["give --work DIR, a folder on each of them"]);
}
