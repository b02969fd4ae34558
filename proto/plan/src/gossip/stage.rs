//! The stages of a gossip on a grid: in each, all lines along an axis act in lock step. Class c uses
//! axis `(i + c) mod d` where a stage names axis i, so that in every step all classes use different
//! axes.

use std::rc::Rc;

use super::moves::{Gap, Line, LineParameters, Move, concentrate, root};

/// The common action of all lines along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A whole gossip on each line (HIGH-DIM-GOS' of the paper, section 4.3).
    Line {
        axis: usize,
        parameters: LineParameters,
    },
    /// Concentration of all data, along axis 0, in the points of diagonals with this spacing.
    Concentrate {
        /// D: a diagonal consists of the PEs whose sum of coordinates is a multiple of D.
        spacing: usize,
    },
    /// Exchange between the points of the diagonals.
    Exchange {
        axis: usize,
        /// D.
        spacing: usize,
        /// The number of points, itself included, whose data each point has afterwards.
        width: usize,
    },
    /// Spreading to new diagonals, along axis 0, of the data of those at their sides.
    Spread {
        /// D before the stage.
        spacing: usize,
        /// b: D is divided by it, which makes `b - 1` new points in each gap.
        division: usize,
        packets: usize,
    },
}

impl Stage {
    /// Returns the axis for class 0.
    pub fn axis(&self) -> usize {
        match self {
            Stage::Line { axis, .. } | Stage::Exchange { axis, .. } => *axis,
            Stage::Concentrate { .. } | Stage::Spread { .. } => 0,
        }
    }

    /// Returns the distance of the diagonals' points, if there are any.
    pub fn spacing(&self) -> Option<usize> {
        match self {
            Stage::Line { .. } => None,
            Stage::Concentrate { spacing }
            | Stage::Exchange { spacing, .. }
            | Stage::Spread { spacing, .. } => Some(*spacing),
        }
    }

    /// Returns the moves of a line on which the first point of a diagonal is at position `first`.
    pub fn moves(&self, line: Line, first: usize) -> Rc<[Move]> {
        let points = |spacing: usize| (first..line.positions).step_by(spacing);
        let moves = match *self {
            Stage::Line { parameters, .. } => parameters.moves(line),
            Stage::Concentrate { spacing } => {
                // The positions around a point on a ring; on an array, the segment that contains it,
                // whose root then sends everything to the point (section 7, 1D-shift).
                let [own, shift] = match line.closed {
                    true => [root(spacing) as i64, 0],
                    false => [first as i64, first as i64 - root(spacing) as i64],
                };
                let points = points(spacing).map(|point| point as i64);
                let mut moves = concentrate(points.clone().map(|point| (point - own, spacing)));
                if shift != 0 {
                    let pairs = points.map(|point| (point - shift, point));
                    moves.push(Move::Concentrate(pairs.collect()));
                }
                moves
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
                let next = (spacing / division) as i64;
                let gap = |head: i64, hops: i64| {
                    let points = (0..=division as i64).map(|q| head + q * hops);
                    let on_line =
                        |point: &i64| line.closed || (0..line.positions as i64).contains(point);
                    let points: Vec<i64> = points.filter(on_line).collect();
                    Gap {
                        closed: points.len() > division,
                        points,
                    }
                };
                let inner = points(spacing).map(|head| gap(head as i64, next));
                // Positions before the first point of an array have no head at their other side.
                let before = (!line.closed).then(|| gap(first as i64, -next));
                let mut gaps: Vec<Gap> = inner.chain(before).collect();
                gaps.retain(|gap| !gap.new_points().is_empty());
                vec![Move::Spread {
                    gaps: gaps.into(),
                    packets,
                }]
            }
        };
        moves.into()
    }
}

/// The stages of one algorithm for tori and meshes of equal sides (the paper's CIRCGOS, TORGOS and
/// CUBGOS for one, two and three dimensions). On a mesh, the points of a diagonal at the ends of a
/// line have neighbours on one side only, so exchanges and spreading take more steps there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagonal {
    /// A: number of a diagonal's points on each line at first.
    pub points: usize,
    /// The rounds: b_j, the divisor of the spacing, and x_j, the number of steps of spreading.
    pub rounds: Vec<(usize, usize)>,
}

impl Diagonal {
    /// Returns the stages on a torus or a mesh with this number of dimensions.
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

    /// Returns phases 1 and 2, after which all points of a diagonal have the same data.
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

    /// Returns the first half of a round: new diagonals.
    pub fn spread(spacing: usize, division: usize, steps: usize) -> Stage {
        Stage::Spread {
            spacing,
            division,
            packets: 2 * steps + 2 - division,
        }
    }

    /// Returns the second half of a round, which gives old and new points each other's data.
    pub fn wipe(spacing: usize, division: usize, dimensions: usize) -> impl Iterator<Item = Stage> {
        (1..dimensions).map(move |axis| Stage::Exchange {
            axis,
            spacing,
            width: division,
        })
    }
}
