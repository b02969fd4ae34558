//! The rules that choose among files, from the options and the files that they name.

use anyhow::{anyhow, ensure};

use crate::files::user_file::{self, FileKind};
use crate::options::transfer::SelectionArgs;

/// Maximum length and number of all rules together: each PE receives them.
const MAX_RULE_BYTES: usize = 64 * 1024;
const MAX_RULES: usize = 4096;

const FILE: FileKind = FileKind {
    name: "file of rules",
    max_bytes: MAX_RULE_BYTES as u64,
};

/// Returns the rules, those that take files first: the last one that matches decides.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if a rule is empty, has a line break or is too long.
pub fn rules(args: &SelectionArgs) -> anyhow::Result<Vec<String>> {
    let mut rules = Vec::new();
    for pattern in &args.include {
        ensure!(
            !pattern.starts_with('!'),
            "--include {pattern}: a pattern of --include cannot begin with `!`; leave files out with --exclude"
        );
        rules.push(format!("!{pattern}"));
    }
    let is_open = rules.is_empty();
    for path in &args.exclude_from {
        let text = user_file::load(FILE, path, |text| Ok(text.to_owned()));
        let text = text.map_err(|fault| anyhow!("--exclude-from: {fault}"))?;
        let lines = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        rules.extend(lines.map(str::to_owned));
    }
    rules.extend(args.exclude.iter().cloned());
    for (option, pattern) in patterns(args) {
        ensure!(
            !pattern.trim_matches(['/', ' ', '!']).is_empty()
                && !pattern.starts_with('#')
                && !pattern.contains('\n'),
            "{option}: `{}` matches no file; write a pattern like '*.tmp'",
            pattern.escape_debug()
        );
    }
    // Where all files are sent, taking some changes nothing; as the first rule it would leave out the
    // others.
    if is_open {
        let first = rules.iter().position(|rule| !rule.starts_with('!'));
        rules.drain(..first.unwrap_or(rules.len()));
    }
    let count = rules.len();
    ensure!(
        count <= MAX_RULES,
        "--exclude and --include: there can be {MAX_RULES} rules, and not {count}"
    );
    let bytes: usize = rules.iter().map(String::len).sum();
    ensure!(
        bytes <= MAX_RULE_BYTES,
        "--exclude and --include: {bytes} bytes of rules, of which each PE receives at most {MAX_RULE_BYTES}"
    );
    Ok(rules)
}

fn patterns(args: &SelectionArgs) -> impl Iterator<Item = (&'static str, &String)> {
    let include = args.include.iter().map(|pattern| ("--include", pattern));
    let exclude = args.exclude.iter().map(|pattern| ("--exclude", pattern));
    include.chain(exclude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(include: &[&str], exclude: &[&str]) -> SelectionArgs {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
        SelectionArgs {
            archive: false,
            include: texts(include),
            exclude: texts(exclude),
            exclude_from: Vec::new(),
        }
    }

    #[test]
    fn included_files_precede_excluded_ones() {
        let of = |include, exclude| rules(&of(include, exclude)).unwrap();
        assert_eq!(
            of(&["*.rs"], &["target/", "!x"]),
            ["!*.rs", "target/", "!x"]
        );
        assert_eq!(of(&[], &["!a", "*.o", "!b.o"]), ["*.o", "!b.o"]);
        assert_eq!(of(&[], &["!a"]), [""; 0]);
    }

    #[test]
    fn rules_of_a_file_precede_the_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "# build\n\n*.o\n!keep.o\n").unwrap();
        let args = SelectionArgs {
            exclude_from: vec![file.path().to_owned()],
            ..of(&[], &["/keep.o"])
        };
        assert_eq!(rules(&args).unwrap(), ["*.o", "!keep.o", "/keep.o"]);
    }

    #[test]
    fn a_rule_that_matches_nothing_is_refused() {
        for (include, exclude, expected) in [
            (&["!a"][..], &[][..], "--include !a: a pattern"),
            (&[""], &[], "--include: `` matches no file"),
            (&[], &["/"], "--exclude: `/` matches no file"),
            (&[], &["a\nb"], r"--exclude: `a\nb` matches no file"),
        ] {
            let refused = rules(&of(include, exclude)).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let long = "x".repeat(MAX_RULE_BYTES + 1);
        let refused = rules(&of(&[], &[&long])).unwrap_err().to_string();
        assert!(refused.contains("65537 bytes of rules"), "{refused}");
        let many = rules(&of(&[], &["x"; MAX_RULES + 1]))
            .unwrap_err()
            .to_string();
        assert!(many.contains("and not 4097"), "{many}");
        let args = SelectionArgs {
            exclude_from: vec!["/nowhere/at/all".into()],
            ..SelectionArgs::default()
        };
        let refused = rules(&args).unwrap_err().to_string();
        assert!(
            refused.contains("--exclude-from: cannot read the file of rules /nowhere"),
            "{refused}"
        );
    }
}
