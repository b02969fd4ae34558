//! Checks that all code for the operating system is in one folder of each crate, `system`, so that
//! the dependencies on Linux are easy to find.

use super::source::{ALL, Source, sources};

/// Crates whose calls are the system's.
const CRATES: [&str; 2] = ["rustix", "libc"];

/// Folders that are the kernel's, as texts begin with them.
const FOLDERS: [&str; 2] = ["\"/proc", "\"/sys/"];

/// Permitted calls elsewhere.
const ELSEWHERE: [(&str, &[&str]); 1] = [
    // Files are read and written below open folders: this is the purpose of the payload, and mostly
    // POSIX.
    ("node/src/payload/", &["fs", "io"]),
];

/// Returns the system calls in a file, as `file:line what`.
fn calls(source: &Source) -> Vec<String> {
    let own = source.file.split_once("/src/").map(|(_, inside)| inside);
    if own.is_some_and(|inside| inside.starts_with("system/")) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for name in CRATES {
        for (at, part) in source.below(name) {
            let is_listed = |(folder, parts): &(&str, &[&str])| {
                source.file.starts_with(folder) && parts.contains(&part)
            };
            if !ELSEWHERE.iter().any(is_listed) {
                let line = source.line(at);
                found.push(format!("{}:{line} {name}::{part}", source.file));
            }
        }
    }
    let lines = source.code.lines().zip(source.text.lines());
    for (number, (code, text)) in (1..).zip(lines) {
        // A line in a comment or in a test has no code left.
        let folder = FOLDERS.iter().find(|folder| text.contains(**folder));
        if let Some(folder) = folder.filter(|_| !code.trim().is_empty()) {
            found.push(format!("{}:{number} {folder}", source.file));
        }
    }
    found
}

#[test]
fn system_calls_are_in_one_folder() {
    let all = sources(&ALL);
    let found: Vec<String> = all.iter().flat_map(calls).collect();
    assert_eq!(found, [""; 0], "these belong into a folder `system`");
    for (folder, _) in ELSEWHERE {
        let is_needed = |source: &Source| {
            let is_there = source.file.starts_with(folder);
            is_there && CRATES.iter().any(|name| !source.places(name).is_empty())
        };
        assert!(all.iter().any(is_needed), "{folder} has no such calls");
    }
}

#[test]
fn a_call_that_is_planted_is_found() {
    let text = "use rustix::net::recv; // rustix::fs\nfn f() { read(\"/proc/self/stat\") }\n\
                #[cfg(test)]\nmod tests { fn g() { libc::fork(\"/proc\") } }\n";
    let in_file = |file| calls(&Source::new(file, text));
    let both = |file: &str| vec![format!("{file}:1 rustix::net"), format!("{file}:2 \"/proc")];
    for file in ["node/src/link.rs", "node/src/payload/a.rs"] {
        assert_eq!(in_file(file), both(file));
    }
    assert_eq!(in_file("node/src/system/clock.rs"), [""; 0]);
    let allowed = Source::new("node/src/payload/a.rs", "use rustix::fs::open;");
    assert_eq!(calls(&allowed), [""; 0]);
}
