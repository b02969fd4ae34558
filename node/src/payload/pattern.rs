//! Inputs with wildcards, which the host of each sender expands: `logs/*.log`, `host/p*/var/*.log`.
//!
//! `*` matches any part of a name, `?` one character, `[a-z]` one of those characters, `[!a-z]` one of all
//! others, and a backslash takes the meaning of the character behind it; as in a shell, a dot at the
//! beginning of a name is matched by a dot alone. Symlinks are not followed behind the first wildcard.
//!
//! Where all PEs are on one host, the first name with a wildcard chooses among the entries of PEs, and each
//! PE sends from its own: `host/p[1-3]/*.log`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;

use super::deal::{list, list_files};
use super::entry::Content;
use super::error::{PayloadError, shown};
use super::hidden::HiddenName;
use super::others::Others;
use super::selection::{Selection, fits};

/// The name that stands for the entry of the sending PE on any host, where it is the first one with a
/// wildcard.
const OF_PE: &str = "p*";

/// A path with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The folder above the first name with a wildcard.
    pub folder: PathBuf,
    /// The names below it, the first with a wildcard.
    names: Vec<OsString>,
}

impl Pattern {
    /// Parses a path; returns `None` if it has no wildcard, or if it exists as it is written.
    pub fn of(path: &Path) -> Option<Pattern> {
        let names: Vec<&OsStr> = path.iter().collect();
        let first = names.iter().position(|name| has_wildcard(name))?;
        let is_literal = path.symlink_metadata().is_ok();
        (!is_literal).then(|| Pattern {
            folder: names[..first].iter().collect(),
            names: names[first..].iter().map(OsString::from).collect(),
        })
    }

    /// Returns whether a message has files without the metadata of a folder above them.
    /// `chooses_entries` specifies whether the first wildcard is for the entries of PEs.
    pub fn is_dealt(&self, chooses_entries: bool) -> bool {
        self.names.len() > 1 || !(chooses_entries || self.names[0] == OF_PE)
    }

    /// Returns the pattern of one PE, with its entry in the place of the first wildcard if that chooses
    /// among entries; `None` if it does not choose this one.
    ///
    /// # Errors
    ///
    /// Returns an error if the PE has two entries.
    pub fn of_pe(
        mut self,
        others: Others,
        pe: PeId,
        chooses_entries: bool,
    ) -> Result<Option<Pattern>, PayloadError> {
        if chooses_entries || self.names[0] == OF_PE {
            let entry = others.entry(&self.folder, pe)?;
            let name = entry.file_name().unwrap_or_default();
            if self.names[0] != OF_PE && !is_match(self.names[0].as_bytes(), name.as_bytes()) {
                return Ok(None);
            }
            self.names[0] = name.to_owned();
        }
        Ok(Some(self))
    }

    /// Returns the matching files, and all those below matching folders, as one message; `None` if
    /// there are none. Their paths in it begin below the last folder without a wildcard.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder cannot be read.
    pub fn content(&self) -> Result<Option<Content>, PayloadError> {
        let (mut base, mut names) = (self.folder.clone(), &self.names[..]);
        while let [first, rest @ ..] = names
            && !rest.is_empty()
            && !has_wildcard(first)
        {
            base.push(first);
            if !is_folder(&base)? {
                return Ok(None);
            }
            names = rest;
        }
        if let [only] = names
            && !has_wildcard(only)
            && self.names.len() == 1
        {
            let path = base.join(only);
            return Ok(found(&path)?.map(|_| Content::Entry(path)));
        }
        // A missing folder has no match.
        if !exists(&base)? {
            return Ok(None);
        }
        let mut files = Vec::new();
        matches_below(&base, Path::new(""), names, &mut files)?;
        let mut files: Vec<PathBuf> = files.into_iter().map(|(_, path)| path).collect();
        files.sort();
        Ok((!files.is_empty()).then(|| Content::Dealt {
            base,
            files: files.into(),
            with_root: false,
        }))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below: PathBuf = self.names.iter().collect();
        f.write_str(&shown(&self.folder.join(below)))
    }
}

/// Adds the files whose paths below `base.join(below)` match the names.
fn matches_below(
    base: &Path,
    below: &Path,
    names: &[OsString],
    files: &mut Vec<(u64, PathBuf)>,
) -> Result<(), PayloadError> {
    let [pattern, rest @ ..] = names else {
        return Ok(());
    };
    for name in list(&base.join(below))? {
        if !is_match(pattern.as_bytes(), name.as_os_str().as_bytes()) {
            continue;
        }
        let found = below.join(&name);
        let is_folder = is_folder(&base.join(&found))?;
        match rest {
            [] => list_files(base, &found, &Selection::default(), files)?,
            rest if is_folder => matches_below(base, &found, rest, files)?,
            _ => {}
        }
    }
    Ok(())
}

fn has_wildcard(name: &OsStr) -> bool {
    name.as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Returns whether something is there, without following a symlink at the end.
fn exists(path: &Path) -> Result<bool, PayloadError> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    Ok(found(path)?.is_some())
}

/// Returns whether there is a folder, not a symlink to one.
fn is_folder(path: &Path) -> Result<bool, PayloadError> {
    Ok(found(path)?.is_some_and(|found| found.is_dir()))
}

fn found(path: &Path) -> Result<Option<std::fs::Metadata>, PayloadError> {
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(PayloadError::io("read", path)(error)),
    }
}

fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let is_hidden = name.starts_with(b".") && !pattern.starts_with(b".");
    !is_hidden && HiddenName::parse(OsStr::from_bytes(name)).is_none() && fits(pattern, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_match_as_in_a_shell() {
        for (pattern, names) in [
            ("*.log", &["a.log", "a.b.log", "-.log"][..]),
            ("a?c", &["abc", "a.c", "aéc"]),
            ("[a-c]*", &["a", "bcd", "c."]),
            ("[!a-c]x", &["dx", "-x"]),
            ("[]x]y", &["]y", "xy"]),
            ("*", &["a", "["]),
            (".*", &[".a", ".."]),
            (r"\*\a", &["*a"]),
            ("a\\", &["a\\"]),
            ("a[", &["a["]),
            ("**", &["a"]),
            ("*a*b", &["ab", "aab", "xaxbxb"]),
            ("*?c", &["abc", "éc"]),
            ("[äö]*", &["ä", "öl"]),
            ("[é]x", &["éx"]),
            ("[à-ö-]", &["é", "-"]),
            ("*[!é]", &["éa", "ä"]),
        ] {
            for name in names {
                assert!(
                    is_match(pattern.as_bytes(), name.as_bytes()),
                    "{pattern} {name}"
                );
            }
        }
        for (pattern, name) in [
            ("*.log", ".log"),
            ("*", ".hidden"),
            ("?", ""),
            ("[a-c]", "d"),
            ("[!a-c]", "a"),
            ("a", "ab"),
            ("ab", "a"),
            ("*b", "a"),
            ("*a*b", "ba"),
            ("[äö]*", "épée"),
            ("[!a]?", "é"),
            ("*[!é]", "é"),
        ] {
            assert!(
                !is_match(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
    }

    /// A search that tries all ways to divide the name among the stars would not end.
    #[test]
    fn many_stars_take_no_longer_than_one() {
        let (pattern, name) = ("*a".repeat(40) + "b", "a".repeat(250));
        assert!(!is_match(pattern.as_bytes(), name.as_bytes()));
    }

    fn folder(paths: &[&str]) -> io::Result<tempfile::TempDir> {
        let dir = tempfile::tempdir()?;
        for path in paths {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one"))?;
            fs::write(path, "")?;
        }
        Ok(dir)
    }

    /// Returns the base and the files of P1's message.
    fn found(dir: &Path, pattern: &str) -> Option<(PathBuf, Vec<String>)> {
        let names = ["alpha", "beta"].map(str::to_owned);
        let others = Others::all(2).named(&names);
        let pattern = Pattern::of(&dir.join(pattern)).expect("it has wildcards");
        let pattern = pattern.of_pe(others, PeId(1), true).expect("one entry")?;
        match pattern.content().expect("all can be read")? {
            Content::Dealt { base, files, .. } => {
                let base = base.strip_prefix(dir).expect("it is below").to_owned();
                let files = files.iter().map(|it| it.to_str().unwrap_or("").to_owned());
                Some((base, files.collect()))
            }
            Content::Entry(path) | Content::Part { path, .. } => {
                Some((path.strip_prefix(dir).ok()?.to_owned(), Vec::new()))
            }
        }
    }

    #[test]
    fn a_pattern_becomes_the_files_of_one_pe() -> io::Result<()> {
        let dir = folder(&[
            "p0/var/a.log",
            "p1/var/b.log",
            "p1/var/c.log",
            "p1/var/c.txt",
            "p1/var/.flitcast-unfinished-p1-0000000000000000",
            "p1/deep/d.log/x",
            "p1/deep/d.log/y/z",
        ])?;
        fs::create_dir_all(dir.path().join("p1/deep/e.log"))?;
        symlink("/", dir.path().join("p1/link"))?;
        let some = |base: &str, files: &[&str]| {
            let files = files.iter().map(|it| (*it).to_owned()).collect();
            Some((PathBuf::from(base), files))
        };
        let found = |pattern| found(dir.path(), pattern);
        assert_eq!(found("p*/var/*.log"), some("p1/var", &["b.log", "c.log"]));
        assert_eq!(found("p*/*/b*"), some("p1", &["var/b.log"]));
        let deep = some("p1/deep", &["d.log/x", "d.log/y/z", "e.log"]);
        assert_eq!(found("p*/deep/*"), deep);
        assert_eq!(found("p*/var/c.txt"), some("p1/var", &["c.txt"]));
        assert_eq!(found("p*"), some("p1", &[]));
        // Symlinks are not followed.
        assert_eq!(found("p*/link/*"), None);
        assert_eq!(found("p*/lin?/*"), None);
        assert_eq!(found("p*/nothing/*"), None);
        assert_eq!(found("nowhere/*"), None);
        assert_eq!(
            found("?[0-9]/var/*.log"),
            some("p1/var", &["b.log", "c.log"])
        );
        assert_eq!(found("*/var/c.*"), some("p1/var", &["c.log", "c.txt"]));
        assert_eq!(found("p[1-2]"), some("p1", &[]));
        assert_eq!(found("p[!1]/var/*"), None);

        fs::rename(dir.path().join("p1"), dir.path().join("beta"))?;
        let named = some("beta/var", &["b.log", "c.log"]);
        assert_eq!(found("p*/var/*.log"), named);
        assert_eq!(found("[bc]*/var/*.log"), named);
        assert_eq!(found("p?/var/*.log"), None);
        // A name that exists as it is written stands for itself.
        fs::write(dir.path().join("[x]"), "")?;
        assert_eq!(Pattern::of(&dir.path().join("[x]")), None);
        assert_eq!(Pattern::of(dir.path()), None);
        Ok(())
    }
}
