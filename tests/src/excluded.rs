//! Tests that `cargo test` leaves out because they need more than README's test command promises:
//! each has `#[ignore = "needs .."]` on it, and CONTRIBUTING.md names its module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

const MARK: &str = "#[ignore";
const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Modules with such tests, by what these need.
type Excluded = BTreeMap<String, BTreeSet<String>>;

/// Adds the excluded tests of all files below a folder, which is the module `parent`.
fn search(folder: &Path, parent: &str, found: &mut Excluded) {
    for entry in fs::read_dir(folder).expect("the folder of the tests can be listed") {
        let path = entry.expect("the folder of the tests can be listed").path();
        let stem = path.file_stem().expect("an entry has a name");
        let stem = stem.to_string_lossy();
        let module = match parent {
            "" => stem.into_owned(),
            _ if stem == "mod" => parent.to_owned(),
            _ => format!("{parent}::{stem}"),
        };
        if path.is_dir() {
            search(&path, &module, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("source files are text");
            let marks = text.lines().map(str::trim_start);
            for line in marks.filter(|line| line.starts_with(MARK)) {
                let needs = line.split_once("= \"needs ");
                let needs = needs.and_then(|(_, rest)| rest.strip_suffix("\"]"));
                let needs = needs.unwrap_or_else(|| panic!("{module}: {line}: needs what?"));
                let modules = found.entry(needs.to_owned()).or_default();
                modules.insert(module.clone());
            }
        }
    }
}

/// One line names the tests that a run leaves out, and the reasons. libtest does not capture what is written
/// to stderr itself.
#[test]
fn a_run_names_the_tests_that_it_leaves_out() {
    let mut found = Excluded::new();
    search(&Path::new(CRATE).join("tests"), "", &mut found);
    let contributing = fs::read_to_string(Path::new(CRATE).join("../CONTRIBUTING.md"));
    let contributing = contributing.expect("CONTRIBUTING.md is there");
    let mut parts = Vec::new();
    for (needs, modules) in found {
        let modules: Vec<String> = modules.into_iter().collect();
        let row = format!("| {needs} | `{}` |", modules.join("`, `"));
        let is_there = contributing.lines().any(|line| line == row);
        assert!(is_there, "CONTRIBUTING.md lacks this row of tests:\n{row}");
        parts.push(format!("{} (needs {needs})", modules.join(", ")));
    }
    let line = format!("EXCLUDED, see CONTRIBUTING.md: {}\n", parts.join("; "));
    let written = std::io::stderr().write_all(line.as_bytes());
    written.expect("stderr is open");
}
