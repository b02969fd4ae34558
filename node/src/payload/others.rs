//! The set of PEs that have a separate message, and their entries in an input.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use flitcast_proto::{PeId, Tree};

use super::error::{PayloadError, shown};
use super::hidden::{PREFIX, pe_of};

/// Maximum number of names that a message lists; the rest are counted.
const LISTED: usize = 6;

/// Maximum length of a name that an entry in an output can have: that of its hidden files, which are
/// longer, must not be longer than 255 bytes.
const LONGEST_NAME: usize = 200;

/// The PEs that have a message: all of them, or all but the root at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others<'a> {
    /// The PE without a message, if there is one.
    pub root: Option<PeId>,
    /// Number of PEs, the root included.
    pub pes: usize,
    /// Names of the PEs by index; empty for a PE whose name is unknown.
    pub names: &'a [String],
}

impl<'a> Others<'a> {
    /// Returns all PEs of a tree but its root, absent ones included.
    pub fn of(tree: &Tree) -> Others<'a> {
        Others {
            root: Some(tree.root()),
            ..Others::all(tree.len())
        }
    }

    pub fn all(pes: usize) -> Others<'a> {
        Others {
            root: None,
            pes,
            names: &[],
        }
    }

    pub fn named<'b>(self, names: &'b [String]) -> Others<'b> {
        let Others { root, pes, .. } = self;
        Others { root, pes, names }
    }

    /// Returns the PE of an entry: the one with this number, as in `p3`, or else with this name.
    pub fn pe_of(self, entry: &OsStr) -> Option<usize> {
        let named = || self.names.iter().position(|name| entry == name.as_str());
        pe_of(entry).or_else(named)
    }

    /// Returns the possible entries of a PE in a folder: that of its number, and that of its name.
    pub fn entries(self, folder: &Path, pe: PeId) -> impl Iterator<Item = PathBuf> {
        let named = name_of(pe, self.names).map(|name| folder.join(name));
        [destination(folder, pe)].into_iter().chain(named)
    }

    /// Returns the entry of a PE in a folder; that of its number if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if there are two.
    pub fn entry(self, folder: &Path, pe: PeId) -> Result<PathBuf, PayloadError> {
        let all = self.entries(folder, pe);
        let mut found = all.filter(|path| path.symlink_metadata().is_ok());
        match (found.next(), found.next()) {
            (Some(one), Some(other)) => Err(two_entries(pe, &one, &other)),
            (one, _) => Ok(one.unwrap_or_else(|| destination(folder, pe))),
        }
    }

    /// Returns whether the entry of a PE in an output has this name.
    pub fn is_output(self, entry: &OsStr) -> bool {
        let numbered = |pe| pe < self.pes && name_of(PeId(pe as u32), self.names).is_none();
        let is_named = || {
            let mut pes = (0..self.names.len().min(self.pes) as u32).map(PeId);
            pes.any(|pe| name_of(pe, self.names).is_some_and(|name| entry == name))
        };
        pe_of(entry).map_or_else(is_named, numbered)
    }

    /// Returns the number of PEs that have a message.
    pub fn count(self) -> usize {
        self.iter().count()
    }

    /// Returns the indices of the PEs that have a message, in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        let root = self.root.map(PeId::index);
        (0..self.pes).filter(move |pe| Some(*pe) != root)
    }
}

/// Returns the name of a PE if it can be that of an entry: a name can look like a number, which takes
/// precedence, like a path, or like a hidden file of Flitcast.
fn name_of(pe: PeId, names: &[String]) -> Option<&str> {
    let name = names.get(pe.index())?;
    let is_one_part = Path::new(name).file_name() == Some(OsStr::new(name));
    let is_entry = is_one_part && pe_of(name.as_ref()).is_none() && !name.starts_with(PREFIX);
    (is_entry && name.len() <= LONGEST_NAME).then_some(name)
}

/// Returns the entry of a PE in an output with these names.
pub fn output_entry(output: &Path, pe: PeId, names: &[String]) -> PathBuf {
    let named = name_of(pe, names).map(|name| output.join(name));
    named.unwrap_or_else(|| destination(output, pe))
}

/// Returns the entry of a PE by its number.
pub fn destination(output: &Path, pe: PeId) -> PathBuf {
    output.join(format!("p{}", pe.0))
}

pub fn two_entries(pe: PeId, one: &Path, other: &Path) -> PayloadError {
    let [one, other] = [one, other].map(shown);
    PayloadError::Unusable(format!(
        "{one} and {other} are both the entry of {pe}; remove one of them"
    ))
}

/// Formats the PEs as in "this tree has p1..p7" or "this tree has p1..p2 (beta, gamma)".
impl fmt::Display for Others<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root.unwrap_or(PeId::ROOT);
        let mut all = self.iter();
        match (all.next(), all.next_back()) {
            (None, _) => write!(f, "this tree has no PE but {root}"),
            (Some(only), None) => write!(f, "this tree has only p{only}"),
            (Some(first), Some(last)) if last - first == self.count() => {
                write!(f, "this tree has p{first}..p{last} but p{}", root.0)
            }
            (Some(first), Some(last)) => write!(f, "this tree has p{first}..p{last}"),
        }?;
        let names: Vec<&str> = self
            .iter()
            .filter_map(|pe| self.names.get(pe))
            .map(String::as_str)
            .collect();
        match names.split_at_checked(LISTED) {
            _ if names.is_empty() => Ok(()),
            Some((listed, rest @ [_, ..])) => {
                write!(f, " ({} and {} more)", listed.join(", "), rest.len())
            }
            _ => write!(f, " ({})", names.join(", ")),
        }
    }
}
