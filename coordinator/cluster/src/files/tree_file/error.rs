//! Error messages about a tree.

use std::fmt;

use flitcast_proto::PeId;
use flitcast_proto::tree::TreeError;

/// Number of unused ids that a message names.
pub(super) const UNUSED_NAMED: usize = 4;

/// Formats PEs that are not mentioned as `; nothing is said of P4, P5`, or as an empty text.
pub(super) struct Unused<'a>(pub &'a [PeId]);

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

/// Returns `fault` with the names that the file uses: P_i is `ids[i]`, and the parent of the PE at
/// fault is `parent`.
pub(super) fn as_in_file(fault: TreeError, ids: &[u32], parent: PeId) -> TreeError {
    let name = |pe: PeId| PeId(ids[pe.index()]);
    let names = |pes: Vec<PeId>| pes.into_iter().map(name).collect();
    match fault {
        TreeError::NoRoot(_) => TreeError::NoRoot(parent),
        TreeError::RootHasParent(_) => TreeError::RootHasParent(parent),
        TreeError::SeveralRoots(pe) => TreeError::SeveralRoots(name(pe)),
        TreeError::SelfParent(pe) => TreeError::SelfParent(name(pe)),
        TreeError::AbsentParent { pe, .. } => TreeError::AbsentParent {
            pe: name(pe),
            parent,
        },
        TreeError::UnknownParent { pe, last, .. } => TreeError::UnknownParent {
            pe: name(pe),
            parent,
            last: name(last),
        },
        TreeError::Cycle { pes, below } => TreeError::Cycle {
            pes: names(pes),
            below: names(below),
        },
        TreeError::NoPes
        | TreeError::UnknownRoot { .. }
        | TreeError::TooManyPes { .. }
        | TreeError::InFile { .. } => fault,
    }
}
