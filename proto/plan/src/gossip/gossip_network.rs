//! The networks of planned gossips: rings, arrays, meshes and tori of any number of dimensions,
//! numbered row by row, and complete networks.

use std::fmt;

use flitcast_proto::PeId;

use super::moves::Line;
use crate::network::{Grid, NetworkSpec};

/// Limit of PEs of a gossip: its plan lists the packets between all pairs of PEs, up to 4 million.
pub const MAX_PES: usize = 2048;

const ALONE: &str = "one PE cannot gossip; use at least 2";

/// A network to gossip on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GossipNetwork {
    /// Lines of PEs along each axis.
    Grid(Grid),
    /// Every PE reaches every other over its one port.
    Complete(usize),
}

/// A reason why a network has no planned gossip, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidGossipNetwork(String);

impl GossipNetwork {
    /// Returns the network of this specification.
    pub fn of(spec: &NetworkSpec) -> Result<GossipNetwork, InvalidGossipNetwork> {
        let grid = |sides: &[u32], closed| GossipNetwork::Grid(Grid::of(sides, closed));
        let fault = match spec {
            // A ring of one or two PEs, and a torus with such a side, have an edge twice.
            NetworkSpec::Ring { nodes } if *nodes < 3 => {
                format!("{nodes} PEs are too few for a ring; use at least 3, or array:{nodes}")
            }
            NetworkSpec::Ring { nodes } => return Ok(grid(&[*nodes], true)),
            NetworkSpec::Torus { sides } => match sides.iter().find(|side| **side < 3) {
                Some(short) => format!(
                    "a side of {short} is too short for a torus, whose sides have at least 3 PEs; \
                     use a mesh"
                ),
                None => return Ok(grid(sides, true)),
            },
            NetworkSpec::Mesh { sides } if sides.iter().all(|side| *side == 1) => ALONE.to_owned(),
            NetworkSpec::Mesh { sides } if sides.contains(&1) => {
                "a side of 1 is too short; use sides of at least 2".to_owned()
            }
            NetworkSpec::Mesh { sides } => return Ok(grid(sides, false)),
            NetworkSpec::Complete { nodes } if *nodes < 2 => ALONE.to_owned(),
            NetworkSpec::Complete { nodes } => {
                return Ok(GossipNetwork::Complete(*nodes as usize));
            }
            _ => "a gossip is planned on ring:N, array:N, mesh:AxB.., torus:AxB.. or complete:N"
                .to_owned(),
        };
        Err(InvalidGossipNetwork(fault))
    }

    /// Returns the mesh or torus, if the network is one.
    pub fn grid(&self) -> Option<&Grid> {
        match self {
            GossipNetwork::Grid(grid) => Some(grid),
            GossipNetwork::Complete(_) => None,
        }
    }

    /// Returns the number of PEs.
    pub fn pes(&self) -> usize {
        match self {
            GossipNetwork::Grid(grid) => grid.pes(),
            GossipNetwork::Complete(pes) => *pes,
        }
    }

    /// Checks that a plan of this number of PEs is possible.
    pub fn check_size(&self) -> Result<(), InvalidGossipNetwork> {
        match self.pes() {
            pes if pes > MAX_PES => Err(InvalidGossipNetwork(format!(
                "{pes} PEs are too many to plan every PE's messages; the limit is {MAX_PES}"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the number of classes of a block: one for each axis.
    pub fn classes(&self) -> usize {
        match self {
            GossipNetwork::Grid(grid) => grid.sides.len(),
            GossipNetwork::Complete(_) => 1,
        }
    }
}

/// Writes `array of 9` or `4x6 torus` for errors.
impl fmt::Display for GossipNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = |closed| if closed { "torus" } else { "mesh" };
        match self {
            GossipNetwork::Complete(pes) => write!(f, "complete network of {pes}"),
            GossipNetwork::Grid(Grid { sides, closed }) => match (&sides[..], closed) {
                ([n], true) => write!(f, "ring of {n}"),
                ([n], false) => write!(f, "array of {n}"),
                (sides, _) => {
                    let sides: Vec<String> = sides.iter().map(usize::to_string).collect();
                    write!(f, "{} {}", sides.join("x"), kind(*closed))
                }
            },
        }
    }
}

impl Grid {
    /// Returns the lines along an axis.
    pub fn line(&self, axis: usize) -> Line {
        Line {
            positions: self.sides[axis],
            closed: self.closed,
        }
    }

    /// Returns the first PE of each line along an axis.
    pub fn line_begins(&self, axis: usize) -> impl Iterator<Item = usize> {
        (0..self.pes()).filter(move |pe| self.coordinate(*pe, axis) == 0)
    }

    pub(super) fn path(&self, from: PeId, axis: usize, hops: i64) -> Vec<PeId> {
        let way = hops.signum();
        let at = |hop: i64| PeId(self.along(from.index(), axis, way * hop) as u32);
        (0..=hops.abs()).map(at).collect()
    }

    /// Returns the number of edges of a PE.
    pub fn degree(&self, pe: usize) -> u64 {
        let of_axis = |(place, side): (usize, &usize)| match self.closed {
            true => 2,
            false => u64::from(place > 0) + u64::from(place + 1 < *side),
        };
        self.coordinates(pe).zip(&self.sides).map(of_axis).sum()
    }

    /// Returns the distance to the farthest PE, in hops.
    pub fn eccentricity(&self, pe: usize) -> u64 {
        let of_axis = |(place, side): (usize, &usize)| match self.closed {
            true => side / 2,
            false => place.max(side - 1 - place),
        };
        let hops = self.coordinates(pe).zip(&self.sides).map(of_axis);
        hops.sum::<usize>() as u64
    }
}
