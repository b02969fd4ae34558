//! The faults of a list of parents, and the check that finds them all.

use crate::PeId;

use super::{MAX_PES, pes};

/// A fault that prevents a list of parents from being a tree rooted at P0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("the tree has no PE: it needs at least P0")]
    NoPes,
    #[error("the tree has {0} PEs, more than the {MAX_PES} that are allowed")]
    TooManyPes(usize),
    /// The root is not one of this number of PEs.
    #[error("the root {0} is not one of the {1} PEs")]
    UnknownRoot(PeId, usize),
    /// Every PE has a parent, P0 this one, so there is no root.
    #[error("no root: every PE has a parent; P0 must have none, and has {0}")]
    NoRoot(PeId),
    /// P0 has this parent, and some other PE has none.
    #[error("P0 has a parent, {0}: P0 is the root and must have none")]
    RootHasParent(PeId),
    /// A PE other than P0 has no parent. Reported once for each.
    #[error("several roots: {0} has no parent, and only P0 may have none")]
    SeveralRoots(PeId),
    /// The parent's index is not in the tree.
    #[error("{pe}: parent {parent} does not exist (the last PE is {last})")]
    UnknownParent {
        /// PE with the unknown parent.
        pe: PeId,
        parent: PeId,
        /// PE with the largest index.
        last: PeId,
    },
    #[error("{pe}: parent {parent} is absent")]
    AbsentParent {
        /// PE with the absent parent.
        pe: PeId,
        parent: PeId,
    },
    #[error("{0} is its own parent")]
    SelfParent(PeId),
    /// Several PEs are each other's ancestors.
    #[error("cycle: {}{}", chain(.pes), hang_below(.below))]
    Cycle {
        /// PEs of the cycle, each followed by its parent, the lowest index first.
        pes: Vec<PeId>,
        /// PEs that are not on the cycle and lead to it, in index order. They are not reported
        /// separately.
        below: Vec<PeId>,
    },
    /// A [`TreeSpec::File`](super::TreeSpec::File), which this crate cannot read.
    #[error("the tree is in a file ({0}), which must be read first")]
    InFile(String),
}

impl TreeError {
    /// Returns the PE that the fault is about, if there is one; for a cycle, the lowest.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            TreeError::NoPes | TreeError::TooManyPes(_) | TreeError::InFile(_) => None,
            TreeError::NoRoot(_) | TreeError::RootHasParent(_) => Some(PeId::ROOT),
            TreeError::UnknownRoot(pe, _)
            | TreeError::SeveralRoots(pe)
            | TreeError::UnknownParent { pe, .. }
            | TreeError::AbsentParent { pe, .. }
            | TreeError::SelfParent(pe) => Some(*pe),
            TreeError::Cycle { pes, .. } => pes.first().copied(),
        }
    }
}

/// All faults of a list of parents, at least one; displayed one per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(TreeError::to_string).collect::<Vec<_>>().join("\n"))]
pub struct TreeErrors(pub Vec<TreeError>);

impl From<TreeError> for TreeErrors {
    fn from(fault: TreeError) -> Self {
        TreeErrors(vec![fault])
    }
}

/// Maximum number of PEs that a message names; further ones are only counted, so that a line stays
/// readable even for a very long cycle.
const NAMED: usize = 8;

/// Returns the text of a cycle: `P1 -> P2 -> P1`.
fn chain(pes: &[PeId]) -> String {
    let named = pes.iter().take(NAMED).map(|pe| format!("{pe} -> "));
    let named: String = named.collect();
    let more = match pes.len() {
        n if n > NAMED => format!("({} more) -> ", n - NAMED),
        _ => String::new(),
    };
    let first = pes.first().copied().unwrap_or(PeId::ROOT);
    format!("{named}{more}{first} (each names the next as its parent)")
}

/// Returns the text about the PEs below a cycle: `; P5, P6 hang below it`, or nothing.
fn hang_below(pes: &[PeId]) -> String {
    let named: Vec<String> = pes.iter().take(NAMED).map(PeId::to_string).collect();
    let named = named.join(", ");
    match pes.len() {
        0 => String::new(),
        1 => format!("; {named} hangs below it"),
        n if n > NAMED => format!("; {named} and {} more hang below it", n - NAMED),
        _ => format!("; {named} hang below it"),
    }
}

/// Finds all faults: first those of the whole list, then those of single PEs in index order, then
/// the cycles.
///
/// One mistake gives one fault. P0 counts as the root even if it has a parent, so that a cycle
/// through it is not reported as well; PEs below a faulty PE are not reported.
///
/// With `gaps`, a PE without a parent is absent and not a second root.
pub(super) fn check(root: PeId, parents: &[Option<PeId>], gaps: bool) -> Result<(), TreeErrors> {
    let len = parents.len();
    if len == 0 {
        return Err(TreeError::NoPes.into());
    }
    if len > MAX_PES {
        return Err(TreeError::TooManyPes(len).into());
    }

    let mut faults = Vec::new();
    if root.index() >= len {
        return Err(TreeError::UnknownRoot(root, len).into());
    }
    if let Some(parent) = parents[root.index()] {
        faults.push(match parents.iter().all(Option::is_some) {
            true => TreeError::NoRoot(parent),
            false => TreeError::RootHasParent(parent),
        });
    }
    // The parent of each PE; `None` where the path upwards ends, rightly or not.
    let mut up: Vec<Option<PeId>> = vec![None; len];
    let is_absent = |pe: PeId| gaps && pe != root && parents[pe.index()].is_none();
    for (pe, &parent) in pes(len).zip(parents).filter(|(pe, _)| *pe != root) {
        match parent {
            None if gaps => {}
            None => faults.push(TreeError::SeveralRoots(pe)),
            Some(parent) if parent == pe => faults.push(TreeError::SelfParent(pe)),
            Some(parent) if parent.index() >= len => {
                let last = PeId((len - 1) as u32);
                faults.push(TreeError::UnknownParent { pe, parent, last });
            }
            Some(parent) if is_absent(parent) => {
                faults.push(TreeError::AbsentParent { pe, parent });
            }
            Some(parent) => up[pe.index()] = Some(parent),
        }
    }
    faults.extend(cycles(&up));
    match faults.is_empty() {
        true => Ok(()),
        false => Err(TreeErrors(faults)),
    }
}

/// Returns the cycles and the PEs below each. Every PE is visited once.
fn cycles(up: &[Option<PeId>]) -> Vec<TreeError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnThisWalk,
        /// Leads to an end, or to the cycle with this number.
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
        TreeError::Cycle { pes, below }
    });
    faults.collect()
}
