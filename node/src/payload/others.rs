//! The set of PEs that have a separate message.

use std::fmt;

use flitcast_proto::{PeId, Tree};

/// The PEs that have a message: all of them, or all but the root at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// The PE without a message, if there is one.
    pub root: Option<PeId>,
    /// Number of PEs, the root included.
    pub pes: usize,
}

impl Others {
    /// Returns all PEs of a tree but its root, absent ones included.
    pub fn of(tree: &Tree) -> Others {
        Others {
            root: Some(tree.root()),
            pes: tree.len(),
        }
    }

    /// Returns all of `pes` PEs.
    pub fn all(pes: usize) -> Others {
        Others { root: None, pes }
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

/// Formats the PEs as in "this tree has p1..p7".
impl fmt::Display for Others {
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
        }
    }
}
