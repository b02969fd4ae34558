//! Row 13: a disk that is full, and a directory that is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{fill, fill_with_short, long, messages, names, wait_for_partial};
use flitcast_tests::run::run_program;
use flitcast_tests::{run, scratch};
use rustix::process::Signal;

use crate::{alone, failing, timed};

/// A separate file system in memory.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a file system with these options of tmpfs on a folder, which is created if it is
    /// missing.
    pub fn mounted(path: &Path, options: &str) -> SmallDisk {
        fs::create_dir_all(path).expect("it can be made");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]);
        run_program(mount.arg(path)).ok();
        SmallDisk(path.to_owned())
    }

    /// Gives it another size.
    pub fn grow(&self, size: &str) {
        let mut mount = Command::new("mount");
        let options = format!("remount,size={size}");
        run_program(mount.args(["-o", &options]).arg(&self.0)).ok();
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
    let disk = SmallDisk::mounted(&dir.join("disk"), "size=8m");
    let input = dir.join("input");
    fill(&input.join("p1/short"), 1000);
    fill(&input.join("p2/long"), 6 << 20);
    // The content fits, the pages do not.
    fill_with_short(&input.join("p2"), 1000);
    let output = disk.0.join("out");
    fill(&output.join("p2/old"), 2000);
    let line = "scatter --tree path:3 --force --input @/input --output @/disk/out";
    let finished = timed("13", "disk full", Some(1.0), || dir.run(line));
    let path = output.display().to_string();
    let full = "No space left on device";
    finished.fails(1, &["error: P2: ", &path, full, "left without: P2, "]);
    // The old one is intact, and there is no partial file beside it.
    let left = messages(&output);
    let is_whole = |name: &String| name == "p1" || name == "p2";
    assert!(left.iter().all(is_whole), "{left:?}");
    assert_eq!(names(&output.join("p2")), ["old"]);
    let old = fs::metadata(output.join("p2/old")).expect("it is there");
    assert_eq!(old.len(), 2000);
}

#[test]
fn row_13_the_output_directory_is_removed() {
    let _alone = alone();
    let dir = scratch();
    let (input, output) = (dir.join("input"), dir.join("out"));
    long(&input.join("p1"), 300 << 20);
    let mut running = dir.start("scatter --tree path:2 -v --input @/input --output @/out");
    running.wait_for(&["triggered"]);
    wait_for_partial(&output);
    // The message must not be complete before.
    let victim = running.pe(1);
    victim.stop();
    fs::remove_dir_all(&output).expect("nobody writes");
    let finished = failing("13", "output directory removed", Some(1.0), running, |_| {
        victim.signal(Signal::CONT);
    });
    let path = output.display().to_string();
    finished.stderr_has(&["error: P1: ", &path, "No such file or directory"]);
    assert!(!output.exists() || names(&output).is_empty());
}

/// The mount point cannot be replaced by the message; this is reported before the message is sent.
#[test]
#[ignore = "needs root"]
fn row_13_something_is_mounted_where_a_message_arrives() {
    let _alone = alone();
    let dir = scratch();
    let (input, output) = (dir.join("input"), dir.join("out"));
    fill(&input.join("p1/file"), 1000);
    fs::create_dir(&output).expect("it can be made");
    let _disk = SmallDisk::mounted(&output.join("p1"), "size=1m");
    let line = "scatter --tree path:2 --force --input @/input --output @/out";
    let expected = format!("`{}`: a mount point", output.join("p1").display());
    dir.run(line).fails(1, &[&expected, "nothing was sent"]);
    // A mount point above is not in the way.
    dir.run(&format!("{line}/p1/below")).ok();
}

#[test]
#[ignore = "needs root"]
fn row_13_a_disk_is_full_of_the_stderr_of_a_command() {
    let _alone = alone();
    let dir = scratch();
    let disk = SmallDisk::mounted(&dir.join("disk"), "size=8m");
    fill(&dir.join("input/p1"), 1);
    let line = "map --tree path:2 --input @/input --output @/out --work @/disk -- sh -c";
    let script = "head -c 12000000 /dev/zero | tr '\\0' x >&2";
    let finished = run([dir.words(line), vec![script.to_owned()]].concat()).with_code(1);
    let expected =
        "error: P1: it ended with exit status 0, but what it said on stderr cannot be written: `";
    finished.stderr_has(&[expected, "/stderr`: No space left on device"]);
    assert_eq!(names(&disk.0).len(), 0, "the working folder is gone");
}
