//! Who has a message of its own.

use std::fmt;

use flitcast_proto::{PeId, Tree};

/// Those that a message goes to or comes from: where the root is its other end, all but the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// Who has none, if anybody has none.
    pub root: Option<PeId>,
    /// How many PEs there are, the root included.
    pub pes: usize,
}

impl Others {
    /// Those of a tree but its root, absent ones included.
    pub fn of(tree: &Tree) -> Others {
        Others {
            root: Some(tree.root()),
            pes: tree.len(),
        }
    }

    /// All of so many.
    pub fn all(pes: usize) -> Others {
        Others { root: None, pes }
    }

    /// How many they are.
    pub fn count(self) -> usize {
        self.iter().count()
    }

    /// They, by index.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        let root = self.root.map(PeId::index);
        (0..self.pes).filter(move |pe| Some(*pe) != root)
    }
}

/// As in "this tree has p1..p7".
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
