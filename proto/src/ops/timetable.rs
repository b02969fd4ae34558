//! A schedule that lists the crossings of each arc, for several messages at once.

use crate::items::{Leg, Packing};
use crate::{MessageId, PeId};

/// A list of crossings with their steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// All crossings by step, then by sender; the flits of one leg are consecutive flits of a
    /// message.
    pub legs: Vec<Leg>,
    /// The step of the last arrival; 0 if nothing is to be sent.
    pub time_steps: u64,
    /// The maximum number of flits that a PE keeps for others at the end of a step, not counting
    /// flits that start there.
    pub kept_flits: u64,
}

impl Timetable {
    /// Creates a timetable of these crossings, in any order.
    pub(super) fn of(mut legs: Vec<Leg>, kept_flits: u64) -> Timetable {
        legs.sort_unstable_by_key(|leg| (leg.first_step, leg.from, leg.to));
        let last = |leg: &Leg| leg.first_step + (leg.flits - 1) * leg.every;
        Timetable {
            time_steps: legs.iter().map(last).max().unwrap_or(0),
            legs,
            kept_flits,
        }
    }
}

/// Crossings built from single flits, step by step: a flit that follows the previous one in the
/// next step over the same arc extends its crossing.
#[derive(Debug)]
pub(super) struct Legs {
    legs: Vec<Leg>,
    /// For each arc, the position of its last crossing.
    last: Vec<Option<usize>>,
}

impl Legs {
    /// Creates an empty list over `arcs` arcs.
    pub(super) fn over(arcs: usize) -> Legs {
        Legs {
            legs: Vec::new(),
            last: vec![None; arcs],
        }
    }

    /// Adds a flit of a message that crosses an arc with these ends.
    pub(super) fn put(&mut self, arc: usize, ends: [PeId; 2], step: u64, flit: (MessageId, u64)) {
        let (message, offset) = flit;
        let last = self.last[arc].map(|place| &mut self.legs[place]);
        let continued = last.filter(|leg| {
            let follows = leg.offset + leg.flits == offset && leg.first_step + leg.flits == step;
            leg.message == message && follows
        });
        if let Some(leg) = continued {
            leg.flits += 1;
            return;
        }
        self.last[arc] = Some(self.legs.len());
        self.legs.push(Leg {
            message,
            offset,
            flits: 1,
            from: ends[0],
            to: ends[1],
            first_step: step,
            every: 1,
            packing: Packing::Flits,
        });
    }

    pub(super) fn into_legs(self) -> Vec<Leg> {
        self.legs
    }
}
