//! Who may depend on whom: `proto <- node <- coordinator`, and the protocol needs
//! neither sockets nor a clock nor chance.

use std::collections::BTreeSet;
use std::process::Command;

/// All packages that a package is built from, itself included, by name.
#[track_caller]
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args([
            "tree", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}",
        ])
        .output()
        .expect("cargo is there");
    let text = String::from_utf8_lossy(&cargo.stdout);
    let complaint = String::from_utf8_lossy(&cargo.stderr);
    assert!(cargo.status.success(), "{complaint}");
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(names.contains(package), "{text}");
    names
}

#[track_caller]
fn assert_without(package: &str, unwanted: &[&str]) {
    let all = dependencies(package);
    for name in unwanted {
        assert!(!all.contains(*name), "{package} depends on {name}: {all:?}");
    }
}

#[test]
fn the_protocol_does_no_io_and_has_no_clock_and_no_chance() {
    let unwanted = [
        "tokio",
        "tokio-util",
        "mio",
        "socket2",
        "async-std",
        "smol",
        "rustix",
        "nix",
        "libc",
        "rand",
        "rand_core",
        "getrandom",
        "fastrand",
        "chrono",
        "time",
        "tracing-subscriber",
    ];
    assert_without("flitcast-proto", &unwanted);
    assert!(dependencies("flitcast-proto").contains("prost"));
    assert!(
        dependencies("flitcast-node").contains("tokio"),
        "that is how it would show"
    );
}

#[test]
fn dependencies_point_one_way() {
    let node = [
        "flitcast-coordinator",
        "flitcast-tests",
        "clap",
        "indicatif",
    ];
    assert_without("flitcast-node", &node);
    let above = ["flitcast-node", "flitcast-coordinator", "flitcast-tests"];
    assert_without("flitcast-proto", &above);
    assert_without("flitcast-coordinator", &["flitcast-tests"]);
    for (package, below) in [
        ("flitcast-node", "flitcast-proto"),
        ("flitcast-coordinator", "flitcast-node"),
    ] {
        assert!(dependencies(package).contains(below), "{package}");
    }
}

/// The sources of a crate, comments and tests left out, by file.
#[track_caller]
fn sources(crate_name: &str) -> Vec<(String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut folders = vec![std::path::Path::new(root).join(crate_name).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                let text = std::fs::read_to_string(&path).expect("it is text");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
                let name = path.display().to_string();
                files.push((name, lines.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    files
}

/// Where a process waits for another one, there is a limit: what waits without one of its
/// own is only made where somebody watches.
#[test]
fn no_wait_for_the_network_is_without_a_limit() {
    let all: Vec<(String, String)> = ["node", "coordinator"]
        .into_iter()
        .flat_map(sources)
        .collect();
    let mut seen = std::collections::BTreeMap::new();
    for (file, code) in &all {
        for line in code.lines() {
            for (wait, allowed) in [
                // Within a time limit.
                ("TcpStream::connect(", line.contains("timeout(")),
                // Over a connection that falls silent.
                (
                    "FramedRead::new(",
                    file.ends_with("conversation.rs") || file.ends_with("coordinator.rs"),
                ),
                (
                    "FramedWrite::new(",
                    file.ends_with("conversation.rs") || file.ends_with("coordinator.rs"),
                ),
                // In a round, under watch.
                ("next_word(None)", file.ends_with("conduct.rs")),
                ("hear(None)", false),
                // Edges are read and written by the link alone; whoever waits for one in
                // a round is under watch. A transport only passes on.
                (
                    ".poll_read(",
                    ["link.rs", "lively.rs", "read_ahead.rs", "transport.rs"]
                        .iter()
                        .any(|name| file.ends_with(name)),
                ),
                (".write_vectored(", file.ends_with("link.rs")),
            ] {
                if line.contains(wait) {
                    assert!(allowed, "{file}: {line}");
                    *seen.entry(wait).or_insert(0) += 1;
                }
            }
        }
    }
    assert_eq!(seen.get("TcpStream::connect("), Some(&2));
    assert_eq!(seen.get("next_word(None)"), Some(&1));
}
