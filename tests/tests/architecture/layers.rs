//! The coordinator's folders are layers: each imports only from itself and from those below it,
//! and no command imports another.
//!
//! Unit tests are left out: whom they take for an example compiles into nothing.

use super::source::{Source, sources};

/// The folders of `coordinator/src`, from the bottom to the top.
const LAYERS: [&str; 13] = [
    "text", "options", "files", "site", "ways", "job", "observe", "launch", "rounds", "retry",
    "render", "commands", "cli",
];

/// Whose modules do not import each other.
const APART: &str = "commands";

/// What stands above all folders: the crate's door, and the tests' own.
const ROOT: [&str; 3] = ["bin", "lib", "parsers"];

/// The module that a file is: `coordinator/src/text/units.rs` is `text` and `units`.
fn module(file: &str) -> Vec<&str> {
    let inside = file.strip_prefix("coordinator/src/").unwrap_or(file);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let names = inside.split('/').collect::<Vec<_>>();
    match names.split_last() {
        Some((&"mod", folders)) => folders.to_vec(),
        _ => names,
    }
}

/// The names of all paths that a path with groups stands for, after what they have in common:
/// `a::{b, c::d}` is two.
fn spelled_out<'a>(code: &'a str, common: &[&'a str]) -> (Vec<Vec<&'a str>>, &'a str) {
    let rest = code.trim_start();
    if let Some(group) = rest.strip_prefix('{') {
        let (mut all, mut rest) = (Vec::new(), group.trim_start());
        while !rest.starts_with('}') {
            let (paths, after) = spelled_out(rest, common);
            all.extend(paths);
            // Behind a path, up to what ends it: `as other`.
            let end = after.find([',', '}']).expect("a group ends");
            rest = after[end..].trim_start_matches(',').trim_start();
        }
        return (all, &rest[1..]);
    }
    let is_of_name = |char: char| char.is_alphanumeric() || char == '_' || char == '*';
    let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
    let own = (name != "self").then_some(name);
    let path: Vec<&str> = common.iter().copied().chain(own).collect();
    match rest.strip_prefix("::") {
        // What stands in angle brackets is no part of the path.
        Some(more) if !more.starts_with('<') => spelled_out(more, &path),
        _ => (vec![path], rest),
    }
}

/// All paths into this crate that a file names, from the crate's root, with their lines.
fn named(source: &Source) -> Vec<(Vec<&str>, usize)> {
    let mut found = Vec::new();
    for word in ["crate", "super"] {
        for at in source.places(word) {
            let before = source.code[..at].trim_end();
            let Some(mut rest) = source.code[at + word.len()..].strip_prefix("::") else {
                continue;
            };
            if before.ends_with("::") {
                continue;
            }
            let mut above = match word {
                "crate" => Vec::new(),
                _ => module(&source.file),
            };
            if word == "super" {
                above.pop();
                while let Some(higher) = rest.strip_prefix("super::") {
                    above.pop();
                    rest = higher;
                }
            }
            let line = source.line(at);
            let (paths, _) = spelled_out(rest, &above);
            found.extend(paths.into_iter().map(|path| (path, line)));
        }
    }
    found
}

/// Whether what is of module `from` may import what lies at `path`.
fn is_downwards(from: &[&str], path: &[&str]) -> bool {
    let layer = |path: &[&str]| LAYERS.iter().position(|layer| path.first() == Some(layer));
    let (Some(own), Some(other)) = (layer(from), layer(path)) else {
        return false;
    };
    match own == other && LAYERS[own] == APART {
        true => from.get(1).is_none() || from.get(1) == path.get(1),
        false => other <= own,
    }
}

/// All imports that lead upwards: where, and what is imported.
fn upwards(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let from = module(&source.file);
        if ROOT.contains(&from[0]) {
            continue;
        }
        for (path, line) in named(source) {
            if !is_downwards(&from, &path) {
                let path = path.join("::");
                found.push(format!("{}:{line} crate::{path}", source.file));
            }
        }
    }
    found
}

#[test]
fn folders_import_downwards_only() {
    let found = upwards(&sources(&["coordinator"]));
    assert!(
        found.is_empty(),
        "these import what lies above them, {} being the order: move what they need down\n{}",
        LAYERS.join(", "),
        found.join("\n")
    );
}

/// Whoever makes a folder says where it stands.
#[test]
fn every_file_is_of_a_layer() {
    for source in sources(&["coordinator"]) {
        let first = module(&source.file)[0];
        let is_known = LAYERS.contains(&first) || ROOT.contains(&first);
        assert!(is_known, "{} is of no layer", source.file);
    }
}

/// The search finds what it is for, and lets go what leads down or stays.
#[test]
fn an_import_upwards_that_is_planted_is_found() {
    let planted = |file: &str, text| {
        let file = format!("coordinator/src/{file}");
        let mut found = upwards(&[Source::new(&file, text)]);
        found.sort();
        let place = format!("{file}:");
        let found = found.iter().map(|found| found.replace(&place, ""));
        found.collect::<Vec<_>>()
    };
    let site = r#"
        use crate::files::toml_file::{self, Spot};
        use crate::{launch::ssh as of_hosts, site::guard, job::{request::{self, Request}, Way}};
        // use crate::cli::main;
        use super::super::render::page;
        use super::{guard::Guard, reach};
        fn f() { crate::refuse(); crate::text::units::Bytes::<u8>::of(crate::rounds::RUN) }
        #[cfg(test)] mod tests { use crate::retry; }
    "#;
    let found = [
        "3 crate::job::Way",
        "3 crate::job::request",
        "3 crate::job::request::Request",
        "3 crate::launch::ssh",
        "5 crate::render::page",
        "7 crate::refuse",
        "7 crate::rounds::RUN",
    ];
    assert_eq!(planted("site/placement.rs", site), found);
    let command = "use crate::commands::{plan::Plan, tree}; use crate::render;";
    let found = ["1 crate::commands::plan::Plan"];
    assert_eq!(planted("commands/tree/svg.rs", command), found);
    assert_eq!(planted("commands/mod.rs", command), [""; 0]);
    assert_eq!(planted("lib.rs", command), [""; 0]);
}
