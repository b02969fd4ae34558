//! A gossip on a grid is a list of stages: what all lines along an axis do in lock step. Class c
//! uses axis `(i + c) mod d` where a stage says axis i, so that in every step all classes cross
//! different axes.

use std::rc::Rc;

use super::line::LineParameters;
use super::moves::{Gap, Line, Move, concentrate, root};

/// What all lines along an axis do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A whole gossip on each line (HIGH-DIM-GOS' of the paper, section 4.3).
    Line {
        /// The axis.
        axis: usize,
        /// How.
        parameters: LineParameters,
    },
    /// Along axis 0, everything goes to the points of the diagonals, which are so far apart.
    Concentrate {
        /// D: a diagonal has the PEs whose coordinates have a sum that it divides.
        spacing: usize,
    },
    /// The points of the diagonals tell each other.
    Exchange {
        /// The axis.
        axis: usize,
        /// D.
        spacing: usize,
        /// How many points each hears of, itself included.
        width: usize,
    },
    /// Along axis 0, new diagonals get what those at their sides have.
    Spread {
        /// D, before.
        spacing: usize,
        /// b: D is divided by it, which makes `b - 1` new points in each gap.
        division: usize,
        /// In how many packets.
        packets: usize,
    },
}

impl Stage {
    /// Which axis it is for in class 0.
    pub fn axis(&self) -> usize {
        match self {
            Stage::Line { axis, .. } | Stage::Exchange { axis, .. } => *axis,
            Stage::Concentrate { .. } | Stage::Spread { .. } => 0,
        }
    }

    /// How far apart points of the diagonals are, if there are any.
    pub fn spacing(&self) -> Option<usize> {
        match self {
            Stage::Line { .. } => None,
            Stage::Concentrate { spacing }
            | Stage::Exchange { spacing, .. }
            | Stage::Spread { spacing, .. } => Some(*spacing),
        }
    }

    /// What a line does on which the first point of a diagonal is at position `first`.
    pub fn moves(&self, line: Line, first: usize) -> Rc<[Move]> {
        let points = |spacing: usize| (first..line.positions).step_by(spacing);
        let moves = match *self {
            Stage::Line { parameters, .. } => parameters.moves(line),
            Stage::Concentrate { spacing } => {
                let before = root(spacing) as i64;
                concentrate(points(spacing).map(|point| (point as i64 - before, spacing)))
            }
            Stage::Exchange { spacing, width, .. } => vec![Move::Exchange {
                heads: points(spacing).collect(),
                width,
            }],
            Stage::Spread {
                spacing,
                division,
                packets,
            } => {
                let gap = |head: usize| Gap {
                    points: (0..=division)
                        .map(|q| (head + q * (spacing / division)) as i64)
                        .collect(),
                    closed: true,
                };
                vec![Move::Spread {
                    gaps: points(spacing).map(gap).collect(),
                    packets,
                }]
            }
        };
        moves.into()
    }
}

/// The stages of one algorithm for tori of equal sides (the paper's CIRCGOS, TORGOS and CUBGOS for
/// one, two and three dimensions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagonal {
    /// A: points of a diagonal on each line at first.
    pub points: usize,
    /// The rounds: b_j, by which the spacing is divided, and x_j, the steps that spreading takes.
    pub rounds: Vec<(usize, usize)>,
}

impl Diagonal {
    /// Its stages on a torus of so many dimensions.
    pub fn stages(&self, side: usize, dimensions: usize) -> Vec<Stage> {
        let mut spacing = side / self.points;
        let mut stages = Diagonal::meeting(spacing, self.points, dimensions);
        for &(division, steps) in &self.rounds {
            stages.push(Diagonal::spread(spacing, division, steps));
            spacing /= division;
            stages.extend(Diagonal::wipe(spacing, division, dimensions));
        }
        stages
    }

    /// Phases 1 and 2: all that one diagonal's points can tell each other.
    pub fn meeting(spacing: usize, points: usize, dimensions: usize) -> Vec<Stage> {
        let exchange = |axis| Stage::Exchange {
            axis,
            spacing,
            width: points,
        };
        let first = (spacing > 1).then_some(Stage::Concentrate { spacing });
        first
            .into_iter()
            .chain((0..dimensions).map(exchange))
            .collect()
    }

    /// The first half of a round: new diagonals.
    pub fn spread(spacing: usize, division: usize, steps: usize) -> Stage {
        Stage::Spread {
            spacing,
            division,
            packets: 2 * steps + 2 - division,
        }
    }

    /// The second half: what old and new points lack of each other.
    pub fn wipe(spacing: usize, division: usize, dimensions: usize) -> impl Iterator<Item = Stage> {
        (1..dimensions).map(move |axis| Stage::Exchange {
            axis,
            spacing,
            width: division,
        })
    }
}
