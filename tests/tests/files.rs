//! Messages made of files: names, modes and times are preserved, and of the existing output only
//! the received entries are replaced.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::Path;

use flitcast_tests::files::{
    Kind, Node, Tree, assert_same, assert_same_below, fill, fill_deep, names, read_deep, set_mode,
    set_mtime, snapshot,
};
use flitcast_tests::{Finished, Folder, reported, scratch};

#[track_caller]
fn scatter(dir: &Folder, more: &str) -> Finished {
    let files = "--input @/input --output @/there";
    dir.run(&format!("scatter {files} --format json {more}"))
}

fn gather(dir: &Folder, more: &str) -> Finished {
    let files = "--input @/there --output @/back";
    dir.run(&format!("gather {files} --format json {more}"))
}

/// Checks that messages survive a scatter and a gather.
fn assert_survives(tree: &str, dir: &Folder) {
    let before = snapshot(&dir.join("input"));
    scatter(dir, &format!("--tree {tree}")).ok();
    assert_same(&before, &snapshot(&dir.join("there")));
    gather(dir, &format!("--tree {tree}")).ok();
    assert_same(&before, &snapshot(&dir.join("back")));
    assert_same(&before, &snapshot(&dir.join("input")));
}

/// Each path is one that Linux takes; below the output it is longer.
#[test]
fn long_paths_survive_below_a_long_output() {
    let name = "n".repeat(250);
    for (path, more) in [(vec![&*name; 16], ""), (vec!["d"; 2000], "--sync none")] {
        let dir = scratch();
        let there = format!("there/{name}/{name}");
        fill_deep(&dir.join("input/p1"), &path, b"deep down");
        let line = format!("scatter --tree path:2 --input @/input --output @/{there} {more}");
        dir.run(&line).ok();
        let arrived = read_deep(&dir.join(&there).join("p1"), &path);
        assert_eq!(arrived, b"deep down");
        let line = format!("gather --tree path:2 --input @/{there} --output @/back {more}");
        dir.run(&line).ok();
        assert_eq!(read_deep(&dir.join("back/p1"), &path), b"deep down");
        for folder in ["input", "there", "back"] {
            flitcast_node::payload::remove(&dir.join(folder)).expect("it can be removed");
        }
    }
}

/// Paths that no receiver could create, wherever its output is, are detected before anything is
/// sent.
#[test]
fn paths_that_are_too_long_are_refused_beforehand() {
    let dir = scratch();
    let name = "n".repeat(250);
    fill_deep(&dir.join("input/p1"), &[name.as_str(); 17], b"too deep");
    let refused = scatter(&dir, "--tree path:2");
    refused.fails(2, &["its path is longer than 4095 bytes"]);
    assert!(!dir.join("there").exists());

    // An output that has room for itself, and for nothing that is staged in it.
    let mut there = dir.join("there");
    fill(&dir.join("short/p1/file"), 10);
    while there.as_os_str().len() < 4080 {
        let left = 4090 - there.as_os_str().len();
        there.push(&name[..left.min(200)]);
    }
    let there = there.display();
    let line = format!("scatter --tree path:2 --input @/short --output {there}");
    dir.run(&line).fails(2, &["choose a shorter one"]);
}

#[test]
fn names_of_all_kinds_survive() {
    let dir = scratch();
    let own = dir.join("input/p2");
    let plain = "-rf|back\\slash|übergrößenträger|数据|.hidden|...|.flitcast-p3|'\"$(true)`";
    let odd = "with space| leading and trailing |line\nbreak|tab\t\u{1b}[31m";
    let long = "n".repeat(255);
    for name in plain.split('|').chain(odd.split('|')).chain([&*long]) {
        fill(&own.join(name), 100);
        fill(&own.join("folder").join(name), 100);
    }
    fill(&own.join(OsStr::from_bytes(b"no UTF-8: \xff\xfe")), 100);
    assert_survives("path:3", &dir);
}

/// Fills a folder with a file of each mode, each with a different time.
fn fill_with_modes(folder: &Path, modes: &[u32]) {
    for &mode in modes {
        let path = folder.join(format!("{mode:03o}"));
        fill(&path, 10);
        set_mtime(&path, 1_000_000_000 + u64::from(mode), 123_456_789);
        set_mode(&path, mode);
    }
}

