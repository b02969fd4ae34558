//! Checks that the folders and files at the top of each crate are layers: each imports only from
//! itself and from those below it, and no command of the coordinator imports another.
//!
//! Unit tests are excluded, because their imports are not part of the program.

use super::source::{Source, sources};

/// A crate, and the entries at the top of its `src`.
struct House {
    name: &'static str,
    /// Folders and files, from the bottom to the top.
    layers: &'static [&'static str],
    /// The folder whose modules do not import each other.
    apart: &'static str,
    /// Files above all layers: the crate's root, and modules for its tests.
    root: &'static [&'static str],
}

const HOUSES: [House; 3] = [
    House {
        name: "coordinator",
        layers: &[
            "system",
            "text",
            "tuning",
            "options",
            "files",
            "site",
            "algorithms",
            "job",
            "observe",
            "launch",
            "rounds",
            "retry",
            "render",
            "commands",
            "cli",
        ],
        apart: "commands",
        root: &["bin", "lib", "machines", "parsers"],
    },
    House {
        name: "node",
        layers: &[
            "limits",
            "tuning",
            "blocking",
            "text",
            "system",
            "channel",
            "timeout_stream",
            "health",
            "counters",
            "activity_monitor",
            "handshake_limiter",
            "security",
            "permissions",
            "config",
            "payload",
            "shape",
            "pacer",
            "readiness",
            "link",
            "neighbours",
            "held",
            "parts",
            "inputs",
            "store",
            "inbox",
            "probe",
            "briefing",
            "round",
            "rounds",
            "listen",
            "io",
            "error",
            "coordinator",
            "connect",
            "task",
            "host",
            "confine",
            "session",
            "join",
        ],
        apart: "",
        root: &["lib"],
    },
    House {
        name: "proto",
        layers: &[
            "ids",
            "names",
            "seeded",
            "limits",
            "fraction",
            "tree",
            "network",
            "gossip",
            "baseline",
            "cost",
            "shape",
            "calibration",
            "packets",
            "schedule",
            "items",
            "trace",
            "spans",
            "on_links",
            "streams",
            "ops",
            "wire",
            "round",
            "sim",
            "predict",
        ],
        apart: "",
        root: &["lib"],
    },
];

/// Returns the module of a file: `coordinator/src/text/units.rs` is `text` and `units`.
pub fn module(file: &str) -> Vec<&str> {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let names = inside.split('/').collect::<Vec<_>>();
    match names.split_last() {
        Some((&"mod", folders)) => folders.to_vec(),
        _ => names,
    }
}

/// Returns all paths that a path with groups names, each after the common prefix: `a::{b, c::d}` is
/// two.
pub fn spelled_out<'a>(code: &'a str, common: &[&'a str]) -> (Vec<Vec<&'a str>>, &'a str) {
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
        // Generic arguments are not part of the path.
        Some(more) if !more.starts_with('<') => spelled_out(more, &path),
        _ => (vec![path], rest),
    }
}

/// Returns all paths into this crate that a file names, from the crate's root, with their lines.
pub fn named(source: &Source) -> Vec<(Vec<&str>, usize)> {
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

impl House {
    /// Returns whether an item of module `from` may import the item at `path`.
    fn is_downwards(&self, from: &[&str], path: &[&str]) -> bool {
        let layer = |path: &[&str]| {
            let first = path.first()?;
            self.layers.iter().position(|layer| layer == first)
        };
        let (Some(own), Some(other)) = (layer(from), layer(path)) else {
            return false;
        };
        match own == other && self.layers[own] == self.apart {
            true => from.get(1).is_none() || from.get(1) == path.get(1),
            false => other <= own,
        }
    }

    /// Returns all upward imports, with their positions.
    fn upwards(&self, sources: &[Source]) -> Vec<String> {
        let door = sources
            .iter()
            .find(|source| module(&source.file) == ["lib"]);
        let shown = door.map(shown_at_the_door).unwrap_or_default();
        let mut found = Vec::new();
        for source in sources {
            let from = module(&source.file);
            if self.root.contains(&from[0]) {
                continue;
            }
            for (path, line) in named(source) {
                let behind = shown.iter().find(|shown| shown.last() == path.first());
                if !self.is_downwards(&from, behind.unwrap_or(&path)) {
                    let path = path.join("::");
                    found.push(format!("{}:{line} crate::{path}", source.file));
                }
            }
        }
        found
    }
}

/// Returns the paths of the modules' items that the crate's root exports, as `pub use ids::PeId`
/// does.
fn shown_at_the_door(door: &Source) -> Vec<Vec<&str>> {
    let uses = door.places("use").into_iter();
    uses.flat_map(|at| spelled_out(&door.code[at + "use".len()..], &[]).0)
        .collect()
}

#[test]
fn folders_import_downwards_only() {
    for house in &HOUSES {
        let found = house.upwards(&sources(&[house.name]));
        assert!(
            found.is_empty(),
            "these import what lies above them, {} being the order: move what they need down\n{}",
            house.layers.join(", "),
            found.join("\n")
        );
    }
}

/// Every new folder must be assigned to a layer.
#[test]
fn every_file_is_of_a_layer() {
    for house in &HOUSES {
        for source in sources(&[house.name]) {
            let first = module(&source.file)[0];
            let is_known = house.layers.contains(&first) || house.root.contains(&first);
            assert!(is_known, "{} is of no layer", source.file);
        }
    }
}

/// The search finds upward imports and no others.
#[test]
fn an_import_upwards_that_is_planted_is_found() {
    let planted = |file: &str, text| {
        let file = format!("coordinator/src/{file}");
        let door = Source::new(
            "coordinator/src/lib.rs",
            "pub use files::Shown; use cli::Above;",
        );
        let mut found = HOUSES[0].upwards(&[Source::new(&file, text), door]);
        found.sort();
        let place = format!("{file}:");
        let found = found.iter().map(|found| found.replace(&place, ""));
        found.collect::<Vec<_>>()
    };
    let site = r#"
        use crate::files::toml_file::{self, Spot};
        use crate::job::Way;
        use crate::job::request::{self, Request};
        use crate::launch::ssh as of_hosts;
        use crate::site::guard;
        // use crate::cli::main;
        use super::super::render::page;
        use super::{guard::Guard, reach};
        use crate::{Above, Shown};
        fn f() { crate::refuse(); crate::text::units::Bytes::<u8>::of(crate::rounds::RUN) }
        #[cfg(test)] mod tests { use crate::retry; }
    "#;
    let found = [
        "3 crate::job::Way",
        "3 crate::job::request",
        "3 crate::job::request::Request",
        "3 crate::launch::ssh",
        "5 crate::render::page",
        "7 crate::Above",
        "8 crate::refuse",
        "8 crate::rounds::RUN",
    ];
    assert_eq!(planted("site/placement.rs", site), found);
    let command = "use crate::commands::{plan::Plan, tree}; use crate::render;";
    let found = ["1 crate::commands::plan::Plan"];
    assert_eq!(planted("commands/tree/svg.rs", command), found);
    assert_eq!(planted("commands/mod.rs", command), [""; 0]);
    assert_eq!(planted("lib.rs", command), [""; 0]);
}
