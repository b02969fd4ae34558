//! Walks through the stages of a gossip on a grid, step by step: the state is the data of each PE, and
//! the packets follow from it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use flitcast_proto::PeId;

use super::flits::{Blocks, Flits};
use super::moves::{Line, Move};
use super::stage::Stage;
use super::steps::{Packet, Step};
use crate::network::Grid;

/// The steps of a gossip, one after the other.
#[derive(Clone)]
pub struct Walk<'a> {
    grid: &'a Grid,
    stages: VecDeque<Stage>,
    /// The flits of each PE, by class.
    held: Vec<Vec<Rc<Flits>>>,
    /// The lines of the current stage.
    lines: Vec<Running>,
}

/// A line in the midst of its moves.
#[derive(Clone)]
struct Running {
    class: usize,
    axis: usize,
    line: Line,
    /// The PE at position 0.
    first: usize,
    moves: Rc<[Move]>,
    /// The index of the current move, and the number of its completed steps.
    at: (usize, usize),
    /// The flits of each position at the begin of that move.
    start: Vec<Rc<Flits>>,
}

impl<'a> Walk<'a> {
    /// Creates a walk in which every PE has its own block.
    pub fn new(grid: &'a Grid, blocks: &Blocks, stages: Vec<Stage>) -> Walk<'a> {
        let own = |class| (0..grid.pes()).map(move |pe| Rc::new(blocks.of(class, pe)));
        Walk {
            grid,
            stages: stages.into(),
            held: (0..blocks.classes())
                .map(|class| own(class).collect())
                .collect(),
            lines: Vec::new(),
        }
    }

    /// Appends a stage.
    pub fn push(&mut self, stage: Stage) {
        self.stages.push_back(stage);
    }

    pub fn held(&self, class: usize, pe: usize) -> &Flits {
        &self.held[class][pe]
    }

    /// Returns the lines of a stage: each with its class, the PE at its position 0, and its moves.
    pub fn lines_of<'s>(
        grid: &'s Grid,
        stage: &'s Stage,
    ) -> impl Iterator<Item = (usize, usize, usize, Rc<[Move]>)> {
        let dimensions = grid.sides.len();
        let mut known: BTreeMap<(Line, usize), Rc<[Move]>> = BTreeMap::new();
        let lines = (0..dimensions).flat_map(move |class| {
            let axis = (stage.axis() + class) % dimensions;
            grid.line_begins(axis).map(move |pe| (class, axis, pe))
        });
        lines.map(move |(class, axis, pe)| {
            let first = match stage.spacing() {
                Some(spacing) => {
                    let others: usize = grid.coordinates(pe).sum();
                    (spacing - others % spacing) % spacing
                }
                None => 0,
            };
            let line = grid.line(axis);
            let moves = known.entry((line, first));
            let moves = moves.or_insert_with(|| stage.moves(line, first));
            (class, axis, pe, moves.clone())
        })
    }

    fn begin(&mut self, stage: &Stage) {
        let lines = Walk::lines_of(self.grid, stage);
        let running = lines.map(|(class, axis, first, moves)| Running {
            class,
            axis,
            line: self.grid.line(axis),
            first,
            moves,
            at: (0, 0),
            start: Vec::new(),
        });
        self.lines = running.collect();
    }
}

impl Running {
    /// Returns whether there is a step left; at the begin of a move, saves the flits of all positions.
    fn is_ready(&mut self, grid: &Grid, held: &[Vec<Rc<Flits>>]) -> bool {
        while let Some(next) = self.moves.get(self.at.0) {
            if self.at.1 < next.steps(self.line) {
                if self.at.1 == 0 {
                    let at = |position| grid.along(self.first, self.axis, position as i64);
                    let positions = 0..self.line.positions;
                    let held = positions.map(|position| held[self.class][at(position)].clone());
                    self.start = held.collect();
                }
                return true;
            }
            self.at = (self.at.0 + 1, 0);
        }
        false
    }

    /// Returns the packets of the next step, without flits that their receivers already have or get
    /// from the packet before. Received flits are added at once, since nothing that is sent in the step
    /// depends on them.
    fn step(&mut self, grid: &Grid, held: &mut [Vec<Rc<Flits>>], packets: &mut Vec<Packet>) {
        self.at.1 += 1;
        for send in self.moves[self.at.0].sends(self.line, self.at.1) {
            let from = grid.along(self.first, self.axis, send.from as i64);
            let to = grid.along(from, self.axis, send.hops);
            let mine = &mut held[self.class][to];
            let whole = &self.start[send.of];
            let flits = match send.parts {
                1 => whole.minus(mine),
                parts => whole.cut(send.part, parts).minus(mine),
            };
            if flits.is_empty() {
                continue;
            }
            *mine = Rc::new(mine.union(&flits));
            packets.push(Packet {
                from: PeId(from as u32),
                to: PeId(to as u32),
                axis: self.axis,
                hops: send.hops,
                class: self.class,
                flits,
            });
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let mut packets = Vec::new();
            let mut is_over = true;
            for line in &mut self.lines {
                if line.is_ready(self.grid, &self.held) {
                    line.step(self.grid, &mut self.held, &mut packets);
                    is_over = false;
                }
            }
            if !packets.is_empty() {
                return Some(Step { packets });
            }
            if is_over {
                let stage = self.stages.pop_front()?;
                self.begin(&stage);
            }
        }
    }
}
