//! The choice of files by rules in the form of gitignore: `*.tmp`, `/build/`, `!keep.tmp`.
//!
//! Paths begin at the root of a message, or at the input if its files are dealt. The last rule that
//! matches an entry decides; an entry that none matches is treated as the folder around it. A folder that
//! is left out is not read. If the first rule takes files, only those are sent that a rule takes.

use std::path::Path;

/// Rules that choose among the entries of a message; without rules, all are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    takes: bool,
    is_for_folders: bool,
    /// The patterns of the names of a path.
    names: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `**`: any number of folders.
    Folders,
    Name(Vec<u8>),
}

/// The decision about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Taken,
    /// No rule matches, and only what a rule takes is sent: in a folder there may be such entries.
    Open,
    LeftOut,
}

impl Selection {
    /// Parses rules; blank ones and comments (`#`) are skipped.
    pub fn parse(rules: &[String]) -> Selection {
        Selection {
            rules: rules.iter().filter_map(|rule| Rule::parse(rule)).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(super) fn choose(&self, path: &Path, is_folder: bool) -> Choice {
        let path: Vec<&[u8]> = path.iter().map(|name| name.as_encoded_bytes()).collect();
        let mut choice = match self.rules.first() {
            Some(first) if first.takes => Choice::Open,
            _ => Choice::Taken,
        };
        for end in 1..=path.len() {
            let is_folder = is_folder || end < path.len();
            let mut rules = self.rules.iter().rev();
            choice = match rules.find(|rule| rule.matches(&path[..end], is_folder)) {
                Some(rule) if rule.takes => Choice::Taken,
                Some(_) => return Choice::LeftOut,
                None => choice,
            };
        }
        choice
    }
}

impl Rule {
    fn parse(rule: &str) -> Option<Rule> {
        let rule = rule.strip_suffix('\r').unwrap_or(rule);
        let bare = rule.trim_end_matches(' ');
        // A backslash keeps the blank behind it.
        let rule = match rule[bare.len()..].is_empty() || !bare.ends_with('\\') {
            true => bare,
            false => &rule[..=bare.len()],
        };
        let (takes, rule) = match rule.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, rule),
        };
        let is_for_folders = rule.ends_with('/');
        let path = rule.trim_end_matches('/');
        if path.is_empty() || !takes && rule.starts_with('#') {
            return None;
        }
        let is_at_root = path.contains('/');
        let mut names = if is_at_root {
            vec![]
        } else {
            vec![Part::Folders]
        };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match name {
                "**" if names.last() == Some(&Part::Folders) => {}
                "**" => names.push(Part::Folders),
                name => names.push(Part::Name(name.as_bytes().to_vec())),
            }
        }
        // Only entries of a folder match, and not the folder itself.
        if names.last() == Some(&Part::Folders) {
            names.push(Part::Name(b"*".to_vec()));
        }
        Some(Rule {
            takes,
            is_for_folders,
            names,
        })
    }

    /// Returns whether the rule matches the whole path. Behind a `**` it is enough to go back to the last
    /// one, so that no rule takes more than the product of the two lengths.
    fn matches(&self, path: &[&[u8]], is_folder: bool) -> bool {
        let (mut names, mut path) = (&self.names[..], path);
        let mut last_folders: Option<(&[Part], &[&[u8]])> = None;
        if self.is_for_folders && !is_folder {
            return false;
        }
        loop {
            match (names, path) {
                ([Part::Folders, rest @ ..], _) => {
                    names = rest;
                    last_folders = Some((rest, path));
                }
                ([Part::Name(pattern), rest @ ..], [name, below @ ..]) if fits(pattern, name) => {
                    (names, path) = (rest, below);
                }
                ([], []) => return true,
                _ => match last_folders {
                    Some((behind, [_, below @ ..])) => {
                        last_folders = Some((behind, below));
                        (names, path) = (behind, below);
                    }
                    _ => return false,
                },
            }
        }
    }
}

/// Matches a whole name. Behind a `*` it is enough to go back to the last one, so that no pattern takes
/// more than the product of the two lengths.
pub(super) fn fits(mut pattern: &[u8], mut name: &[u8]) -> bool {
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            last_star = Some((rest, name));
        } else if let Some(rests) = fits_once(pattern, name) {
            (pattern, name) = rests;
        } else if pattern.is_empty() && name.is_empty() {
            return true;
        } else if let Some((behind, name_left)) = last_star
            && let Some((_, rest)) = split_character(name_left)
        {
            // The star takes a character more.
            last_star = Some((behind, rest));
            (pattern, name) = (behind, rest);
        } else {
            return false;
        }
    }
}

/// Matches the first character of a pattern that does not begin with `*`; returns the rests of both.
fn fits_once<'p, 'n>(pattern: &'p [u8], name: &'n [u8]) -> Option<(&'p [u8], &'n [u8])> {
    let ([first, rest @ ..], [byte, tail @ ..]) = (pattern, name) else {
        return None;
    };
    match first {
        b'?' => split_character(name).map(|(_, tail)| (rest, tail)),
        b'\\' if !rest.is_empty() => (rest[0] == *byte).then_some((&rest[1..], tail)),
        b'[' => match set_of(rest) {
            Some((set, rest)) => {
                let (first, tail) = split_character(name)?;
                set.contains(first).then_some((rest, tail))
            }
            None => (*byte == b'[').then_some((rest, tail)),
        },
        first => (first == byte).then_some((rest, tail)),
    }
}

