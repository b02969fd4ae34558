//! Checks that imports form no cycle: neither through files of different folders, nor through files
//! of one folder, nor through the folders and files at the top of a crate, which therefore are
//! layers; and that no command of the coordinator imports another.
//!
//! A name is followed to the file that defines it: re-exports in a folder's first file do not count
//! as imports of that file. In one folder, files may also import that first file.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{module, named, spelled_out};
use super::source::{ALL, Source, sources};

/// The files of a crate, by the modules that they are.
type Files<'a> = BTreeMap<Vec<&'a str>, &'a Source>;

/// The exports of each module: the name there, and the path from the crate's root.
type Shown<'a> = BTreeMap<(Vec<&'a str>, &'a str), Vec<&'a str>>;

/// The modules that each module imports directly.
type Imports<M> = BTreeMap<M, BTreeSet<M>>;

/// Returns the paths that begin with the name of a module inside this one, and whether they are public.
fn of_children<'a>(source: &'a Source, files: &Files<'a>) -> Vec<(Vec<&'a str>, bool)> {
    let own = place(source);
    let mut found = Vec::new();
    let children = files.keys().filter_map(|child| child.split_last());
    for (name, _) in children.filter(|(_, above)| *above == own) {
        for at in source.places(name) {
            let before = source.code[..at].trim_end();
            let is_path = source.code[at + name.len()..].starts_with("::");
            if !is_path || before.ends_with("::") || before.ends_with('{') {
                continue;
            }
            let is_shown = before.ends_with("pub use") || before.ends_with("pub(crate) use");
            let (paths, _) = spelled_out(&source.code[at..], &own);
            found.extend(paths.into_iter().map(|path| (path, is_shown)));
        }
    }
    found
}

/// Returns the module of the file that defines the item at `path`.
fn defining<'a>(path: &[&'a str], files: &Files<'a>, shown: &Shown<'a>) -> Option<Vec<&'a str>> {
    let mut lengths = (0..=path.len()).rev();
    let inside = lengths.find(|&length| files.contains_key(&path[..length]))?;
    let module = path[..inside].to_vec();
    let name = path.get(inside).copied().unwrap_or_default();
    match shown.get(&(module.clone(), name)) {
        Some(next) if next != path => defining(next, files, shown),
        _ => Some(module),
    }
}

/// Returns the folder of a module's file; a file beside the folder of its name belongs to that folder.
fn folder<'a, 'b>(module: &'b [&'a str], files: &Files<'a>) -> &'b [&'a str] {
    let has_more = |other: &Vec<&str>| other.len() > module.len() && other.starts_with(module);
    match files.keys().any(has_more) {
        true => module,
        false => &module[..module.len().saturating_sub(1)],
    }
}

/// Returns the modules that are imported from there, directly or indirectly.
fn reached<M: Ord + Clone>(from: &M, direct: &Imports<M>) -> BTreeSet<M> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        let others = direct[module].iter();
        next.extend(others.filter(|other| reached.insert((*other).clone())));
    }
    reached
}

/// Returns all cycles, and all commands that import another.
fn circles(sources: &[Source]) -> Vec<String> {
    let files: Files = sources.iter().map(|it| (place(it), it)).collect();
    let mut shown = Shown::new();
    for source in sources {
        for (path, is_shown) in of_children(source, &files) {
            if let (Some(name), true) = (path.last(), is_shown) {
                shown.insert((place(source), name), path);
            }
        }
    }
    let imports = |source| {
        let own = of_children(source, &files).into_iter();
        let own = own.filter(|(_, is_shown)| !is_shown).map(|(path, _)| path);
        let all = own.chain(named(source));
        let defining = all.filter_map(|path| defining(&path, &files, &shown));
        defining.collect::<BTreeSet<_>>()
    };
    let modules = files.iter();
    let direct = modules.map(|(module, source)| (module.clone(), imports(source)));
    let direct: BTreeMap<_, _> = direct.collect();
    let across = |from: &Vec<_>, to: &Vec<_>| folder(from, &files) != folder(to, &files);
    let shown = |module: &Vec<_>| files[module].file.clone();
    let mut found = pairs(&direct, across, shown);
    let inside = |from: &Vec<_>, to: &Vec<_>| !across(from, to);
    found.extend(pairs(&without_first_files(&direct), inside, shown));
    found.extend(pairs(&tops(&direct), |_, _| true, |top| top.to_string()));
    let among_commands = direct
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let among_commands = among_commands.filter(|(from, to)| match (&from[..], &to[..]) {
        (["commands", from, ..], ["commands", to, ..]) => from != to,
        _ => false,
    });
    found.extend(among_commands.map(|(from, to)| format!("{} for {}", shown(from), shown(to))));
    found
}

