//! All attributes of files: `--archive`, and the report without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{
    FileExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{
    assert_same_below, fill, names, record, set_mode, set_mtime, snapshot, wait_for_partial,
};
use flitcast_tests::joining::{Joining, leave};
use flitcast_tests::report::Report;
use flitcast_tests::run::run_program;
use flitcast_tests::{Folder, flitcast, from_to, refused, resume, rows, scratch};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use super::update::OPERATIONS;

/// Number of bytes of the content of a file with two names.
const LINKED: usize = 100_000;

#[track_caller]
fn set(path: &Path, name: &str, value: &str) {
    let file = File::open(path).expect("it is there");
    let set = fsetxattr(file, name, value.as_bytes(), XattrFlags::empty());
    set.unwrap_or_else(|error| panic!("{error}: {}: {name}", path.display()));
}

/// Returns an extended attribute; `None` if there is none.
fn get(path: &Path, name: &str) -> Option<String> {
    let mut value = vec![0; 1000];
    let bytes = fgetxattr(File::open(path).expect("it is there"), name, &mut value).ok()?;
    Some(String::from_utf8_lossy(&value[..bytes]).into_owned())
}

/// Fills a folder with files that only an archive keeps as they are.
fn fill_folder(folder: &Path) {
    fill(&folder.join("a/first"), LINKED);
    fs::create_dir(folder.join("b")).expect("it is created");
    fs::hard_link(folder.join("a/first"), folder.join("b/second")).expect("it is created");
    fill(&folder.join("b/program"), 100);
    set_mode(&folder.join("b/program"), 0o4711);
    fill(&folder.join("noted"), 10);
    set(&folder.join("noted"), "user.note", "of the file");
    set(folder, "user.note", "of the folder");
    let sparse = File::create(folder.join("sparse")).expect("it can be created");
    sparse.write_all_at(b"end", 1 << 20).expect("it is written");
    symlink("noted", folder.join("link")).expect("it is created");
    set_mtime(&folder.join("noted"), 1 << 30, 123_456_789);
    set_mtime(&folder.join("link"), 1 << 29, 987_654_321);
    // Sets of users share folders by this bit.
    set_mode(&folder.join("a"), 0o2775);
    set_mtime(&folder.join("a"), 1 << 28, 1);
}

/// Returns the number of blocks, the owner and the extended attribute of each entry, and the path of the
/// first name of a file.
type Details = BTreeMap<PathBuf, (u64, (u32, u32), Option<String>, PathBuf)>;

fn details(root: &Path) -> Details {
    let mut first = BTreeMap::new();
    let paths = snapshot(root).into_keys().chain([PathBuf::new()]);
    let detail = |path: PathBuf| {
        let at = root.join(&path);
        let found = fs::symlink_metadata(&at).expect("it is there");
        let note = (!found.is_symlink())
            .then(|| get(&at, "user.note"))
            .flatten();
        let name = first
            .entry(found.ino())
            .or_insert_with(|| path.clone())
            .clone();
        let blocks = if found.is_file() { found.blocks() } else { 0 };
        (path, (blocks, (found.uid(), found.gid()), note, name))
    };
    paths.map(detail).collect()
}

#[track_caller]
fn assert_archived(left: &Path, right: &Path) {
    assert_same_below(left, right);
    assert_eq!(details(left), details(right));
}

#[track_caller]
fn sent(dir: &Folder, line: &str) -> Report {
    let files = "--input @/in --output @/out --format json";
    dir.run(&format!("{line} {files}")).ok().report()
}

#[track_caller]
fn assert_not_kept(report: &Report, expected: [u64; 4]) {
    let keys = [
        "owners",
        "special_modes",
        "hard_links",
        "extended_attributes",
    ];
    let found = keys.map(|key| report.number(&format!("/not_kept/{key}")));
    assert_eq!(found, expected, "{keys:?}");
}

#[test]
fn all_attributes_arrive() {
    for [line, copies] in rows(OPERATIONS) {
        let dir = scratch();
        let copies = from_to(copies);
        let entries: BTreeSet<&str> = copies.iter().map(|(entry, _)| *entry).collect();
        for entry in entries {
            fill_folder(&dir.join("in").join(entry));
        }
        let report = sent(&dir, &format!("{line} --archive"));
        for (entry, copy) in copies {
            assert_archived(&dir.join("in").join(entry), &dir.join("out").join(copy));
        }
        assert_not_kept(&report, [0; 4]);
        let bytes = report.number("/round/bytes") as usize;
        assert!(bytes < 2 * (LINKED + 10_000), "{line}: {bytes} bytes");
        let again = format!("{line} --archive --input @/in --output @/out");
        dir.run(&again)
            .ok()
            .prints(&["nothing to send: everything is there already"]);
    }
}

