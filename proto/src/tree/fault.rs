//! What can be wrong with a list of parents, and the check that finds it all.

use std::fmt;

use crate::PeId;

use super::{MAX_PES, pes};

/// One thing that keeps a list of parents from being a tree rooted at P0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeFault {
    /// Not even P0.
    #[error("the tree has no PE: it needs at least P0")]
    NoPes,
    /// More than [`MAX_PES`].
    #[error("the tree has {len} PEs, more than the {MAX_PES} that are allowed")]
    TooManyPes {
        /// How many there are.
        len: usize,
    },
    /// The root is none of its PEs.
    #[error("the root {root} is none of the {len} PEs")]
    UnknownRoot {
        /// Who it is said to be.
        root: PeId,
        /// How many there are.
        len: usize,
    },
    /// Every PE has a parent, so none is the root.
    #[error("no root: every PE has a parent; P0 must have none, and has {parent}")]
    NoRoot {
        /// The parent given for P0.
        parent: PeId,
    },
    /// P0 has a parent, and some other PE has none.
    #[error("P0 has a parent, {parent}: P0 is the root and must have none")]
    RootHasParent {
        /// The parent given for P0.
        parent: PeId,
    },
    /// A PE other than P0 has no parent. Reported once for each.
    #[error("several roots: {pe} has no parent, and only P0 may have none")]
    SeveralRoots {
        /// The PE without a parent.
        pe: PeId,
    },
    /// The parent's index is not one of the tree's.
    #[error("{pe}: parent {parent} does not exist (the last PE is {last})")]
    UnknownParent {
        /// The orphan.
        pe: PeId,
        /// The parent given for it.
        parent: PeId,
        /// The PE with the greatest index.
        last: PeId,
    },
    /// The parent is one of those that the tree lacks.
    #[error("{pe}: parent {parent} is absent")]
    AbsentParent {
        /// The orphan.
        pe: PeId,
        /// The parent given for it.
        parent: PeId,
    },
    /// A cycle of one.
    #[error("{pe} is its own parent")]
    SelfParent {
        /// The PE.
        pe: PeId,
    },
    /// Two or more PEs that are each other's ancestors.
    #[error("cycle: {}{}", Chain(.pes), HangsBelow(.below))]
    Cycle {
        /// The PEs on the cycle, each followed by its parent, the lowest index
        /// first.
        pes: Vec<PeId>,
        /// The PEs that are not on the cycle and lead to it, in index order.
        /// They have no report of their own.
        below: Vec<PeId>,
    },
    /// A [`TreeSpec::File`](super::TreeSpec::File), which is not for this crate
    /// to read.
    #[error("the tree is in a file ({path}), which must be read first")]
    InFile {
        /// The file.
        path: String,
    },
}

impl TreeFault {
    /// The PE to look at, if the fault is about one; of a cycle, the lowest.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            TreeFault::NoPes | TreeFault::TooManyPes { .. } | TreeFault::InFile { .. } => None,
            TreeFault::NoRoot { .. } | TreeFault::RootHasParent { .. } => Some(PeId::ROOT),
            TreeFault::UnknownRoot { root, .. } => Some(*root),
            TreeFault::SeveralRoots { pe }
            | TreeFault::UnknownParent { pe, .. }
            | TreeFault::AbsentParent { pe, .. }
            | TreeFault::SelfParent { pe } => Some(*pe),
            TreeFault::Cycle { pes, .. } => pes.first().copied(),
        }
    }
}

/// All that is wrong with a list of parents, at least one fault; printed one to
/// a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFaults(pub Vec<TreeFault>);

impl fmt::Display for TreeFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TreeFaults {}

impl From<TreeFault> for TreeFaults {
    fn from(fault: TreeFault) -> Self {
        TreeFaults(vec![fault])
    }
}

/// How many PEs a message names before it only counts: a line stays readable
/// when half of a million PEs hang below a cycle.
const NAMED: usize = 8;

/// `P1 -> P2 -> P1`.
struct Chain<'a>(&'a [PeId]);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pe in self.0.iter().take(NAMED) {
            write!(f, "{pe} -> ")?;
        }
        if self.0.len() > NAMED {
            write!(f, "({} more) -> ", self.0.len() - NAMED)?;
        }
        match self.0.first() {
            Some(first) => write!(f, "{first} (each names the next as its parent)"),
            None => Ok(()),
        }
    }
}

