//! What can be wrong with a tree file, and how it is said.

use std::fmt;

use flitcast_proto::PeId;
use flitcast_proto::tree::{MAX_PES, TreeFault};

use crate::files::toml_file::Misread;
use crate::options::link_spec::LinkFault;

/// What is wrong in one place of a tree file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TreeFileFault {
    /// As can be wrong with any file.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// Nothing says what PEs there are.
    #[error("no PEs: give a [[pe]] table for each, or parents = [...]")]
    NoPes,
    /// Both forms in one file.
    #[error("the PEs are given twice: use either [[pe]] or parents = [...]")]
    TwoForms,
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
        TreeFault::AbsentParent { pe, .. } => TreeFault::AbsentParent {
            pe: name(pe),
            parent,
        },
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
