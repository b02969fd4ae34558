//! Files that are left out by `--exclude`, `--exclude-from` and `--include`.

use std::path::Path;

use flitcast_tests::files::{Tree, assert_same, fill, names, set_mode, set_mtime, snapshot};
use flitcast_tests::{Folder, from_to, rows, scratch};

const FILES: [&str; 6] = [
    "a.txt",
    "b.tmp",
    "cache/x",
    "deep/cache/y",
    "deep/keep.tmp",
    "old/cache",
];

/// Creates the same files in each of these folders, with an empty one.
fn filled(dir: &Folder, folders: &[&str]) {
    for folder in folders.iter().map(|folder| dir.join(folder)) {
        for (at, file) in FILES.iter().enumerate() {
            fill(&folder.join(file), 100 * at);
        }
        std::fs::create_dir(folder.join("empty")).expect("it is new");
        set_mode(&folder.join("old"), 0o750);
        set_mtime(&folder.join("old"), 1_000_000_000, 5);
        set_mtime(&folder, 1_100_000_000, 0);
    }
}

/// Returns the entries of a folder without these and all below them.
fn without(folder: &Path, left_out: &[&str]) -> Tree {
    let mut tree = snapshot(folder);
    tree.retain(|path, _| !left_out.iter().any(|it| path.starts_with(it)));
    tree
}

#[test]
fn excluded_files_do_not_arrive() {
    let dir = scratch();
    let folders = ["all/p0", "all/p1", "all/p2", "in/p1", "in/p2"];
    filled(&dir, &folders);
    filled(&dir, &["pairs/p0/p1", "pairs/p2/p1"]);
    // A message that is a single file is sent.
    fill(&dir.join("pairs/p1/p0"), 10);
    dir.put("rules", "# what can be made again\ncache/\n\n*.tmp\n");
    for [line, deliveries] in rows(
        "
        scatter --tree path:3 --input @/in | in/p1=p1 in/p2=p2
        gather --tree star:3 --input @/in | in/p1=p1 in/p2=p2
        broadcast -n 2 --input @/in/p1 | in/p1=p1 in/p1=p2
        gossip --network complete:3 --input @/all | all/p2=p0/p2 all/p1=p2/p1
        exchange --network complete:3 --input @/pairs | pairs/p0/p1=p1/p0 pairs/p2/p1=p1/p2
    ",
    ) {
        let (operation, _) = line.split_once(' ').expect("it has options");
        let rules = "--exclude !keep.tmp --exclude-from @/rules";
        let line = format!("{line} {rules} --output @/{operation}");
        dir.run(&line).ok();
        // A repeated command finds what it would send.
        dir.run(&line).ok();
        for (sent, message) in from_to(deliveries) {
            let expected = without(&dir.join(sent), &["b.tmp", "cache", "deep/cache"]);
            assert_eq!(expected.len(), 6);
            assert_same(
                &expected,
                &snapshot(&dir.join(format!("{operation}/{message}"))),
            );
        }
    }
    assert_eq!(names(&dir.join("exchange/p0")), ["p1"]);
}

/// Folders without anything that is taken do not arrive.
#[test]
fn only_included_files_arrive() {
    let dir = scratch();
    filled(&dir, &["in/p1", "in/p2"]);
    let line = "scatter --input @/in --include *.tmp --include /old/ --exclude /b*";
    dir.run(&format!("{line} --output @/out")).ok();
    let left_out = ["a.txt", "b.tmp", "cache", "deep/cache", "empty"];
    let expected = without(&dir.join("in/p2"), &left_out);
    assert_same(&expected, &snapshot(&dir.join("out/p2")));

    let spread =
        "scatter --tree star:3 --spread --input @/in/p1 --include *e*.tmp --output @/dealt";
    dir.run(spread).ok();
    assert_eq!(names(&dir.join("dealt")), ["p1"]);
    assert_eq!(names(&dir.join("dealt/p1")), ["deep"]);
    assert_eq!(names(&dir.join("dealt/p1/deep")), ["keep.tmp"]);

    let wild = "broadcast -n 1 --input @/in/p*/* --exclude **/cache --output @/wild";
    dir.run(wild).ok();
    let expected = without(&dir.join("in/p1"), &["cache", "deep/cache", "old"]);
    assert_same(&expected, &snapshot(&dir.join("wild/p1/p1")));
}

#[test]
fn a_pattern_that_matches_nothing_is_named_in_a_warning() {
    let dir = scratch();
    filled(&dir, &["in/p1", "in/p2"]);
    fill(&dir.join("in/p1/one.log"), 10);
    for operation in ["scatter", "scatter --spread", "gather", "broadcast"] {
        let line = format!("{operation} --tree star:3 --input @/in --include");
        let done = dir.run(&format!(
            "{line} *.lgo --include /no/ --exclude b* --output @/none --force"
        ));
        let warning = "warning: --include: no file matches `*.lgo`, `/no/`\n";
        assert_eq!(done.ok().stderr, warning, "{operation}");
        // It is enough that one of the messages has a file.
        let done = dir.run(&format!("{line} *.log --output @/some --force"));
        assert_eq!(done.ok().stderr, "", "{operation}");
    }
}

#[test]
fn a_folder_that_is_left_out_is_not_read() {
    let dir = scratch();
    filled(&dir, &["in/p1"]);
    std::os::unix::fs::symlink("/nowhere", dir.join("in/p1/away")).expect("it can be made");
    let line = "scatter --input @/in --output @/out";
    dir.run(line).fails(2, &["away"]);
    dir.run(&format!("{line} --exclude away")).ok();
}

#[test]
fn rules_that_cannot_be_followed_are_refused() {
    let dir = scratch();
    filled(&dir, &["in/p1"]);
    for [line, why] in rows(
        "
        -n 1 --size 1KiB --exclude x | --exclude goes with --input, which is not there
        --input @/in --output @/out --exclude-from @/none | --exclude-from: cannot read the file of rules
        --input @/in --output @/out --include !x | --include !x: a pattern of --include cannot
        --input @/in --output @/out --lines --include x | --include: one file is divided
    ",
    ) {
        dir.run(&format!("scatter {line}")).fails(2, &[why]);
    }
    assert!(!dir.join("out").exists());
}
