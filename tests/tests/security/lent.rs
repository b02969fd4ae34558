//! The files that a PE lends to the command that it joins: those below the folders that its user
//! names, and no others.

use std::os::unix::fs::symlink;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill, snapshot};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::{Running, refused};

/// Starts P0 with P1 and P2, each with its lent folders.
fn lending(cluster: &Joining, lent: [&str; 3]) -> Vec<Running> {
    let node = |(pe, lent): (usize, &&str)| {
        cluster.node(pe as u32, &format!("--credentials DIR/ca --stay {lent}"))
    };
    lent.iter().enumerate().map(node).collect()
}

#[track_caller]
fn cluster() -> Joining {
    let cluster = Joining::new(&[0, 0], "60s");
    std::fs::create_dir(cluster.path("lent")).expect("it can be made");
    cluster.dir.put("home/.bashrc", "the user's");
    for pe in 1..3 {
        fill(&cluster.path(&format!("in/h{pe}")), 100_000);
    }
    cluster
}

/// Checks that the command fails and names the refused path, and that nothing is written in the
/// folder.
#[track_caller]
fn refuses(cluster: &Joining, line: &str, expected: &[&str], untouched: &Path) {
    let before = snapshot(untouched);
    let failed = cluster.guarded(line).finish();
    failed.fails(1, expected);
    assert_eq!(snapshot(untouched), before, "{line}");
}

#[test]
fn a_pe_lends_the_folders_that_its_user_names() {
    let cluster = cluster();
    std::fs::create_dir(cluster.path("back")).expect("it can be made");
    let other = "--files DIR/lent";
    let nodes = lending(&cluster, ["--files DIR/in --files DIR/back", other, other]);
    let there = "scatter --input DIR/in --output DIR/lent/out";
    cluster.guarded(there).finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("lent/out"));
    let back = "gather --input DIR/lent/out --output DIR/back";
    cluster.guarded(back).finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("back"));

    // Files outside are neither replaced nor read, and errors name the paths as they were given.
    let home = cluster.path("home");
    let shown = |name: &str| format!("`{}`", cluster.path(name).display());
    let outside = |name: &str| {
        let (path, lent) = (shown(name), shown("lent"));
        format!(": {path}: outside of the folders that this PE lends, {lent}; ")
    };
    // A symlink in the folder is not followed either.
    symlink(&home, cluster.path("lent/link")).expect("it can be made");
    let link = format!(": {}: a symlink", shown("lent/link"));
    for (name, expected, help) in [
        ("home/.bashrc", outside("home/.bashrc"), "--files DIR"),
        (
            "lent/../home/.bashrc",
            outside("lent/../home/.bashrc"),
            "--files DIR",
        ),
        ("lent/link/.bashrc", link, ""),
    ] {
        let line = format!("broadcast --input DIR/in/h1 --output DIR/{name} --force");
        refuses(&cluster, &line, &[&expected, help], &home);
    }
    let line = "gather --input DIR/home --output DIR/back --force";
    refuses(&cluster, line, &[&outside("home"), "--files DIR"], &home);

    // An error in a lent folder names it as its user did.
    let gather = "gather --input DIR/lent/out --output DIR/back/h0/h1";
    cluster.dir.put("back/h0", "no folder");
    let failed = cluster.guarded(gather).finish();
    assert_ne!(failed.code, Some(0));
    failed.stderr_has(&["/back/h0"]);
    assert!(!failed.stderr.contains("/proc/"), "{}", failed.stderr);
    dismiss(nodes);
}

#[test]
fn a_pe_lends_nothing_by_default() {
    let cluster = cluster();
    let nodes = lending(&cluster, ["--files DIR", "--files DIR", ""]);
    cluster.guarded("scatter --size 1KiB").finish().ok();
    let line = "scatter --input DIR/in --output DIR/lent";
    let expected = "no folder of P2 h2 is lent for messages made of files";
    let lent = cluster.path("lent");
    refuses(&cluster, line, &[expected, "--files DIR"], &lent);
    dismiss(nodes);
    refused(
        "node --pe 1 --join 127.0.0.1:1 --insecure --files /nowhere",
        &[
            "--files: with --insecure, anybody who listens at 127.0.0.1:1 could read and write files here: give --credentials DIR",
            "--files /nowhere: No such file or directory",
        ],
    );
}
