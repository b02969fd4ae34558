//! What can be wrong with a tree file, and how it is said.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use flitcast_proto::tree::{MAX_PES, TreeFault};

use super::MAX_FILE_BYTES;
use crate::link_spec::LinkFault;

/// Why a tree file gives no tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeFileError {
    /// The system does not give it to us, or it is not text.
    #[error("cannot read the tree file {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Not a tree file, in all likelihood.
    #[error("the tree file {} has more than {MAX_FILE_BYTES} bytes", path.display())]
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

/// What is wrong in one place of a tree file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Not TOML; a key that is given twice is reported as this, too.
    #[error("{0}")]
    Syntax(String),
    /// Nothing says what PEs there are.
    #[error("no PEs: give a [[pe]] table for each, or parents = [...]")]
    NoPes,
    /// Both forms in one file.
    #[error("the PEs are given twice: use either [[pe]] or parents = [...]")]
    TwoForms,
    /// A key that means nothing.
    #[error("unknown key `{key}`; known here: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something in its place.
        known: &'static str,
    },
    /// A value of the wrong type.
    #[error("{key} must be {expected}, not {found}")]
    WrongType {
        /// Whose value.
        key: &'static str,
        /// What is expected.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// An index that cannot be one.
    #[error("{what} must be a whole number from 0 to {}, not {found}", MAX_PES - 1)]
    NoIndex {
        /// Which index.
        what: String,
        /// What stands there.
        found: String,
    },
    /// `root` is another PE than P0.
    #[error("root must be 0: every tree's root is P0 (number the PEs so that it is)")]
    RootNotP0,
    /// More PEs than a tree may have.
    #[error("there are {count} PEs, more than the {MAX_PES} that are allowed")]
    TooManyPes {
        /// How many there are.
        count: usize,
    },
    /// A `[[pe]]` without id.
    #[error("this [[pe]] has no id{}", Unused(.unused))]
    NoId {
        /// Ids that no PE has.
        unused: Vec<PeId>,
    },
    /// An id that was given before.
    #[error("{pe}: there is a [[pe]] with this id in line {first_line} already{}", Unused(.unused))]
    DuplicateId {
        /// The PE.
        pe: PeId,
        /// Where it was given first.
        first_line: usize,
        /// Ids that no PE has.
        unused: Vec<PeId>,
    },
    /// An id that leaves a gap before it.
    #[error("{pe}: with {count} PEs, the ids must be 0 to {}{}", count - 1, Unused(.unused))]
    IdTooHigh {
        /// The PE.
        pe: PeId,
        /// How many `[[pe]]` there are.
        count: usize,
        /// Ids that no PE has.
        unused: Vec<PeId>,
    },
    /// The parents make no tree.
    #[error("{0}")]
    Tree(TreeFault),
    /// An `[[edges]]` that does not say which edge.
    #[error("this [[edges]] has no child: an edge is named by the PE at its lower end")]
    NoChild,
    /// An `[[edges]]` that says nothing.
    #[error("this [[edges]] says nothing of its link: give rate, latency, down or up")]
    EmptyEdge,
    /// An edge that is not in the tree.
    #[error("no edge leads to {child}: an edge is named by the PE at its lower end")]
    NoSuchEdge {
        /// What was given as its lower end.
        child: PeId,
    },
    /// An edge that was named before.
    #[error("the edge to {child} is given in line {first_line} already")]
    DuplicateEdge {
        /// Its lower end.
        child: PeId,
        /// Where it was named first.
        first_line: usize,
    },
    /// A link that cannot be had.
    #[error("{0}")]
    Link(LinkFault),
}

/// How many unused ids a message names.
pub(super) const UNUSED_NAMED: usize = 4;

/// `; nothing is said of P4, P5`, or nothing.
struct Unused<'a>(&'a [PeId]);

impl fmt::Display for Unused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pe) in self.0.iter().enumerate() {
            write!(
                f,
                "{}{pe}",
                if i == 0 {
                    "; no [[pe]] is given for "
                } else {
                    ", "
                }
            )?;
        }
        match self.0.len() {
            UNUSED_NAMED => f.write_str(" ..."),
            _ => Ok(()),
        }
    }
}

/// One fault a line, each as compilers print it: `tree.toml:7: P3: ...`.
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

/// `fault` with the PEs called what the file calls them: P_i is `ids[i]`, and
/// the parent of the PE at fault is `parent`.
pub(super) fn as_in_file(fault: TreeFault, ids: &[u32], parent: PeId) -> TreeFault {
    let name = |pe: PeId| PeId(ids[pe.index()]);
    let names = |pes: Vec<PeId>| pes.into_iter().map(name).collect();
    match fault {
        TreeFault::NoRoot { .. } => TreeFault::NoRoot { parent },
        TreeFault::RootHasParent { .. } => TreeFault::RootHasParent { parent },
        TreeFault::SeveralRoots { pe } => TreeFault::SeveralRoots { pe: name(pe) },
        TreeFault::SelfParent { pe } => TreeFault::SelfParent { pe: name(pe) },
        TreeFault::UnknownParent { pe, last, .. } => TreeFault::UnknownParent {
            pe: name(pe),
            parent,
            last: name(last),
        },
        TreeFault::Cycle { pes, below } => TreeFault::Cycle {
            pes: names(pes),
            below: names(below),
        },
        TreeFault::NoPes | TreeFault::TooManyPes { .. } | TreeFault::InFile { .. } => fault,
    }
}
