//! What can be wrong with a cluster file, and how it is said.

use flitcast_proto::tree::TreeFault;

use crate::toml_file::Misread;

/// What is wrong in one place of a cluster file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// As can be wrong with any file.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// Nothing says what PEs there are.
    #[error("no PEs: give a [[pe]] table for each")]
    NoPes,
    /// A `[[pe]]` without name.
    #[error("this [[pe]] has no name")]
    NoName,
    /// A name that was given before.
    #[error("there is a [[pe]] called `{name}` in line {first_line} already")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where it was given first.
        first_line: usize,
    },
    /// A `[[pe]]` that nobody could reach.
    #[error("{name} has no address: say where its children reach it")]
    NoAddress {
        /// Its name.
        name: String,
    },
    /// The address of an edge that is not there.
    #[error("{name} has a parent_address and no parent")]
    EdgeWithoutParent {
        /// Its name.
        name: String,
    },
    /// A parent that is none of the PEs.
    #[error("{name}: no [[pe]] is called `{parent}`")]
    UnknownParent {
        /// The orphan.
        name: String,
        /// The parent given for it.
        parent: String,
    },
    /// The parents make no tree.
    #[error("{name}: {fault} (the PEs are P0, P1, .. in the order of the file)")]
    Tree {
        /// The PE to look at.
        name: String,
        /// What is wrong there.
        fault: TreeFault,
    },
}
