//! What becomes of files: names, modes and times survive, and of what stands at the
//! output only that is touched which arrives anew.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use flitcast_tests::files::{
    Kind, Node, Tree, assert_same, assert_same_below, fill, fill_deep, names, read_deep, set_mode,
    set_mtime, snapshot,
};
use flitcast_tests::{Finished, run, scratch};

fn text(path: &Path) -> &str {
    path.to_str().expect("scratch paths are UTF-8")
}

#[track_caller]
fn scatter(tree: &str, input: &Path, output: &Path, more: &[&str]) -> Finished {
    let fixed = [
        "scatter",
        "--tree",
        tree,
        "--input",
        text(input),
        "--output",
        text(output),
    ];
    run(fixed.iter().chain(&["--format", "json"]).chain(more))
}

#[track_caller]
fn gather(tree: &str, input: &Path, output: &Path, more: &[&str]) -> Finished {
    let fixed = [
        "gather",
        "--tree",
        tree,
        "--input",
        text(input),
        "--output",
        text(output),
    ];
    run(fixed.iter().chain(&["--format", "json"]).chain(more))
}

/// There and back again.
#[track_caller]
fn assert_survives(tree: &str, dir: &Path) {
    let (input, there, back) = (dir.join("input"), dir.join("there"), dir.join("back"));
    let before = snapshot(&input);
    scatter(tree, &input, &there, &[]).ok();
    assert_same(&before, &snapshot(&there));
    gather(tree, &there, &back, &[]).ok();
    assert_same(&before, &snapshot(&back));
    assert_same(&before, &snapshot(&input));
}

/// Each path is one that Linux takes; below the output it is longer.
#[test]
fn long_paths_survive_below_a_long_output() {
    let dir = scratch();
    let name = "n".repeat(250);
    let names = [name.as_str(); 15];
    let (input, back) = (dir.path().join("input"), dir.path().join("back"));
    let there = dir.path().join("there").join(&name).join(&name);
    fill_deep(&input.join("p1"), &names, b"deep down");
    scatter("path:2", &input, &there, &[]).ok();
    assert_eq!(read_deep(&there.join("p1"), &names), b"deep down");
    gather("path:2", &there, &back, &[]).ok();
    assert_eq!(read_deep(&back.join("p1"), &names), b"deep down");
}

/// What no receiver could write, wherever its output is, is found before anything is sent.
#[test]
fn paths_that_are_too_long_are_refused_beforehand() {
    let dir = scratch();
    let name = "n".repeat(250);
    let (input, there) = (dir.path().join("input"), dir.path().join("there"));
    fill_deep(&input.join("p1"), &[name.as_str(); 17], b"too deep");
    let refused = scatter("path:2", &input, &there, &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("its path is longer than 4095 bytes"),
        "{}",
        refused.stderr
    );
    assert!(!there.exists());

    // An output that has room for itself, and for nothing that is staged in it.
    let (input, mut there) = (dir.path().join("short"), dir.path().join("there"));
    fill(&input.join("p1/file"), 10);
    while there.as_os_str().len() < 4080 {
        let left = 4090 - there.as_os_str().len();
        there.push(&name[..left.min(200)]);
    }
    let refused = scatter("path:2", &input, &there, &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("choose a shorter one"),
        "{}",
        refused.stderr
    );
}

#[test]
fn names_of_all_kinds_survive() {
    let dir = scratch();
    let own = dir.path().join("input/p2");
    for name in [
        "with space",
        " leading and trailing ",
        "line\nbreak",
        "tab\t\u{1b}[31m",
        "-rf",
        "back\\slash",
        "übergrößenträger",
        "数据",
        ".hidden",
        "...",
        ".flitcast-p3",
        "'\"$(true)`",
        &"n".repeat(255),
    ] {
        fill(&own.join(name), 100);
        fill(&own.join("folder").join(name), 100);
    }
    fill(&own.join(OsStr::from_bytes(b"no UTF-8: \xff\xfe")), 100);
    assert_survives("path:3", dir.path());
}

