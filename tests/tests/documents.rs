//! Documents: their links and file names must be valid, and they must be short enough to be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{names, snapshot};

use super::architecture::rust_files;

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

/// All documents except the pages of the manual.
const DOCUMENTS: &str = "README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md deploy/README.md \
    deploy/lab/README.md deploy/runs/README.md tests/README.md";

/// Returns all documents and the pages of the manual.
fn documents() -> Vec<PathBuf> {
    let manual = root().join("coordinator/docs");
    let pages = pages().into_iter().map(|name| manual.join(name));
    let others = DOCUMENTS.split(' ').map(|name| root().join(name));
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
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    let kept: String = heading.chars().filter(is_kept).collect();
    kept.replace(' ', "-")
}

/// A file may be named by the end of its path, as long as that is unique.
#[test]
fn files_that_are_named_are_there() {
    let mut all = vec![PathBuf::from(".ci/run")];
    for folder in ["proto", "node", "coordinator", "tests", "deploy"] {
        let below = snapshot(&root().join(folder)).into_keys();
        all.extend(below.map(|path| Path::new(folder).join(path)));
    }
    let ends_so = |name: &str| {
        let ends = [PathBuf::from(name), PathBuf::from(format!("{name}.rs"))];
        all.iter()
            .any(|path| ends.iter().any(|end| path.ends_with(end)))
    };
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = text_of(&root().join(document));
        let lines = text.lines().filter(|line| !line.starts_with("```"));
        let quoted = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path = |name: &&str| {
            let plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
            name.chars().all(plain) && (name.contains('/') || name.ends_with(".rs"))
        };
        let mut named = 0;
        for name in quoted.filter(is_path) {
            assert!(ends_so(name), "{document}: `{name}` is not there");
            named += 1;
        }
        assert!(named > 5, "{document} names {named} files");
    }
}

#[test]
fn documents_stay_short() {
    for (document, most) in [("README.md", 110), ("ARCHITECTURE.md", 250)] {
        let lines = text_of(&root().join(document)).lines().count();
        assert!(lines <= most, "{document} has {lines} lines, not {most}");
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
    let runs = names(&root().join("deploy/runs"));
    for run in runs.iter().filter(|run| *run != "README.md") {
        let is_there = index.contains(&format!("| [{run}]({run}/README.md) |"));
        assert!(is_there, "deploy/runs/README.md lacks {run}");
    }
}

/// The messages of the page on troubleshooting are those of the program: all parts between the
/// `..` of a message occur in it.
#[test]
fn messages_that_are_explained_exist() {
    let folders = [
        "proto/src",
        "node/src",
        "coordinator/cluster/src",
        "coordinator/src",
    ]
    .into_iter();
    let texts = folders.flat_map(rust_files).map(|(_, text)| text);
    let texts: String = texts.collect();
    // String literals on one line.
    let sources: String = texts.split("\\\n").map(str::trim_start).collect();
    let page = text_of(&root().join("coordinator/docs/troubleshooting.md"));
    let messages = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let messages = messages.filter_map(|line| Some(line.split_once("` |")?.0));
    let mut explained = 0;
    for message in messages {
        for part in message.split("..").map(str::trim) {
            let is_there = sources.contains(part);
            assert!(is_there, "troubleshooting.md: no message has `{part}`");
        }
        explained += 1;
    }
    assert!(explained > 20, "{explained} messages are explained");
}

/// `tests/mistakes.sh` is not a part of any test run, so a change of the code could make it useless
/// unnoticed.
#[test]
fn planted_mistakes_fit_the_code() {
    let script = root().join("tests/mistakes.sh");
    let checked = Command::new("bash").arg(script).arg("--check").output();
    let checked = checked.expect("bash runs");
    let errors = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{errors}");
}
