//! The coordinator's folders are layers: each imports only from itself and from those below it,
//! and no command imports another. What still does otherwise stands in `layers.txt`, which may
//! only shrink.
//!
//! Unit tests are left out: whom they take for an example compiles into nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, sources};

/// The folders of `coordinator/src`, from the bottom to the top.
const LAYERS: [&str; 13] = [
    "text", "options", "files", "site", "ways", "job", "observe", "launch", "rounds", "retry",
    "render", "commands", "cli",
];

/// Whose modules do not import each other.
const APART: &str = "commands";

/// What stands above all folders: the crate's door, and the tests' own.
const ROOT: [&str; 2] = ["lib", "parsers"];

/// An import that leads upwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Upwards {
    /// From the workspace's root.
    file: String,
    /// What is imported: `crate::render::report::lines`.
    path: String,
}

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

/// All imports that lead upwards, with their lines.
fn upwards(sources: &[Source]) -> BTreeMap<Upwards, Vec<usize>> {
    let mut found: BTreeMap<Upwards, Vec<usize>> = BTreeMap::new();
    for source in sources {
        let from = module(&source.file);
        if ROOT.contains(&from[0]) || from[0] == "bin" {
            continue;
        }
        for (path, line) in named(source) {
            if !is_downwards(&from, &path) {
                let import = Upwards {
                    file: source.file.clone(),
                    path: format!("crate::{}", path.join("::")),
                };
                found.entry(import).or_default().push(line);
            }
        }
    }
    found
}

/// Those that are known.
fn known() -> BTreeSet<Upwards> {
    let lines = include_str!("layers.txt").lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known = lines.map(|line| {
        let (file, path) = line.split_once(' ').expect("a file and a path");
        let (file, path) = (file.to_owned(), path.to_owned());
        Upwards { file, path }
    });
    known.collect()
}

#[test]
fn folders_import_downwards_only() {
    let found = upwards(&sources(&["coordinator"]));
    let known = known();
    let new: Vec<String> = found
        .iter()
        .filter(|(import, _)| !known.contains(import))
        .map(|(Upwards { file, path }, lines)| format!("{file} {path}    line {lines:?}"))
        .collect();
    assert!(
        new.is_empty(),
        "these import what lies above them, {} being the order: move what they need down\n{}",
        LAYERS.join(", "),
        new.join("\n")
    );
    let gone: Vec<_> = known
        .iter()
        .filter(|import| !found.contains_key(import))
        .map(|Upwards { file, path }| format!("{file} {path}"))
        .collect();
    assert!(
        gone.is_empty(),
        "layers.txt has what is no more: strike it out\n{}",
        gone.join("\n")
    );
}

/// Whoever makes a folder says where it stands.
#[test]
fn every_file_is_of_a_layer() {
    for source in sources(&["coordinator"]) {
        let first = module(&source.file)[0];
        let is_known = LAYERS.contains(&first) || ROOT.contains(&first) || first == "bin";
        assert!(is_known, "{} is of no layer", source.file);
    }
}

/// The search finds what it is for, and lets go what leads down or stays.
#[test]
fn an_import_upwards_that_is_planted_is_found() {
    let planted = |file: &str, text| {
        let file = format!("coordinator/src/{file}");
        let found = upwards(&[Source::new(&file, text)]).into_iter();
        let found = found.map(|(import, lines)| format!("{} {lines:?}", import.path));
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
        "crate::job::Way [3]",
        "crate::job::request [3]",
        "crate::job::request::Request [3]",
        "crate::launch::ssh [3]",
        "crate::refuse [7]",
        "crate::render::page [5]",
        "crate::rounds::RUN [7]",
    ];
    assert_eq!(planted("site/placement.rs", site), found);
    let command = "use crate::commands::{plan::Plan, tree}; use crate::render;";
    let found = ["crate::commands::plan::Plan [1]"];
    assert_eq!(planted("commands/tree/svg.rs", command), found);
    assert_eq!(planted("commands/mod.rs", command), [""; 0]);
    assert_eq!(planted("lib.rs", command), [""; 0]);
}
