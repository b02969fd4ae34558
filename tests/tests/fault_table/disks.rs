//! Row 13: a disk that is full, and a directory that is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flitcast_tests::files::{fill, long, messages, names};
use flitcast_tests::lab::said;
use flitcast_tests::processes::eventually;
use flitcast_tests::{run, scratch, start};
use rustix::process::Signal;

use crate::{alone, measured, words};

/// A separate file system in memory.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system with these options of tmpfs on a folder, which is created if it is
    /// missing.
    #[track_caller]
    pub fn mounted(path: &Path, options: &str) -> SmallDisk {
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

    /// Gives it another size.
    #[track_caller]
    pub fn grow(&self, size: &str) {
        let mut mount = Command::new("mount");
        let options = format!("remount,size={size}");
        let said = said(mount.args(["-o", &options]).arg(&self.0));
        assert_eq!(said.code, Some(0), "it is not mounted anew: {said:?}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
#[ignore = "needs root"]
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
    finished.says(&[
        "error: P2: ",
        &path,
        "No space left on device",
        "left without: P2, ",
    ]);
    // The old one is intact, and there is no partial file beside it.
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
    long(&input.join("p1"), 300 << 20);
    let line = format!(
        "scatter --tree path:2 -v --input {} --output {}",
        input.display(),
        output.display()
    );
    let mut running = start(words(&line));
    running.wait_for(&["triggered"]);
    eventually("something arrives", || {
        let partial = |name: &String| name.ends_with(".partial");
        let is_there = output.is_dir() && names(&output).iter().any(partial);
        is_there.then_some(())
    });
    // The message must not be complete before.
    let victim = running.pe(1);
    victim.signal(Signal::STOP);
    fs::remove_dir_all(&output).expect("nobody writes");
    let began = Instant::now();
    victim.signal(Signal::CONT);
    let finished = running.finish();
    measured("13", "output directory removed", Some(1.0), began.elapsed());
    finished.fails(
        1,
        &[
            "error: P1: ",
            &output.display().to_string(),
            "No such file or directory",
        ],
    );
    assert!(!output.exists() || names(&output).is_empty());
}

/// The mount point cannot be replaced by the message; this is reported before the message is sent.
#[test]
#[ignore = "needs root"]
fn row_13_something_is_mounted_where_a_message_arrives() {
    let _alone = alone();
    let dir = scratch();
    let (input, output) = (dir.path().join("input"), dir.path().join("out"));
    fill(&input.join("p1/file"), 1000);
    fs::create_dir(&output).expect("it can be made");
    let _disk = SmallDisk::mounted(&output.join("p1"), "size=1m");
    let line = format!(
        "scatter --tree path:2 --force --input {} --output {}",
        input.display(),
        output.display()
    );
    let finished = start(words(&line)).finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = format!("`{}`: a mount point", output.join("p1").display());
    finished.says(&[&told, "nothing was sent"]);
    // A mount point above is not in the way.
    let below = output.join("p1/below");
    let line = line.replace(&output.display().to_string(), &below.display().to_string());
    start(words(&line)).finish().ok();
}

#[test]
#[ignore = "needs root"]
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
    finished.says(&[told, "/stderr`: No space left on device"]);
    assert_eq!(names(&disk.0).len(), 0, "the working folder is gone");
}