/// Returns the imports except those of a folder's first file by a file below it.
fn without_first_files<'a>(direct: &Imports<Vec<&'a str>>) -> Imports<Vec<&'a str>> {
    let mut direct = direct.clone();
    for (from, to) in &mut direct {
        to.retain(|to| !from.starts_with(to));
    }
    direct
}

/// Returns the imports among the folders and files at the top of a crate, except its root.
fn tops<'a>(direct: &Imports<Vec<&'a str>>) -> Imports<&'a str> {
    let mut tops = Imports::new();
    for (from, to) in direct {
        let Some(from) = from.first() else { continue };
        let others = to.iter().filter_map(|to| to.first());
        let others = others.filter(|to| *to != from).copied();
        tops.entry(*from).or_default().extend(others);
    }
    tops
}

/// Returns all pairs that import each other, directly or indirectly, and that `counts` accepts.
fn pairs<M: Ord + Clone>(
    direct: &Imports<M>,
    counts: impl Fn(&M, &M) -> bool,
    shown: impl Fn(&M) -> String,
) -> Vec<String> {
    let all = direct.keys().map(|from| (from, reached(from, direct)));
    let all: BTreeMap<_, _> = all.collect();
    let mut found = Vec::new();
    for (&from, reached) in &all {
        for to in reached {
            if from < to && all[to].contains(from) && counts(from, to) {
                found.push(format!("{} and {}", shown(from), shown(to)));
            }
        }
    }
    found
}

/// Returns a file's module; that of the crate's root is empty.
fn place(source: &Source) -> Vec<&str> {
    match module(&source.file) {
        door if door == ["lib"] => Vec::new(),
        module => module,
    }
}

#[test]
fn imports_form_no_circle() {
    for name in ALL.into_iter().chain(["tests"]) {
        let found = circles(&sources(&[name])).join("\n");
        let fault = "these import each other, or are commands that import one another";
        assert!(found.is_empty(), "{fault}:\n{found}");
    }
}

#[test]
fn a_circle_that_is_planted_is_found() {
    let files = |of_b: &str| {
        let file = |name, text| Source::new(&format!("node/src/{name}.rs"), text);
        circles(&[
            file("lib", "mod a; mod b; pub use a::Door;"),
            file(
                "a",
                "mod one; mod two; pub use one::Shown; fn f() { two::g() }",
            ),
            file("a/one", "use crate::b::Deep;"),
            file("a/two", "use super::{f, one::Inner};"),
            file("b/mod", "mod deep; mod wide; pub use deep::Deep;"),
            file("b/wide", "use super::Deep;"),
            file("b/deep", of_b),
        ])
    };
    let none: [&str; 0] = [];
    assert_eq!(files("use super::super::c;"), none);
    assert_eq!(files("// use crate::a::two;\nuse super::Deep;"), none);
    let one = ["node/src/a/one.rs and node/src/b/deep.rs", "a and b"];
    assert_eq!(files("use crate::{a::Shown, b};"), one);
    let more = [
        one[0],
        "node/src/a/two.rs and node/src/b/deep.rs",
        "node/src/a/one.rs and node/src/a/two.rs",
        one[1],
    ];
    assert_eq!(files("use crate::a::two::g;"), more);
    let inside = ["node/src/b/deep.rs and node/src/b/wide.rs"];
    assert_eq!(files("use super::wide;"), inside);
}

#[test]
fn a_command_that_imports_another_is_found() {
    let file = |name, text| Source::new(&format!("coordinator/src/{name}.rs"), text);
    let found = circles(&[
        file("lib", "mod commands;"),
        file("commands/mod", "mod plan; mod tree; use tree::draw;"),
        file("commands/plan", "use crate::commands::tree::draw;"),
        file("commands/tree", "use super::shared;"),
    ]);
    let one = "coordinator/src/commands/plan.rs for coordinator/src/commands/tree.rs";
    assert!(found.contains(&one.to_owned()), "{found:?}");
    let other = |found: &String| found.contains(" for ") && found != one;
    assert!(!found.iter().any(other), "{found:?}");
}
