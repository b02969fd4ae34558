//! Who has a message of its own.

use std::fmt;

use flitcast_proto::{PeId, Tree};

/// Those that a message goes to or comes from where the root is its other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// Who has none.
    pub root: PeId,
    /// How many PEs there are, the root included.
    pub pes: usize,
}

impl Others {
    /// Those of a tree, absent ones included.
    pub fn of(tree: &Tree) -> Others {
        Others {
            root: tree.root(),
            pes: tree.len(),
        }
    }

    /// How many they are.
    pub fn count(self) -> usize {
        self.pes.saturating_sub(1)
    }

    /// They, by index.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.pes).filter(move |pe| *pe != self.root.index())
    }
}

/// As in "this tree has p1..p7".
impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.iter();
        match (all.next(), all.next_back()) {
            (None, _) => write!(f, "this tree has no PE but {}", self.root),
            (Some(only), None) => write!(f, "this tree has only p{only}"),
            (Some(first), Some(last)) if last - first == self.count() => {
                write!(f, "this tree has p{first}..p{last} but p{}", self.root.0)
            }
            (Some(first), Some(last)) => write!(f, "this tree has p{first}..p{last}"),
        }
    }
}
