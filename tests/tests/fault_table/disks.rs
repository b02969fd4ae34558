//! Row 13: a disk that is full, and a directory that goes away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{fill, messages, names, sparse};
use flitcast_tests::lab::said;
use flitcast_tests::privileges::needs_root;
use flitcast_tests::processes::eventually;
use flitcast_tests::{run, scratch, start};
use rustix::process::Signal;
use std::time::Instant;

use crate::{alone, measured, says, words};

/// A file system of its own, in memory.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// On a folder that is made if it is not there, with these options of tmpfs.
    #[track_caller]
    pub fn mounted(path: &Path, options: &str) -> SmallDisk {
        needs_root("a small file system");
        fs::create_dir_all(path).expect("it can be made");
        let mut mount = Command::new("mount");
        let said = said(
            mount
                .args(["-t", "tmpfs", "-o", options, "tmpfs"])
                .arg(path),
        );
        assert_eq!(said.code, Some(0), "it is not mounted: {said:?}");
        SmallDisk(path.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn row_13_a_disk_is_full() {
    let _alone = alone();
    let dir = scratch();
    let disk = SmallDisk::mounted(&dir.path().join("disk"), "size=8m");
    let input = dir.path().join("input");
    fill(&input.join("p1/short"), 1000);
    fill(&input.join("p2/long"), 20 << 20);
    let output = disk.0.join("out");
    fill(&output.join("p2/old"), 2000);
    let line = format!(
        "scatter --tree path:3 --force --input {} --output {}",
        input.display(),
        output.display()
    );
    let began = Instant::now();
    let finished = run(words(&line));
    measured("13", "disk full", Some(1.0), began.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let path = output.display().to_string();
    says(
        &finished,
        &[
            "error: P2: ",
            &path,
            "No space left on device",
            "left without: P2, ",
        ],
    );
    // The old one is intact, and nothing half-written stands beside it.
    let left = messages(&output);
    assert!(
        left.iter().all(|name| name == "p1" || name == "p2"),
        "{left:?}"
    );
    assert_eq!(names(&output.join("p2")), ["old"]);
    assert_eq!(
        fs::metadata(output.join("p2/old"))
            .expect("it is there")
            .len(),
        2000
    );
}

#[test]
fn row_13_the_output_directory_goes_away() {
    let _alone = alone();
    let dir = scratch();
    let (input, output) = (dir.path().join("input"), dir.path().join("out"));
    fs::create_dir_all(input.join("p1")).expect("it can be made");
    sparse(&input.join("p1/long"), 300 << 20);
    let line = format!(
        "scatter --tree path:2 -v --input {} --output {}",
        input.display(),
        output.display()
    );
    let mut running = start(words(&line));
    running.wait_for(&["triggered"]);
    eventually("something arrives", || {
        let is_there = output.is_dir() && !names(&output).is_empty();
        is_there.then_some(())
    });
    // So that it is not done before.
    let victim = running.pe(1);
    victim.signal(Signal::STOP);
    fs::remove_dir_all(&output).expect("nobody writes");
    let began = Instant::now();
    victim.signal(Signal::CONT);
    let finished = running.finish();
    measured("13", "output directory removed", Some(1.0), began.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    says(
        &finished,
        &[
            "error: P1: ",
            &output.display().to_string(),
            "No such file or directory",
        ],
    );
    assert!(!output.exists() || names(&output).is_empty());
}

#[test]
fn row_13_a_disk_is_full_of_what_a_command_says_on_stderr() {
    let _alone = alone();
    let dir = scratch();
    let disk = SmallDisk::mounted(&dir.path().join("disk"), "size=8m");
    let input = dir.path().join("input");
    fill(&input.join("p1"), 1);
    let line = format!(
        "map --tree path:2 --input {} --output {} --work {} -- sh -c",
        input.display(),
        dir.path().join("out").display(),
        disk.0.display()
    );
    let script = "head -c 12000000 /dev/zero | tr '\\0' x >&2";
    let finished = run([words(&line), vec![script.to_owned()]].concat());
    assert_eq!(finished.code, Some(1), "{}", finished.stdout);
    let told =
        "error: P1: it ended with exit status 0, but what it said on stderr cannot be written: `";
    says(&finished, &[told, "/stderr`: No space left on device"]);
    assert_eq!(names(&disk.0).len(), 0, "the working folder is gone");
}