/// Splits off the first character, or a byte that begins none.
fn split_character(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = text.split_first()?;
    let more = rest.iter().take_while(|byte| (**byte & 0xc0) == 0x80);
    Some(text.split_at(1 + if *first < 0xc0 { 0 } else { more.count() }))
}

/// Parses a set of characters behind its bracket; returns it, and the pattern behind it. A set without an
/// end stands for itself.
fn set_of(text: &[u8]) -> Option<(Set<'_>, &[u8])> {
    let (is_other, text) = match text {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // A bracket at the beginning is one of the characters.
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b']')?;
    let characters = &text[..end];
    let set = Set {
        characters,
        is_other,
    };
    Some((set, &text[end + 1..]))
}

/// Characters and ranges of them, like `a-z_`, or all others.
struct Set<'a> {
    characters: &'a [u8],
    is_other: bool,
}

impl Set<'_> {
    fn contains(&self, character: &[u8]) -> bool {
        let mut rest = self.characters;
        while let Some((from, behind)) = split_character(rest) {
            let range = behind.strip_prefix(b"-").and_then(split_character);
            let (to, next) = range.unwrap_or((from, behind));
            // Encoded characters have the order of the characters.
            if (from..=to).contains(&character) {
                return !self.is_other;
            }
            rest = next;
        }
        self.is_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(rules: &[&str], path: &str) -> Choice {
        let rules: Vec<String> = rules.iter().map(|&rule| rule.to_owned()).collect();
        let is_folder = path.ends_with('/');
        Selection::parse(&rules).choose(Path::new(path), is_folder)
    }

    /// The examples of gitignore's manual, and those that are often wrong.
    #[test]
    fn rules_are_those_of_gitignore() {
        for (rule, left_out, taken) in [
            (
                "*.tmp",
                &["a.tmp", "d/e/.tmp", "a.tmp/x"][..],
                &["a.tmpx", "tmp"][..],
            ),
            ("/*.tmp", &["a.tmp"], &["d/a.tmp"]),
            (
                "doc/frotz",
                &["doc/frotz", "doc/frotz/x"],
                &["a/doc/frotz", "doc", "doc/a/frotz"],
            ),
            (
                "doc/frotz/",
                &["doc/frotz/", "doc/frotz/x"],
                &["doc/frotz", "a/doc/frotz/"],
            ),
            (
                "frotz/",
                &["frotz/", "a/frotz/", "a/frotz/x"],
                &["frotz", "a/frotz"],
            ),
            ("foo/*", &["foo/a", "foo/a/b"], &["foo/", "a/foo/b"]),
            ("**/foo", &["foo", "a/b/foo"], &["foox", "a/b"]),
            (
                "**/foo/bar",
                &["foo/bar", "a/foo/bar"],
                &["foo/a/bar", "bar"],
            ),
            ("abc/**", &["abc/a", "abc/a/b"], &["abc/", "x/abc/a"]),
            (
                "a/**/b",
                &["a/b", "a/x/b", "a/x/y/b", "a/b/b"],
                &["a/x", "b", "a/bb"],
            ),
            (
                "a/**/b/**/c",
                &["a/b/c", "a/1/b/2/3/c", "a/b/b/c"],
                &["a/c", "a/c/b"],
            ),
            (r"\!x", &["!x"], &["x"]),
            (r"\#x", &["#x"], &["x"]),
            (r"a\*", &["a*"], &["ab", r"a\b"]),
            (r"a\ ", &["a "], &["a"]),
            ("a  ", &["a"], &["a "]),
            ("[a-c]?", &["b1", "x/c."], &["b", "d1"]),
            ("# all", &[], &["# all", "all"]),
            ("", &[], &["a"]),
            ("/", &[], &["a"]),
        ] {
            for path in left_out {
                assert_eq!(choose(&[rule], path), Choice::LeftOut, "{rule} {path}");
            }
            for path in taken {
                assert_eq!(choose(&[rule], path), Choice::Taken, "{rule} {path}");
            }
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let rules = ["*.log", "[#]*", "!keep.log", "!#a", "old/"];
        for (path, expected) in [
            ("a.log", Choice::LeftOut),
            ("keep.log", Choice::Taken),
            ("d/keep.log", Choice::Taken),
            // `#` marks a comment only at the beginning of a rule.
            ("#a", Choice::Taken),
            ("#b", Choice::LeftOut),
            // A folder that is left out is not read.
            ("old/keep.log", Choice::LeftOut),
            ("a", Choice::Taken),
        ] {
            assert_eq!(choose(&rules, path), expected, "{path}");
        }
    }

    #[test]
    fn only_what_a_first_rule_takes_is_taken() {
        let rules = ["!*.rs", "!/docs/", "target/", "draft.*"];
        for (path, expected) in [
            ("src/a.rs", Choice::Taken),
            ("a.txt", Choice::Open),
            ("src/", Choice::Open),
            ("docs/a.txt", Choice::Taken),
            ("docs/draft.rs", Choice::LeftOut),
            ("src/docs/a.txt", Choice::Open),
            ("target/a.rs", Choice::LeftOut),
        ] {
            assert_eq!(choose(&rules, path), expected, "{path}");
        }
    }

    /// A search that tries all ways to divide the path among the folders would not end.
    #[test]
    fn many_folders_take_no_longer_than_one() {
        let rule = "**/a/".repeat(40) + "b";
        let path = "a/".repeat(400) + "c";
        assert_eq!(choose(&[&rule], &path), Choice::Taken);
    }
}