#[test]
fn files_that_are_distributed_keep_their_attributes() {
    let dir = scratch();
    fill_folder(&dir.join("in"));
    sent(
        &dir,
        "scatter --tree star:2 --spread --archive --exclude /b/program",
    );
    let mut expected = details(&dir.join("in"));
    expected.remove(Path::new("b/program"));
    // The folder is a new one.
    let mut arrived = details(&dir.join("out/p1"));
    for tree in [&mut expected, &mut arrived] {
        tree.remove(Path::new(""));
    }
    assert_eq!(arrived, expected);
}

/// Only what costs no further look at the files is reported.
#[test]
fn a_report_lists_the_attributes_that_are_not_kept() {
    let dir = scratch();
    fill_folder(&dir.join("in/p1"));
    let line = "scatter --tree star:2 --input @/in --output @/out";
    let finished = dir.run(line).ok();
    let expected = "special mode bits of 2 entries, hard links of 2 files; --archive keeps them\n";
    finished.prints(&[&format!("\n  not kept     {expected}")]);
    let copy = dir.join("out/p1");
    assert_eq!(get(&copy.join("noted"), "user.note"), None);
    let found = |name: &str| fs::metadata(copy.join(name)).expect("it is there");
    assert_eq!(
        (found("a/first").nlink(), found("b/second").nlink()),
        (1, 1)
    );
    assert_eq!(found("b/program").permissions().mode() & 0o7777, 0o711);
    assert_eq!(found("b/second").len(), LINKED as u64);
    let report = sent(&dir, "scatter --tree star:2 --force");
    assert_not_kept(&report, [0, 2, 2, 0]);
}

#[test]
fn a_changed_attribute_is_updated() {
    let dir = scratch();
    let (input, output) = (dir.join("in/p1"), dir.join("out/p1"));
    fill_folder(&input);
    let line = "scatter --tree star:2 --archive --update";
    sent(&dir, line);
    assert_eq!(sent(&dir, line).number("/round/bytes"), 0);
    set(&input.join("noted"), "user.note", "another");
    let report = sent(&dir, line);
    assert_archived(&input, &output);
    let bytes = report.number("/round/bytes");
    assert!((1..2000).contains(&bytes), "{bytes} bytes");
    // Each name has its own file now.
    fs::remove_file(input.join("b/second")).expect("it is there");
    fs::copy(input.join("a/first"), input.join("b/second")).expect("it is copied");
    for name in ["a/first", "b/second"] {
        set_mtime(&input.join(name), 1 << 30, 5);
    }
    sent(&dir, line);
    assert_archived(&input, &output);
}

const SLOW: &str = "scatter --tree path:2 --bwlimit 8mbit --archive --input @/in --output @/out";

#[test]
fn a_run_that_is_killed_or_interrupted_is_resumed() {
    for is_killed in [true, false] {
        let dir = scratch();
        fill_folder(&dir.join("in/p1"));
        fill(&dir.join("in/p1/zoo/long"), 2 << 20);
        let running = dir.start(SLOW);
        wait_for_partial(&dir.join("out"));
        if is_killed {
            running.kill_all();
            assert!(!dir.join("out/p1").exists());
            dir.run(SLOW).ok();
        } else {
            running.interrupt();
            let text = fs::read_to_string(record(&dir.join("out"))).expect("it is there");
            assert!(text.contains("\narchive = true\n"), "{text}");
            resume(&record(&dir.join("out")), "").ok();
        }
        assert_archived(&dir.join("in/p1"), &dir.join("out/p1"));
        assert_eq!(names(&dir.join("out")), ["p1"]);
    }
}

/// A coordinator that a PE joins could otherwise give users of that host the rights of the PE.
#[test]
fn a_lent_folder_gets_no_program_with_more_rights() {
    let cluster = Joining::new(&[0], "60s");
    fill_folder(&cluster.path("in/p1"));
    let nodes = cluster.nodes("");
    let scatter = "scatter --archive --input DIR/in --output DIR/out";
    let finished = cluster.guarded(scatter).finish().ok();
    let lost = "special mode bits of 2 entries; receivers did not set them";
    finished.prints(&[&format!("\n  not kept     {lost}\n")]);
    let found = |name: &str| fs::metadata(cluster.path("out/h1").join(name)).expect("it is there");
    assert_eq!(found("b/program").mode() & 0o7777, 0o711);
    assert_eq!(found("a/first").ino(), found("b/second").ino());
    leave(nodes);
}

