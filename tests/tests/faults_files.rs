//! What a run that fails or is broken off leaves on the disk: whole messages, and
//! nothing else. And its processes: none, whoever was killed.
//!
//! The long message is a sparse file. It takes no room where it is read, and where it
//! arrives only as much as comes before the end of the test, which is near.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{assert_same_below, fill, messages, names, sparse};
use flitcast_tests::processes::eventually;
use flitcast_tests::{Running, scratch, start};
use rustix::process::Signal;
use tempfile::TempDir;

const LONG: u64 = 40 << 30;

/// P0 - P1 - P2, with a message being written that takes half a minute.
struct Transfer {
    dir: TempDir,
    running: Running,
    short: &'static str,
    long: &'static str,
}

impl Transfer {
    /// P2 has its message, which goes first; P1's is on its way.
    #[track_caller]
    fn scatter() -> Transfer {
        Transfer::start("scatter", "p2", "p1")
    }

    /// P0 has P1's message, which is first to arrive; P2's is on its way.
    #[track_caller]
    fn gather() -> Transfer {
        Transfer::start("gather", "p1", "p2")
    }

    #[track_caller]
    fn start(operation: &str, short: &'static str, long: &'static str) -> Transfer {
        let dir = scratch();
        let path = |name: &str| {
            dir.path()
                .join(name)
                .to_str()
                .expect("it is UTF-8")
                .to_owned()
        };
        fill(&dir.path().join("input").join(short).join("one"), 200_000);
        fill(&dir.path().join("input").join(short).join("two/three"), 1);
        fs::create_dir(dir.path().join("input").join(long)).expect("it can be made");
        sparse(&dir.path().join("input").join(long).join("long"), LONG);
        let (input, output) = (path("input"), path("output"));
        let files = ["--input", &input, "--output", &output];
        let mut running = start([operation, "--tree", "path:3", "-v"].iter().chain(&files));
        running.wait_for(&["triggered"]);
        let transfer = Transfer {
            dir,
            running,
            short,
            long,
        };
        eventually(
            "the short message is there, and the long one arrives",
            || {
                let output = transfer.output();
                let there = output.is_dir() && output.join(short).is_dir();
                (there && !staging(&output).is_empty()).then_some(())
            },
        );
        transfer
    }

    fn output(&self) -> PathBuf {
        self.dir.path().join("output")
    }

    /// Ends the run in some way, and says how it ended. Then what has
    /// arrived is there, whole, and nothing else.
    #[track_caller]
    fn ends(self, end: impl FnOnce(Running) -> Option<i32>) -> Option<i32> {
        let output = self.output();
        let Transfer {
            dir,
            running,
            short,
            long,
        } = self;
        let code = end(running);
        // No process is left that could tidy up: it was done, or never will be.
        assert_eq!(messages(&output), [short]);
        let mut record = names(&output);
        record.retain(|name| name != short);
        assert_eq!(record.len(), usize::from(code == Some(1)), "{record:?}");
        for record in record {
            fs::remove_file(output.join(record)).expect("it is there");
        }
        let expected = dir.path().join("input");
        // Too long to be read for a comparison.
        fs::remove_dir_all(expected.join(long)).expect("it is there");
        assert_same_below(&expected, &output);
        code
    }
}

/// Names of what is not a whole message.
fn staging(output: &Path) -> Vec<String> {
    let mut names = names(output);
    names.retain(|name| name.starts_with(".flitcast-"));
    names
}

/// Kills a PE; the command has then failed.
#[track_caller]
fn kill_pe(running: Running, pe: u32) -> Option<i32> {
    running.pe(pe).signal(Signal::KILL);
    let finished = running.finish();
    let cause = format!("P{pe} was killed by signal 9");
    assert!(finished.stderr.contains(&cause), "{}", finished.stderr);
    finished.code
}

#[test]
fn a_pe_dies_while_files_are_scattered() {
    for pe in [0, 1, 2] {
        let code = Transfer::scatter().ends(|running| kill_pe(running, pe));
        assert_eq!(code, Some(1), "P{pe}");
    }
}

#[test]
fn a_pe_dies_while_files_are_gathered() {
    for pe in [0, 1, 2] {
        let code = Transfer::gather().ends(|running| kill_pe(running, pe));
        assert_eq!(code, Some(1), "P{pe}");
    }
}

#[test]
fn ctrl_c_while_files_are_under_way() {
    for transfer in [Transfer::scatter as fn() -> Transfer, Transfer::gather] {
        let code = transfer().ends(|running| {
            running.signal(Signal::INT);
            let finished = running.finish();
            assert!(
                finished.stderr.contains("interrupted"),
                "{}",
                finished.stderr
            );
            assert_eq!(finished.stdout, "");
            finished.code
        });
        assert_eq!(code, Some(130));
    }
}

#[test]
fn a_request_to_terminate_is_obeyed_as_ctrl_c_is() {
    let code = Transfer::scatter().ends(|running| {
        running.signal(Signal::TERM);
        running.finish().code
    });
    assert_eq!(code, Some(130));
}

/// It cannot tidy up; its PEs notice and do.
#[test]
fn the_coordinator_is_killed_while_files_are_under_way() {
    for transfer in [Transfer::scatter as fn() -> Transfer, Transfer::gather] {
        let code = transfer().ends(|running| running.kill().code);
        assert_eq!(code, None, "a signal ended it");
    }
}
