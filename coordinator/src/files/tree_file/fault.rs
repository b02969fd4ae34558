//! Error messages about a tree.

use std::fmt;

use flitcast_proto::PeId;
use flitcast_proto::tree::TreeFault;

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
        TreeFault::NoPes
        | TreeFault::UnknownRoot { .. }
        | TreeFault::TooManyPes { .. }
        | TreeFault::InFile { .. } => fault,
    }
}
