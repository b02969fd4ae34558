//! The time at which files are durable, `--sync`. `fault_table::slow` records what is synced.

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{run, scratch};

#[test]
fn files_arrive_whatever_is_synced() {
    let dir = scratch();
    // More than are synced one by one, a long one, and a message that is a file.
    for file in 0..20 {
        fill(&dir.join(format!("in/p1/d/{file}")), 1000 * file);
    }
    fill(&dir.join("in/p1/long"), 3 << 20);
    fill(&dir.join("in/p2"), 100);
    for sync in ["message", "file", "none"] {
        for line in ["scatter --tree path:3", "gather --tree star:3"] {
            let output = format!("{sync}-{}", &line[..6]);
            let files = format!("--input @/in --output @/{output} --sync {sync}");
            let finished = dir.run(&format!("{line} {files}")).ok();
            assert_same_below(&dir.join("in"), &dir.join(&output));
            let is_mentioned = finished
                .stdout
                .contains("; --sync none: the disk may not have them yet");
            assert_eq!(is_mentioned, sync == "none", "{}", finished.stdout);
        }
    }
}

/// `serial` and `pipelined` were words of `--sync` before `--token`.
#[test]
fn old_and_new_options_take_the_modes_of_certification() {
    let gather = "gather --tree star:3 --size 1 --algorithm certification";
    for mode in ["serial", "pipelined"] {
        for option in ["sync", "token"] {
            let line = format!("{gather} --{option} {mode} --format json");
            let report = run(line.split(' ')).report();
            assert_eq!(report.value("/sync"), mode, "{line}");
        }
    }
}