/// `; P5, P6 hang below it`, or nothing.
struct HangsBelow<'a>(&'a [PeId]);

impl fmt::Display for HangsBelow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pe) in self.0.iter().take(NAMED).enumerate() {
            write!(f, "{}{pe}", if i == 0 { "; " } else { ", " })?;
        }
        match self.0.len() {
            0 => Ok(()),
            1 => f.write_str(" hangs below it"),
            n if n > NAMED => write!(f, " and {} more hang below it", n - NAMED),
            _ => f.write_str(" hang below it"),
        }
    }
}

/// Finds all faults: those of the whole first, then those of single PEs in index
/// order, then the cycles.
///
/// One mistake gives one fault. P0 counts as the root even if it has a parent,
/// so that a cycle through it is not reported on top; and whoever hangs below a
/// faulty PE is not at fault.
///
/// With `gaps`, a PE without a parent is no second root, but absent.
pub(super) fn check(root: PeId, parents: &[Option<PeId>], gaps: bool) -> Result<(), TreeFaults> {
    let len = parents.len();
    if len == 0 {
        return Err(TreeFault::NoPes.into());
    }
    if len > MAX_PES {
        return Err(TreeFault::TooManyPes { len }.into());
    }

    let mut faults = Vec::new();
    if root.index() >= len {
        return Err(TreeFault::UnknownRoot { root, len }.into());
    }
    if let Some(parent) = parents[root.index()] {
        faults.push(match parents.iter().all(Option::is_some) {
            true => TreeFault::NoRoot { parent },
            false => TreeFault::RootHasParent { parent },
        });
    }
    // Where each PE's way up goes on; `None` where it ends, rightly or not.
    let mut up: Vec<Option<PeId>> = vec![None; len];
    let is_absent = |pe: PeId| gaps && pe != root && parents[pe.index()].is_none();
    for (pe, &parent) in pes(len).zip(parents).filter(|(pe, _)| *pe != root) {
        match parent {
            None if gaps => {}
            None => faults.push(TreeFault::SeveralRoots { pe }),
            Some(parent) if parent == pe => faults.push(TreeFault::SelfParent { pe }),
            Some(parent) if parent.index() >= len => {
                let last = PeId((len - 1) as u32);
                faults.push(TreeFault::UnknownParent { pe, parent, last });
            }
            Some(parent) if is_absent(parent) => {
                faults.push(TreeFault::AbsentParent { pe, parent });
            }
            Some(parent) => up[pe.index()] = Some(parent),
        }
    }
    faults.extend(cycles(&up));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(TreeFaults(faults))
    }
}

/// The cycles among the ways up, and who hangs below each. Every PE is walked
/// over once.
fn cycles(up: &[Option<PeId>]) -> Vec<TreeFault> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnThisWalk,
        /// Leads to an end, or to the cycle of that number.
        Before(Option<usize>),
    }
    let mut seen = vec![Seen::Never; up.len()];
    let mut found: Vec<(Vec<PeId>, Vec<PeId>)> = Vec::new();
    let mut walk: Vec<PeId> = Vec::new();
    for start in pes(up.len()) {
        walk.clear();
        let mut next = Some(start);
        let leads_to = loop {
            let Some(pe) = next else { break None };
            match seen[pe.index()] {
                Seen::Before(cycle) => break cycle,
                Seen::OnThisWalk => {
                    let from = walk.iter().position(|&p| p == pe).unwrap_or(0);
                    let mut on_it = walk.split_off(from);
                    let lowest = (0..on_it.len()).min_by_key(|&i| on_it[i]).unwrap_or(0);
                    on_it.rotate_left(lowest);
                    for pe in &on_it {
                        seen[pe.index()] = Seen::Before(Some(found.len()));
                    }
                    found.push((on_it, Vec::new()));
                    break Some(found.len() - 1);
                }
                Seen::Never => {
                    seen[pe.index()] = Seen::OnThisWalk;
                    walk.push(pe);
                    next = up[pe.index()];
                }
            }
        };
        for pe in &walk {
            seen[pe.index()] = Seen::Before(leads_to);
            if let Some(cycle) = leads_to {
                found[cycle].1.push(*pe);
            }
        }
    }
    let faults = found.into_iter().map(|(pes, mut below)| {
        below.sort_unstable();
        TreeFault::Cycle { pes, below }
    });
    faults.collect()
}