#[test]
fn modes_and_times_survive() {
    let dir = scratch();
    let own = dir.join("input/p1");
    let modes = [0o400, 0o444, 0o600, 0o644, 0o666, 0o755, 0o777];
    fill_with_modes(&own, &modes);
    for (mode, nanos) in [(0o500, 1), (0o700, 999_999_999), (0o755, 0)] {
        let path = own.join(format!("folder-{mode:03o}"));
        fill(&path.join("file"), 10);
        set_mtime(&path, 0, nanos);
        set_mode(&path, mode);
    }
    // In a year that does not fit in 32 bits.
    fill(&own.join("late"), 10);
    set_mtime(&own.join("late"), 1 << 33, 5);
    set_mtime(&own, 86_400, 7);
    set_mode(&own, 0o705);
    assert_survives("star:3", &dir);
    let tree = snapshot(&dir.join("back"));
    assert_eq!(tree[Path::new("p1/444")].mode, 0o444);
    assert_eq!(tree[Path::new("p1/late")].mtime, (1 << 33, 5));
    assert_eq!(tree[Path::new("p1")].mtime, (86_400, 7));
    // Only root can remove a folder that it may not write to.
    for place in ["input", "there", "back"] {
        set_mode(&dir.join(place).join("p1/folder-500"), 0o700);
    }
}

#[test]
#[ignore = "needs root"]
fn modes_that_keep_the_owner_from_reading_survive() {
    let dir = scratch();
    fill_with_modes(&dir.join("input/p1"), &[0o000, 0o111, 0o222]);
    assert_survives("star:3", &dir);
    let tree = snapshot(&dir.join("back"));
    assert_eq!(tree[Path::new("p1/111")].mode, 0o111);
}

#[test]
fn empty_files_empty_folders_links_and_deep_folders_survive() {
    let dir = scratch();
    let own = dir.join("input/p1");
    fill(&own.join("empty"), 0);
    fs::create_dir_all(own.join("nothing/in/here")).expect("it can be made");
    fill(&own.join("d/target"), 10);
    for (link, target) in [
        ("link", "d/target"),
        ("d/sideways", "target"),
        ("d/up", "../empty"),
        ("to-folder", "d"),
        ("dangling", "not/there"),
    ] {
        symlink(target, own.join(link)).expect("it can be made");
    }
    let deep: std::path::PathBuf = (0..60).map(|i| format!("level {i}")).collect();
    fill(&own.join(&deep).join("bottom"), 70_000);
    assert_survives("path:2", &dir);
    let tree = snapshot(&dir.join("back"));
    assert!(tree[Path::new("p1/link")].kind == Kind::Symlink("d/target".into()));
    assert!(tree[Path::new("p1/nothing/in/here")].kind == Kind::Directory);
}

#[test]
fn a_message_is_a_file_or_a_folder_or_nothing() {
    let dir = scratch();
    let input = dir.join("input");
    fill(&input.join("p1"), 100_000);
    set_mode(&input.join("p1"), 0o750);
    fill(&input.join("p3"), 0);
    fs::create_dir(input.join("p4")).expect("it can be made");
    fill(&input.join("p5/in/folder"), 1);
    assert_survives("kary:2:7", &dir);
    assert_eq!(names(&dir.join("there")), ["p1", "p3", "p4", "p5"]);
}

#[test]
fn an_input_without_entries_is_a_round_of_null_messages() {
    let dir = scratch();
    fs::create_dir(dir.join("input")).expect("it can be made");
    let report = scatter(&dir, "--tree star:4").ok().report();
    assert_eq!(report.message_bytes(), [0, 0, 0]);
    report.assert_all_arrived();
}

/// Returns the distributed files of each PE; folders are created wherever one is needed.
fn dealt(output: &Path) -> BTreeMap<String, Tree> {
    let own = |name: String| {
        let mut tree = snapshot(&output.join(&name));
        tree.retain(|_, node| node.kind != Kind::Directory);
        (name, tree)
    };
    names(output).into_iter().map(own).collect()
}

