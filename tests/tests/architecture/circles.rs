//! Checks that imports form no cycle through files of different folders.
//!
//! A name is followed to the file that defines it: re-exports in a folder's first file do not count
//! as imports of that file.

use std::collections::{BTreeMap, BTreeSet};

use super::layers::{module, named, spelled_out};
use super::source::{Source, sources};

/// The files of a crate, by the modules that they are.
type Files<'a> = BTreeMap<Vec<&'a str>, &'a Source>;

/// The exports of each module: the name there, and the path from the crate's root.
type Shown<'a> = BTreeMap<(Vec<&'a str>, &'a str), Vec<&'a str>>;

/// Returns the paths that begin with the name of a module inside this one, and whether they are public.
fn of_children<'a>(source: &'a Source, files: &Files<'a>) -> Vec<(Vec<&'a str>, bool)> {
    let own = module(&source.file);
    let own = if own == ["lib"] { Vec::new() } else { own };
    let mut found = Vec::new();
    for child in files.keys() {
        let Some((&name, above)) = child.split_last() else {
            continue;
        };
        if above != own {
            continue;
        }
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
    let inside = (0..=path.len())
        .rev()
        .find(|&length| files.contains_key(&path[..length]))?;
    let module = path[..inside].to_vec();
    let next = path
        .get(inside)
        .and_then(|&name| shown.get(&(module.clone(), name)));
    match next {
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
fn reached<M: Ord + Clone>(from: &M, direct: &BTreeMap<M, BTreeSet<M>>) -> BTreeSet<M> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(
            direct[module]
                .iter()
                .filter(|other| reached.insert((*other).clone())),
        );
    }
    reached
}

/// Returns all pairs of files in different folders that import each other, directly or indirectly.
fn circles(sources: &[Source]) -> Vec<String> {
    let files: Files = sources
        .iter()
        .map(|source| (place(source), source))
        .collect();
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
        let others = named(source).into_iter().map(|(path, _)| path);
        let defining = |path: Vec<_>| defining(&path, &files, &shown);
        own.chain(others)
            .filter_map(defining)
            .collect::<BTreeSet<_>>()
    };
    let direct: BTreeMap<_, _> = files
        .iter()
        .map(|(module, source)| (module.clone(), imports(source)))
        .collect();
    let all: BTreeMap<_, _> = files
        .keys()
        .map(|from| (from, reached(from, &direct)))
        .collect();
    let mut found = Vec::new();
    for (&from, reached) in &all {
        for to in reached {
            let is_circle = from < to && all[to].contains(from);
            if is_circle && folder(from, &files) != folder(to, &files) {
                found.push(format!("{} and {}", files[from].file, files[to].file));
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
fn no_circle_leads_through_two_folders() {
    for name in ["proto", "node", "coordinator", "tests"] {
        let found = circles(&sources(&[name]));
        assert!(
            found.is_empty(),
            "these import each other:\n{}",
            found.join("\n")
        );
    }
}

/// The search follows names to their definitions, and finds a planted cycle.
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
            file("a/one", "use super::two; use crate::b::Deep;"),
            file("a/two", "use super::one::Inner;"),
            file("b/mod", "mod deep; pub use deep::Deep;"),
            file("b/deep", of_b),
        ])
    };
    let none: [&str; 0] = [];
    assert_eq!(files("use super::super::c;"), none);
    assert_eq!(files("// use crate::a::two;\nuse super::Deep;"), none);
    let two = [
        "node/src/a/one.rs and node/src/b/deep.rs",
        "node/src/a/two.rs and node/src/b/deep.rs",
    ];
    assert_eq!(files("use crate::{a::Shown, b};"), two);
    assert_eq!(files("use crate::a::two::g;"), two);
}