#[test]
fn only_files_are_an_archive() {
    let cause = "--archive goes with --input, which is not there";
    refused("scatter --tree star:2 --size 1 --archive", &[cause]);
}

#[test]
#[ignore = "needs root"]
fn owners_arrive_and_return() {
    let dir = scratch();
    let (input, there, back) = (dir.join("in"), dir.join("out"), dir.join("back"));
    fill_folder(&input.join("p1"));
    let own = |name: &str, uid, gid| lchown(input.join("p1").join(name), Some(uid), Some(gid));
    for (name, uid, gid) in [
        ("a/first", 1234, 5),
        ("b", 77, 88),
        ("link", 4321, 6),
        ("noted", 0, 9),
    ] {
        own(name, uid, gid).expect("root may");
    }
    chown(input.join("p1/b/program"), Some(1234), Some(1234)).expect("root may");
    set_mode(&input.join("p1/b/program"), 0o6755);
    let capability = "\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    set(&input.join("p1/noted"), "security.capability", capability);
    let report = sent(&dir, "scatter --tree star:2 --archive");
    assert_not_kept(&report, [0; 4]);
    assert_archived(&input.join("p1"), &there.join("p1"));
    let found = get(&there.join("p1/noted"), "security.capability");
    assert_eq!(found.as_deref(), Some(capability));
    dir.run("gather --tree star:2 --archive --input @/out --output @/back")
        .ok();
    assert_archived(&input, &back);

    let report = sent(&dir, "scatter --tree star:2 --force");
    // The first file has two names.
    assert_not_kept(&report, [6, 2, 2, 0]);
    assert_eq!(
        fs::metadata(there.join("p1/b")).expect("it is there").uid(),
        0
    );
}

/// A user other than root gives no file away, and gets no program that runs as another user.
#[test]
#[ignore = "needs root"]
fn a_user_keeps_all_but_owners() {
    let dir = scratch();
    fill_folder(&dir.join("in/p1"));
    chown(dir.join("in/p1/noted"), Some(65534), Some(65534)).expect("root may");
    fs::create_dir(dir.join("out")).expect("it is created");
    chown(dir.join("out"), Some(65534), Some(65534)).expect("root may");
    set_mode(&dir.join("in/p1/b/program"), 0o4755);
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("it is there");
    let mut user = Command::new("setpriv");
    user.args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(flitcast());
    user.args(dir.words("scatter --tree star:2 --archive --input @/in --output @/out"));
    let finished = run_program(&mut user).ok();
    // The hard link has the owner of its first name.
    let lost = "owners of 7 entries, special mode bits of 2 entries; receivers did not set them";
    finished.prints(&[&format!("\n  not kept     {lost}\n")]);
    let copy = dir.join("out/p1");
    let found = |name: &str| fs::symlink_metadata(copy.join(name)).expect("it is there");
    assert_eq!(found("b/program").mode() & 0o7777, 0o755);
    assert_eq!(found("a/first").ino(), found("b/second").ino());
    assert_eq!(
        get(&copy.join("noted"), "user.note").as_deref(),
        Some("of the file")
    );
}

/// A file system in memory that has no extended attributes, unmounted when this is dropped.
struct Plain(PathBuf);

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
#[ignore = "needs root"]
fn a_file_system_without_extended_attributes_is_reported_once() {
    let dir = scratch();
    fill_folder(&dir.join("in/p1"));
    let out = dir.join("out");
    fs::create_dir(&out).expect("it is created");
    run_program(
        Command::new("mount")
            .args(["-t", "ramfs", "ramfs"])
            .arg(&out),
    )
    .ok();
    let _plain = Plain(out.clone());
    let line = "scatter --tree star:2 --archive --input @/in --output @/out";
    let expected = "extended attributes of 2 entries; receivers did not set them\n";
    dir.run(line)
        .ok()
        .prints(&[&format!("\n  not kept     {expected}")]);
    let found = |name: &str| fs::metadata(out.join("p1").join(name)).expect("it is there");
    assert_eq!(found("a/first").ino(), found("b/second").ino());
    assert_same_below(&dir.join("in"), &out);
}