#[test]
fn spread_deals_every_file_once_balanced_and_always_alike() {
    let dir = scratch();
    let input = dir.join("input");
    for (i, kb) in [40, 30, 30, 20, 20, 10, 10, 10, 5, 5]
        .into_iter()
        .enumerate()
    {
        fill(&input.join(format!("folder {}/file-{i}", i % 3)), kb * 1000);
    }
    fill(&input.join("a file named p9"), 0);
    symlink("file-0", input.join("folder 0/link")).expect("it can be made");
    let mut all = snapshot(&input);
    all.retain(|_, node| node.kind != Kind::Directory);

    scatter(&dir, "--tree path:5 --spread").ok();
    let hands = dealt(&dir.join("there"));
    assert_eq!(hands.keys().collect::<Vec<_>>(), ["p1", "p2", "p3", "p4"]);
    let together = hands.values().flatten();
    let together = together.map(|(path, node)| (path.clone(), node.clone()));
    assert_same(&all, &together.collect());
    let count: usize = hands.values().map(Tree::len).sum();
    assert_eq!(count, all.len(), "none arrives twice");
    // No file can be moved from the fullest to the emptiest PE to make them more equal.
    let size = |node: &Node| match &node.kind {
        Kind::File(content) => content.len(),
        _ => 0,
    };
    let sizes = hands.values().map(|hand| hand.values().map(size).collect());
    let mut sizes: Vec<Vec<usize>> = sizes.collect();
    let sum = |hand: &Vec<usize>| hand.iter().sum::<usize>();
    sizes.sort_by_key(sum);
    let smallest = sizes[3].iter().filter(|&&bytes| bytes > 0).min();
    let smallest = smallest.expect("it holds something");
    assert!(sum(&sizes[3]) - sum(&sizes[0]) <= *smallest, "{sizes:?}");

    // Another tree with the same number of PEs has the same distribution.
    let line = "scatter --tree star:5 --spread --input @/input --output @/again";
    dir.run(line).ok();
    assert!(dealt(&dir.join("again")) == hands);
}

#[test]
fn force_replaces_only_messages_that_arrive() {
    let dir = scratch();
    let (input, output) = (dir.join("input"), dir.join("there"));
    fill(&input.join("p1/new"), 1000);
    fill(&input.join("p2"), 1000);
    fill(&output.join("p1/old"), 5);
    fill(&output.join("p2/a folder before"), 5);
    fill(&output.join("p3/null message"), 5);
    fill(&output.join("notes.txt"), 5);
    let mut expected = snapshot(&output);
    expected.retain(|path, _| !path.starts_with("p1") && !path.starts_with("p2"));
    expected.extend(snapshot(&input));

    scatter(&dir, "--tree path:4").with_code(2);
    scatter(&dir, "--tree path:4 --force").ok();
    assert_same(&expected, &snapshot(&output));

    let back = dir.join("back");
    fill(&back.join("p3/stale"), 5);
    fill(&back.join("p4/nobody's"), 5);
    let mut expected = snapshot(&output);
    expected.remove(Path::new("notes.txt"));
    fs::remove_file(output.join("notes.txt")).expect("it is there");
    let others = snapshot(&back).into_iter();
    expected.extend(others.filter(|(path, _)| path.starts_with("p4")));
    gather(&dir, "--tree path:4 --force").ok();
    assert_same(&expected, &snapshot(&back));
}

#[test]
fn every_round_replaces_the_messages_of_the_previous_one() {
    let dir = scratch();
    let input = dir.join("input");
    fill(&input.join("p1/file"), 100_000);
    fill(&input.join("p2"), 300_000);
    let rounds = "--tree path:3 --rounds 3";
    scatter(&dir, rounds).ok().report().assert_all_arrived();
    assert_same_below(&input, &dir.join("there"));
    gather(&dir, rounds).ok().report().assert_all_arrived();
    assert_same_below(&input, &dir.join("back"));
}

