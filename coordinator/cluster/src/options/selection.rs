//! Options that choose among the files of the input.

use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use clap::Args;

use crate::files::user_file::{self, FileKind};

/// Maximum length of all rules together, in bytes: each PE receives them.
const MAX_RULE_BYTES: usize = 64 * 1024;

const FILE: FileKind = FileKind {
    name: "file of rules",
    max_bytes: MAX_RULE_BYTES as u64,
};

/// Options that choose among files, in the form of gitignore.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionArgs {
    /// Leave out what matches, like '*.tmp' or /cache/: by the rules of gitignore, from the top of each
    /// message. `!PATTERN` takes it all the same.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// Leave out what the rules in this file match, in the form of .gitignore; --exclude comes after them.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub exclude_from: Vec<PathBuf>,
    /// Send only files that match, like '*.log', and all files below a folder that does, like logs/.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub include: Vec<String>,
}

impl SelectionArgs {
    /// Returns the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        [
            ("--exclude", self.exclude.is_empty()),
            ("--exclude-from", self.exclude_from.is_empty()),
            ("--include", self.include.is_empty()),
        ]
        .iter()
        .find_map(|(option, is_empty)| (!is_empty).then_some(*option))
    }

    /// Returns the rules, those that take files first: the last one that matches decides.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if a rule is empty, has a line break or is too long.
    pub fn rules(&self) -> anyhow::Result<Vec<String>> {
        let mut rules = Vec::new();
        for pattern in &self.include {
            ensure!(
                !pattern.starts_with('!'),
                "--include {pattern}: it takes what matches as it is; write the rest behind --exclude"
            );
            rules.push(format!("!{pattern}"));
        }
        let is_open = rules.is_empty();
        for path in &self.exclude_from {
            let text = user_file::load(FILE, path, |text| Ok(text.to_owned()));
            let text = text.map_err(|fault| anyhow!("--exclude-from: {fault}"))?;
            let lines = text
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
            rules.extend(lines.map(str::to_owned));
        }
        rules.extend(self.exclude.iter().cloned());
        for (option, pattern) in self.patterns() {
            ensure!(
                !pattern.trim_matches(['/', ' ', '!']).is_empty() && !pattern.contains('\n'),
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
        let bytes: usize = rules.iter().map(String::len).sum();
        ensure!(
            bytes <= MAX_RULE_BYTES,
            "--exclude and --include: {bytes} bytes of rules, of which each PE receives at most {MAX_RULE_BYTES}"
        );
        Ok(rules)
    }

    fn patterns(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let include = self.include.iter().map(|pattern| ("--include", pattern));
        let exclude = self.exclude.iter().map(|pattern| ("--exclude", pattern));
        include.chain(exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(include: &[&str], exclude: &[&str]) -> SelectionArgs {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
        SelectionArgs {
            include: texts(include),
            exclude: texts(exclude),
            exclude_from: Vec::new(),
        }
    }

    #[test]
    fn what_is_taken_comes_first() {
        let rules = |include, exclude| of(include, exclude).rules().unwrap();
        assert_eq!(
            rules(&["*.rs"], &["target/", "!x"]),
            ["!*.rs", "target/", "!x"]
        );
        assert_eq!(rules(&[], &["!a", "*.o", "!b.o"]), ["*.o", "!b.o"]);
        assert_eq!(rules(&[], &["!a"]), [""; 0]);
    }

    #[test]
    fn a_file_of_rules_comes_before_the_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "# build\n\n*.o\n!keep.o\n").unwrap();
        let args = SelectionArgs {
            exclude_from: vec![file.path().to_owned()],
            ..of(&[], &["/keep.o"])
        };
        assert_eq!(args.rules().unwrap(), ["*.o", "!keep.o", "/keep.o"]);
    }

    #[test]
    fn a_rule_that_matches_nothing_is_refused() {
        for (include, exclude, expected) in [
            (&["!a"][..], &[][..], "--include !a: it takes"),
            (&[""], &[], "--include: `` matches no file"),
            (&[], &["/"], "--exclude: `/` matches no file"),
            (&[], &["a\nb"], r"--exclude: `a\nb` matches no file"),
        ] {
            let refused = of(include, exclude).rules().unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let long = "x".repeat(MAX_RULE_BYTES + 1);
        let refused = of(&[], &[&long]).rules().unwrap_err().to_string();
        assert!(refused.contains("65537 bytes of rules"), "{refused}");
        let args = SelectionArgs {
            exclude_from: vec!["/nowhere/at/all".into()],
            ..SelectionArgs::default()
        };
        let refused = args.rules().unwrap_err().to_string();
        assert!(
            refused.contains("--exclude-from: cannot read the file of rules /nowhere"),
            "{refused}"
        );
    }
}
