//! What can be wrong with a profile, and how it is said.

use std::fmt;

use flitcast_proto::PeId;

use crate::files::toml_file::Misread;

/// What is wrong in one place of a profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProfileFault {
    /// As can be wrong with any file.
    #[error(transparent)]
    Misread(#[from] Misread),
    /// An interval that does not hold its value.
    #[error("{key}: {value} does not lie between {low} and {high}; write [value, low, high]")]
    NotBetween {
        /// Which.
        key: String,
        /// The value.
        value: f64,
        /// One end.
        low: f64,
        /// The other.
        high: f64,
    },
    /// Of another size.
    #[error(
        "it was measured on {tree}, with {measured} PEs, and this tree has {asked}: calibrate on this one"
    )]
    OtherSize {
        /// The tree's name in the profile.
        tree: String,
        /// PEs there.
        measured: usize,
        /// PEs of the tree that is asked for.
        asked: usize,
    },
    /// Of the same size, and not the same.
    #[error(
        "it was measured on {tree}, another tree: there {pe}'s parent is {measured}, here it is {asked}{}; calibrate on this one", Others(*.others)
    )]
    OtherTree {
        /// The tree's name in the profile.
        tree: String,
        /// The first PE that has another parent.
        pe: PeId,
        /// There.
        measured: PeId,
        /// Here.
        asked: PeId,
        /// PEs that have another parent, beside it.
        others: usize,
    },
    /// An edge that is not there.
    #[error("nothing is said of the edge{} to {}", if .0.len() == 1 { "" } else { "s" }, crate::text::words::names(.0))]
    MissingEdges(Vec<PeId>),
    /// An edge that is there already.
    #[error("the edge to {pe} stands in line {first_line} already")]
    EdgeTwice {
        /// Its lower end.
        pe: PeId,
        /// Where it was given first.
        first_line: usize,
    },
    /// An edge to nobody.
    #[error("there is no edge to {pe}: with these parents they lead to P1..P{last}")]
    NoSuchEdge {
        /// Its lower end.
        pe: PeId,
        /// The last PE.
        last: usize,
    },
}

struct Others(usize);

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(", and one more differs"),
            others => write!(f, ", and {others} more differ"),
        }
    }
}
