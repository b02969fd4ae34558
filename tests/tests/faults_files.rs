//! The state of the disk after a run that fails or is interrupted: complete messages only. No
//! process may be left either.
//!
//! The long message consists of many names of one file of zeros, which take little space at the
//! source and none at the destination.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill, messages, names, wait_for_partial};
use flitcast_tests::processes::until;
use flitcast_tests::run::begin;
use flitcast_tests::{Folder, Running, flitcast, scratch};
use rustix::process::Signal;

const LONG: u64 = 40 << 30;

/// P0 - P1 - P2, with a message being written that takes half a minute.
struct Transfer {
    dir: Folder,
    running: Running,
    short: &'static str,
    long: &'static str,
}

impl Transfer {
    fn start(operation: &str) -> Transfer {
        Transfer::start_by(&[], operation)
    }

    /// Starts it with another program, which becomes `flitcast`. In a scatter P2 has its message,
    /// which is sent first, and P1's is in transit; in a gather P0 has P1's, which arrives first.
    fn start_by(launcher: &[&str], operation: &str) -> Transfer {
        let (short, long) = match operation {
            "scatter" => ("p2", "p1"),
            _ => ("p1", "p2"),
        };
        let dir = scratch();
        let input = dir.join("input");
        fill(&input.join(short).join("one"), 200_000);
        fill(&input.join(short).join("two/three"), 1);
        flitcast_tests::files::long(&input.join(long), LONG);
        let line = format!("{operation} --tree path:3 -v --input @/input --output @/output");
        let program = flitcast().to_str().expect("it is UTF-8");
        let mut words = launcher.iter().copied().chain([program]);
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).args(dir.words(&line));
        let mut running = begin(command);
        running.wait_for(&["triggered"]);
        let transfer = Transfer {
            dir,
            running,
            short,
            long,
        };
        let output = transfer.output();
        until("the short message is there", || output.join(short).is_dir());
        wait_for_partial(&output);
        // From now on, it is kept.
        until("heads of its entries are written", || {
            names(&output).iter().any(|name| name.ends_with(".heads"))
        });
        transfer
    }

    fn output(&self) -> PathBuf {
        self.dir.join("output")
    }

    /// Ends the run and returns its exit status. Checks that complete messages are left, and
    /// nothing else.
    fn ends(self, end: impl FnOnce(Running) -> Option<i32>) -> Option<i32> {
        let output = self.output();
        let Transfer {
            dir,
            running,
            short,
            long,
        } = self;
        let code = end(running);
        // No process is left that could remove files later.
        assert_eq!(messages(&output), [short]);
        let mut hidden = names(&output);
        hidden.retain(|name| name != short);
        let count = |end: &str| hidden.iter().filter(|name| name.ends_with(end)).count();
        // If the coordinator was killed, the message's receipt is beside it.
        let receipts = usize::from(code.is_none());
        let counts = [".toml", ".receipt", ".partial", ".heads"].map(count);
        assert_eq!(counts, [1, receipts, 1, 1], "{hidden:?}");
        for name in hidden {
            flitcast_node::payload::remove(&output.join(name)).expect("it is there");
        }
        let expected = dir.join("input");
        // Too long to be read for a comparison.
        fs::remove_dir_all(expected.join(long)).expect("it is there");
        assert_same_below(&expected, &output);
        code
    }
}

#[test]
fn a_pe_dies_while_files_are_under_way() {
    for (operation, pe) in ["scatter", "gather"]
        .into_iter()
        .flat_map(|it| [(it, 0), (it, 1), (it, 2)])
    {
        let code = Transfer::start(operation).ends(|running| {
            running.pe(pe).signal(Signal::KILL);
            let finished = running.finish();
            finished.stderr_has(&[&format!("P{pe} was killed by signal 9")]);
            finished.code
        });
        assert_eq!(code, Some(1), "P{pe}");
    }
}

#[test]
fn ctrl_c_while_files_are_under_way() {
    for operation in ["scatter", "gather"] {
        Transfer::start(operation).ends(|running| {
            let finished = running.interrupt();
            finished.stderr_has(&["interrupted"]);
            assert_eq!(finished.stdout, "");
            finished.code
        });
    }
}

/// Started with SIGHUP ignored, as by `nohup`.
#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    let launcher = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let transfer = Transfer::start_by(&launcher, "scatter");
    let code = transfer.ends(|running| {
        running.signal(Signal::HUP);
        running.signal(Signal::INT);
        running.finish().code
    });
    assert_eq!(code, Some(130), "SIGINT ended it");
}

/// A killed coordinator cannot remove files; its PEs detect that and do.
#[test]
fn the_coordinator_is_killed_while_files_are_under_way() {
    for operation in ["scatter", "gather"] {
        let code = Transfer::start(operation).ends(|running| running.kill().code);
        assert_eq!(code, None, "a signal ended it");
    }
}
