//! Tells the binary which commit it was built from, for measurements that are kept.

use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    let commit = git(&[
        "describe",
        "--always",
        "--dirty=+changes",
        "--exclude=*",
        "--abbrev=40",
    ]);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=FLITCAST_COMMIT={commit}");
    // A commit shows in the log of HEAD, a change in the sources.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    for sources in [
        "src",
        "build.rs",
        "cluster/src",
        "../node/src",
        "../proto/src",
        "../proto/plan/src",
    ] {
        println!("cargo::rerun-if-changed={sources}");
    }
}