#[test]
fn modes_and_times_survive() {
    let dir = scratch();
    let own = dir.path().join("input/p1");
    for mode in [
        0o000, 0o400, 0o444, 0o600, 0o644, 0o666, 0o755, 0o777, 0o111,
    ] {
        let path = own.join(format!("{mode:03o}"));
        fill(&path, 10);
        set_mtime(&path, 1_000_000_000 + u64::from(mode), 123_456_789);
        set_mode(&path, mode);
    }
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
    assert_survives("star:3", dir.path());
    let tree = snapshot(&dir.path().join("back"));
    assert_eq!(tree[Path::new("p1/111")].mode, 0o111);
    assert_eq!(tree[Path::new("p1/late")].mtime, (1 << 33, 5));
    assert_eq!(tree[Path::new("p1")].mtime, (86_400, 7));
}

#[test]
fn empty_files_empty_folders_links_and_deep_folders_survive() {
    let dir = scratch();
    let own = dir.path().join("input/p1");
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
    assert_survives("path:2", dir.path());
    let tree = snapshot(&dir.path().join("back"));
    assert!(tree[Path::new("p1/link")].kind == Kind::Symlink("d/target".into()));
    assert!(tree[Path::new("p1/nothing/in/here")].kind == Kind::Directory);
}

/// The entry of a PE may be a file, a folder, an empty folder, or missing.
#[test]
fn a_message_is_a_file_or_a_folder_or_nothing() {
    let dir = scratch();
    let input = dir.path().join("input");
    fill(&input.join("p1"), 100_000);
    set_mode(&input.join("p1"), 0o750);
    fill(&input.join("p3"), 0);
    fs::create_dir(input.join("p4")).expect("it can be made");
    fill(&input.join("p5/in/folder"), 1);
    assert_survives("kary:2:7", dir.path());
    assert_eq!(names(&dir.path().join("there")), ["p1", "p3", "p4", "p5"]);
}

#[test]
fn an_input_without_entries_is_a_round_of_null_messages() {
    let dir = scratch();
    let (input, output) = (dir.path().join("input"), dir.path().join("output"));
    fs::create_dir(&input).expect("it can be made");
    let report = scatter("star:4", &input, &output, &[]).ok().report();
    assert_eq!(report.message_bytes(), [0, 0, 0]);
    report.assert_all_arrived();
}

/// The sample of the README.
#[test]
fn the_sample_survives() {
    let dir = scratch();
    let sample = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../deploy/sample/shards"
    ));
    let (there, back) = (dir.path().join("there"), dir.path().join("back"));
    scatter("kary:2:8", sample, &there, &[]).ok();
    gather("kary:2:8", &there, &back, &[]).ok();
    assert_same_below(sample, &back);
}

/// Which PE has which of the files that were dealt; the folders they lie in are made
/// wherever one is needed.
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
    let input = dir.path().join("input");
    let sizes = [
        40_000, 30_000, 30_000, 20_000, 20_000, 10_000, 10_000, 10_000, 5_000, 5_000,
    ];
    for (i, bytes) in sizes.into_iter().enumerate() {
        fill(
            &input
                .join(format!("folder {}", i % 3))
                .join(format!("file-{i}")),
            bytes,
        );
    }
    fill(&input.join("a file named p9"), 0);
    symlink("file-0", input.join("folder 0/link")).expect("it can be made");
    let mut all = snapshot(&input);
    all.retain(|_, node| node.kind != Kind::Directory);

    let (first, again) = (dir.path().join("first"), dir.path().join("again"));
    scatter("path:5", &input, &first, &["--spread"]).ok();
    let hands = dealt(&first);
    assert_eq!(hands.keys().collect::<Vec<_>>(), ["p1", "p2", "p3", "p4"]);
    let together: Tree = hands
        .values()
        .flatten()
        .map(|(p, n)| (p.clone(), n.clone()))
        .collect();
    assert_same(&all, &together);
    let count: usize = hands.values().map(Tree::len).sum();
    assert_eq!(count, all.len(), "none arrives twice");
    // No file could be handed from the fullest to the emptiest to make them more alike.
    let sizes_of = |hand: &Tree| -> Vec<usize> {
        let size = |node: &Node| match &node.kind {
            Kind::File(content) => content.len(),
            _ => 0,
        };
        hand.values().map(size).filter(|&bytes| bytes > 0).collect()
    };
    let sizes: Vec<Vec<usize>> = hands.values().map(sizes_of).collect();
    let sum = |hand: &&Vec<usize>| hand.iter().sum::<usize>();
    let (emptiest, fullest) = (sizes.iter().min_by_key(sum), sizes.iter().max_by_key(sum));
    let (emptiest, fullest) = (emptiest.expect("four hands"), fullest.expect("four hands"));
    let smallest = fullest.iter().min().expect("it holds something");
    assert!(sum(&fullest) - sum(&emptiest) <= *smallest, "{sizes:?}");

    // Another tree with as many PEs deals alike.
    scatter("star:5", &input, &again, &["--spread"]).ok();
    assert!(dealt(&again) == hands);
}

