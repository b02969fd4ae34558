//! A schedule that is a list of what crosses each arc when, of many messages at once.

use crate::items::Leg;
use crate::{MessageId, PeId};

/// What crosses when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// Everything that crosses, by step, then by sender; a leg has flits of one message in
    /// succession.
    pub legs: Vec<Leg>,
    /// The step of the last arrival; 0 if nothing is to be sent.
    pub time_steps: u64,
    /// The most flits that a PE keeps at the end of a step for others, those not counted that
    /// start there.
    pub kept_flits: u64,
}

impl Timetable {
    /// Of these legs, in any order.
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

/// Legs that are put together of single flits, step by step: what goes on in the next step over the
/// same arc is the same leg.
#[derive(Debug)]
pub(super) struct Legs {
    legs: Vec<Leg>,
    /// By arc, the place of its last leg.
    last: Vec<Option<usize>>,
}

impl Legs {
    /// None yet, over so many arcs.
    pub(super) fn over(arcs: usize) -> Legs {
        Legs {
            legs: Vec::new(),
            last: vec![None; arcs],
        }
    }

    /// A flit of a message crosses an arc, which has these ends.
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
        });
    }

    /// All of them.
    pub(super) fn into_legs(self) -> Vec<Leg> {
        self.legs
    }
}
