//! What can be wrong with a profile, and how it is said.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;

use super::{MAX_FILE_BYTES, VERSION};

/// Why a file gives no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The system does not give it to us, or it is not text.
    #[error("cannot read the profile {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Not a profile, in all likelihood.
    #[error("the profile {} has more than {MAX_FILE_BYTES} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It can be read, and is wrong.
    #[error("{}", Listed { path, faults })]
    Faults {
        /// The file.
        path: PathBuf,
        /// All that is wrong, by line.
        faults: Vec<LineFault>,
    },
}

/// A fault and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineFault {
    /// Counted from 1; `None` if it is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong in one place of a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Not TOML; a key that is given twice is reported as this, too.
    #[error("{0}")]
    Syntax(String),
    /// Nothing says what the rest means.
    #[error("there is no version: this is no profile of `flitcast calibrate`")]
    NoVersion,
    /// The rest means something else.
    #[error("version {found}: this flitcast reads version {VERSION}; calibrate again")]
    OtherVersion {
        /// As the file writes it.
        found: String,
    },
    /// A key that means nothing.
    #[error("unknown key `{key}`; known here: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something in its place.
        known: String,
    },
    /// A key that has to be there.
    #[error("`{key}` is missing{}", In(.table))]
    Missing {
        /// The key.
        key: &'static str,
        /// Where.
        table: String,
    },
    /// A value of the wrong type, or out of its range.
    #[error("{key} must be {expected}, not {found}")]
    Nonsense {
        /// Whose value.
        key: String,
        /// What would make sense.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// An interval that does not hold its value.
    #[error("{key}: {value} does not lie between {low} and {high}; write [value, low, high]")]
    NotBetween {
        /// Which.
        key: String,
        /// The value.
        value: f64,
        /// One end.
        low: f64,
        /// The other.
        high: f64,
    },
    /// Of another size.
    #[error(
        "it was measured on {tree}, with {measured} PEs, and this tree has {asked}: calibrate on this one"
    )]
    OtherSize {
        /// The tree's name in the profile.
        tree: String,
        /// PEs there.
        measured: usize,
        /// PEs of the tree that is asked for.
        asked: usize,
    },
    /// Of the same size, and not the same.
    #[error(
        "it was measured on {tree}, another tree: there {pe}'s parent is {measured}, here it is {asked}{}; calibrate on this one", Others(*.others)
    )]
    OtherTree {
        /// The tree's name in the profile.
        tree: String,
        /// The first PE that has another parent.
        pe: PeId,
        /// There.
        measured: PeId,
        /// Here.
        asked: PeId,
        /// PEs that have another parent, beside it.
        others: usize,
    },
    /// An edge that is not there.
    #[error("nothing is said of the edge{} to {}", if .0.len() == 1 { "" } else { "s" }, crate::cluster::names(.0))]
    MissingEdges(Vec<PeId>),
    /// An edge that is there already.
    #[error("the edge to {pe} stands in line {first_line} already")]
    EdgeTwice {
        /// Its lower end.
        pe: PeId,
        /// Where it was given first.
        first_line: usize,
    },
    /// An edge to nobody.
    #[error("there is no edge to {pe}: with these parents they lead to P1..P{last}")]
    NoSuchEdge {
        /// Its lower end.
        pe: PeId,
        /// The last PE.
        last: usize,
    },
}

struct In<'a>(&'a str);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            table => write!(f, " in {table}"),
        }
    }
}

struct Others(usize);

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(", and one more differs"),
            others => write!(f, ", and {others} more differ"),
        }
    }
}

/// One fault a line, each as compilers print it: `profile.toml:7: ...`.
struct Listed<'a> {
    path: &'a Path,
    faults: &'a [LineFault],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, LineFault { line, fault }) in self.faults.iter().enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:", self.path.display())?;
            if let Some(line) = line {
                write!(f, "{line}:")?;
            }
            write!(f, " {fault}")?;
        }
        Ok(())
    }
}
