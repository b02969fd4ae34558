//! Documents: their links and file names must be valid, and they must be short enough to be read.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::names;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[track_caller]
fn text_of(document: &Path) -> String {
    let text = fs::read_to_string(document);
    text.unwrap_or_else(|error| panic!("{}: {error}", document.display()))
}

/// Returns the names of the pages of the manual, its table of contents included.
fn pages() -> Vec<String> {
    let all = names(&root().join("coordinator/docs")).into_iter();
    all.filter(|name| name.ends_with(".md")).collect()
}

/// Returns all documents and the pages of the manual.
fn documents() -> Vec<PathBuf> {
    let whole = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ];
    let others = [
        "deploy/README.md",
        "deploy/lab/README.md",
        "deploy/runs/README.md",
        "tests/README.md",
    ];
    let manual = root().join("coordinator/docs");
    let pages = pages().into_iter().map(|name| manual.join(name));
    let others = whole
        .into_iter()
        .chain(others)
        .map(|name| root().join(name));
    others.chain(pages).collect()
}

#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let text = text_of(&document);
        let links = text.split("](").skip(1);
        let links = links.filter_map(|rest| rest.split_once(')').map(|(link, _)| link));
        for link in links.filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = match file {
                "" => document.clone(),
                file => document.parent().expect("it is in a folder").join(file),
            };
            assert!(file.exists(), "{}: {link}", document.display());
            if !heading.is_empty() {
                let text = text_of(&file);
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line) == heading);
                assert!(is_there, "{}: {link}", document.display());
            }
        }
    }
}

/// Returns the anchor of a heading: its words in small letters, with dashes between them.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Adds all files and folders below one, as paths from the root.
fn below(folder: &str, found: &mut Vec<String>) {
    for name in names(&root().join(folder)) {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            below(&path, found);
        }
        found.push(path);
    }
}

/// A file may be named by the end of its path, as long as that is unique.
#[test]
fn files_that_are_named_are_there() {
    let mut all = vec![".ci/run".to_owned()];
    for folder in ["proto", "node", "coordinator", "tests", "deploy"] {
        below(folder, &mut all);
    }
    let ends_so = |name: &str| {
        let ends = [format!("/{name}"), format!("/{name}.rs")];
        all.iter()
            .any(|path| path == name || ends.iter().any(|end| path.ends_with(end)))
    };
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = text_of(&root().join(document));
        let lines = text.lines().filter(|line| !line.starts_with("```"));
        let lines: Vec<&str> = lines.collect();
        let quoted = lines
            .iter()
            .flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path = |word: &&str| {
            let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
            word.chars().all(plain) && (word.contains('/') || word.ends_with(".rs"))
        };
        let mut named = 0;
        for name in quoted.filter(is_path) {
            assert!(
                ends_so(name),
                "{document} names `{name}`, which is not there"
            );
            named += 1;
        }
        assert!(named > 5, "{document} names {named} files");
    }
}

#[test]
fn documents_stay_short() {
    for (document, most) in [("README.md", 110), ("ARCHITECTURE.md", 250)] {
        let lines = text_of(&root().join(document)).lines().count();
        assert!(
            lines <= most,
            "{document} has {lines} lines, {most} are enough"
        );
    }
}

#[test]
fn the_table_of_contents_lists_every_page() {
    let contents = text_of(&root().join("coordinator/docs/SUMMARY.md"));
    for page in pages().iter().filter(|page| *page != "SUMMARY.md") {
        let is_there = contents.contains(&format!("]({page})"));
        assert!(is_there, "SUMMARY.md lacks {page}");
    }
}

#[test]
fn the_index_of_runs_lists_every_run() {
    let index = text_of(&root().join("deploy/runs/README.md"));
    for run in names(&root().join("deploy/runs")) {
        let is_there =
            run == "README.md" || index.contains(&format!("| [{run}]({run}/README.md) |"));
        assert!(is_there, "deploy/runs/README.md lacks {run}");
    }
}

/// Adds the texts of all source files below a folder, with string literals on one line.
fn add_sources(folder: &Path, sources: &mut String) {
    for name in names(folder) {
        let path = folder.join(name);
        if path.is_dir() {
            add_sources(&path, sources);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = text_of(&path);
            let mut parts = text.split("\\\n");
            sources.push_str(parts.next().unwrap_or_default());
            for part in parts {
                sources.push_str(part.trim_start());
            }
        }
    }
}

/// The messages of the page on troubleshooting are those of the program: all parts between the
/// `..` of a message occur in it.
#[test]
fn messages_that_are_explained_exist() {
    let mut sources = String::new();
    for part in [
        "proto/src",
        "node/src",
        "coordinator/cluster/src",
        "coordinator/src",
    ] {
        add_sources(&root().join(part), &mut sources);
    }
    let page = text_of(&root().join("coordinator/docs/troubleshooting.md"));
    let messages = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let messages = messages.filter_map(|line| Some(line.split_once("` |")?.0));
    let mut explained = 0;
    for message in messages {
        for part in message.split("..").map(str::trim) {
            assert!(
                sources.contains(part),
                "troubleshooting.md: no message has `{part}`"
            );
        }
        explained += 1;
    }
    assert!(explained > 20, "{explained} messages are explained");
}