#[test]
fn rounds_give_median_and_spread() {
    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --tree kary:2:6 --size 100KiB --rounds 5");
        let report = reported(&line);
        assert_eq!(report.number("/rounds"), 5);
        for place in "/pes/1 /pes/2 /pes/3 /pes/4 /pes/5 /round".split(' ') {
            let of = |what: &str| report.float(&format!("{place}/measured_us/{what}"));
            assert!(0.0 < of("min"), "{place}");
            assert!([of("min"), of("median"), of("max")].is_sorted(), "{place}");
        }
        let of = |what: &str| report.float(&format!("/round/{what}"));
        let (predicted, measured) = (of("predicted_us"), of("measured_us/median"));
        let error = (predicted - measured) / measured * 100.0;
        assert!((of("error_pct") - error).abs() < 0.1);
        let goodput = 5.0 * 1024.0 * 100.0 / measured * 1e6;
        assert!((of("goodput_bytes_per_s") / goodput - 1.0).abs() < 0.001);
    }
}

/// Holes of files are neither read nor sent: 4 GiB of them take no time and no room.
#[test]
fn holes_are_not_sent() {
    const LONG: u64 = 4 << 30;
    // A file that is one hole, one with data in the middle, and one with data at both ends.
    const FILES: [(&str, &[u64]); 3] = [("p1", &[]), ("p2", &[LONG / 2]), ("p3", &[0, LONG - 5])];
    let dir = scratch();
    fs::create_dir(dir.join("input")).expect("it can be made");
    for (name, places) in FILES {
        let file = fs::File::create(dir.join("input").join(name)).expect("it can be made");
        file.set_len(LONG).expect("the file system has holes");
        for place in places {
            let written = file.write_all_at(b"data!", *place);
            written.expect("it can be written");
        }
    }
    let report = scatter(&dir, "--tree kary:2:4").ok().report();
    assert!(report.number("/round/bytes") < 100_000, "holes are sent");
    gather(&dir, "--tree kary:2:4").ok();
    for output in ["there", "back"] {
        for (name, places) in FILES {
            let file = fs::File::open(dir.join(output).join(name)).expect("it is there");
            let found = file.metadata().expect("it is open");
            assert_eq!(found.len(), LONG);
            assert!(found.blocks() * 512 < 1 << 20, "{} blocks", found.blocks());
            let read_at = |place| {
                let mut read = [0; 5];
                let done = file.read_exact_at(&mut read, place);
                done.map(|()| read).expect("it is as long")
            };
            assert!(places.iter().all(|place| &read_at(*place) == b"data!"));
            assert_eq!(read_at(LONG / 4), [0; 5]);
        }
    }
}

#[test]
fn empty_folders_are_dealt_like_files() {
    let dir = scratch();
    let (input, there) = (dir.join("input"), dir.join("there"));
    for folder in ["a/deep/empty", "b", "c/full"] {
        fs::create_dir_all(input.join(folder)).expect("it can be made");
    }
    fill(&input.join("c/full/file"), 10);
    scatter(&dir, "--tree star:5 --spread").ok();
    assert_eq!(names(&there), ["p1", "p2", "p3"]);
    for folder in ["a/deep/empty", "b", "c/full"] {
        let dealt = names(&there).into_iter();
        let dealt = dealt.filter(|pe| there.join(pe).join(folder).is_dir());
        assert_eq!(dealt.count(), 1, "{folder}");
    }
}

/// A place where a message cannot become visible is detected before anything is sent.
#[test]
fn an_output_that_leads_nowhere_is_named_beforehand() {
    let dir = scratch();
    let input = dir.join("input");
    fill(&input.join("p1/file"), 10);
    symlink("nowhere", dir.join("link")).expect("it can be made");
    let line = "scatter --tree path:2 --input @/input --output @";
    let link = dir.shown("link");
    let expected = format!("`{link}` is a symlink to what does not exist; ");
    for output in ["link", "link/below", "link/far/below"] {
        dir.run(&format!("{line}/{output}")).fails(2, &[&expected]);
    }
    // A symlink to a folder is one.
    fs::create_dir(dir.join("nowhere")).expect("it can be made");
    dir.run(&format!("{line}/link")).ok();
    assert_same_below(&input, &dir.join("nowhere"));
}