#[test]
fn force_replaces_what_arrives_anew_and_nothing_else() {
    let dir = scratch();
    let (input, output) = (dir.path().join("input"), dir.path().join("output"));
    fill(&input.join("p1/new"), 1000);
    fill(&input.join("p2"), 1000);
    fill(&output.join("p1/old"), 5);
    fill(&output.join("p2/a folder before"), 5);
    fill(&output.join("p3/null message"), 5);
    fill(&output.join("notes.txt"), 5);
    let mut expected = snapshot(&output);
    expected.retain(|path, _| !path.starts_with("p1") && !path.starts_with("p2"));
    expected.extend(snapshot(&input));

    assert_eq!(scatter("path:4", &input, &output, &[]).code, Some(2));
    scatter("path:4", &input, &output, &["--force"]).ok();
    assert_same(&expected, &snapshot(&output));

    let back = dir.path().join("back");
    fill(&back.join("p3/stale"), 5);
    fill(&back.join("p4/nobody's"), 5);
    let mut expected = snapshot(&output);
    expected.remove(Path::new("notes.txt"));
    fs::remove_file(output.join("notes.txt")).expect("it is there");
    expected.extend(
        snapshot(&back)
            .into_iter()
            .filter(|(path, _)| path.starts_with("p4")),
    );
    gather("path:4", &output, &back, &["--force"]).ok();
    assert_same(&expected, &snapshot(&back));
}

#[test]
fn every_round_replaces_what_the_one_before_delivered() {
    let dir = scratch();
    let (input, there, back) = (
        dir.path().join("input"),
        dir.path().join("there"),
        dir.path().join("back"),
    );
    fill(&input.join("p1/file"), 100_000);
    fill(&input.join("p2"), 300_000);
    let report = scatter("path:3", &input, &there, &["--rounds", "3"])
        .ok()
        .report();
    report.assert_all_arrived();
    assert_same_below(&input, &there);
    gather("path:3", &there, &back, &["--rounds", "3"])
        .ok()
        .report()
        .assert_all_arrived();
    assert_same_below(&input, &back);
}

#[test]
fn rounds_give_median_and_spread() {
    for operation in ["scatter", "gather"] {
        let fixed = [
            operation, "--tree", "kary:2:6", "--size", "100KiB", "--format", "json",
        ];
        let report = run(fixed.iter().chain(&["--rounds", "5"])).ok().report();
        assert_eq!(report.number("/rounds"), 5);
        let places = (1..6)
            .map(|pe| format!("/pes/{pe}"))
            .chain(["/round".to_owned()]);
        for place in places {
            let of = |what: &str| report.float(&format!("{place}/measured_us/{what}"));
            assert!(0.0 < of("min"), "{place}");
            assert!(
                of("min") <= of("median") && of("median") <= of("max"),
                "{place}"
            );
        }
        let (predicted, measured) = (
            report.float("/round/predicted_us"),
            report.float("/round/measured_us/median"),
        );
        let error = (predicted - measured) / measured * 100.0;
        assert!((report.float("/round/error_pct") - error).abs() < 0.1);
        let goodput = 5.0 * 1024.0 * 100.0 / measured * 1e6;
        assert!((report.float("/round/goodput_bytes_per_s") / goodput - 1.0).abs() < 0.001);
    }
}
