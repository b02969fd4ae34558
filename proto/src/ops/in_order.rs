//! Steps for planned crossings if each PE receives the parts of a message in order, as a static
//! schedule requires ([`super::listed`]), with one port in each direction or with two for each
//! neighbour.
//!
//! The plan determines the sender of each part to each PE and the order of the crossings; its steps
//! are ignored. Repeatedly, the possible crossing that can begin first is scheduled; ties go to the
//! plan's order. A message is cut wherever the plan cuts it for any PE, so the first missing part
//! of a message can always arrive, and there is no deadlock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::timetable::Timetable;
use crate::items::Leg;
use crate::{MessageId, PeId};

/// A planned crossing of flits `offset..offset + flits` of a message. The id of a message is the
/// number of its source. Every other PE gets every flit once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    pub(super) message: MessageId,
    pub(super) offset: u64,
    pub(super) flits: u64,
    pub(super) from: PeId,
    pub(super) to: PeId,
}

/// A part of a message that is not cut further.
struct Part {
    message: MessageId,
    offset: u64,
    flits: u64,
}

/// The delivery of a part to one PE.
#[derive(Clone, Copy)]
struct Delivery {
    from: PeId,
    /// Position in the plan.
    rank: usize,
}

/// Returns a schedule of the planned crossings; `flits` are the lengths of the messages.
pub(super) fn in_order(flits: &[u64], planned: &[Crossing], all_ports: bool) -> Timetable {
    let pes = flits.len();
    let (parts, first) = cut(flits, planned);
    let mut run = Run {
        pes,
        deliveries: vec![None; parts.len() * pes],
        receivers: vec![Vec::new(); parts.len() * pes],
        came: vec![None; parts.len() * pes],
        next: Vec::with_capacity(pes * pes),
        ports: match all_ports {
            true => Ports::OfEach {
                arcs: BTreeMap::new(),
                taken: vec![1; pes * pes],
            },
            false => Ports::One {
                sends: vec![1; pes],
                takes: vec![1; pes],
            },
        },
        possible: BinaryHeap::new(),
        parts,
    };
    for (rank, crossing) in planned.iter().enumerate() {
        let message = crossing.message.0 as usize;
        let of_message = &run.parts[first[message]..first[message + 1]];
        let end = crossing.offset + crossing.flits;
        let begin = of_message.partition_point(|part| part.offset < crossing.offset);
        let behind = of_message.partition_point(|part| part.offset < end);
        for part in first[message] + begin..first[message] + behind {
            let from = crossing.from;
            let place = run.place(part, crossing.to);
            run.deliveries[place] = Some(Delivery { from, rank });
            let place = run.place(part, from);
            run.receivers[place].push(crossing.to);
        }
    }
    for pe in 0..pes {
        run.next.extend_from_slice(&first[..pes]);
        for part in first[pe]..first[pe + 1] {
            // The source has all of its message before the first step.
            run.came[part * pes + pe] = Some(0);
        }
    }
    for message in (0..pes).filter(|message| first[*message] < first[message + 1]) {
        for to in run.receivers[run.place(first[message], PeId(message as u32))].clone() {
            run.offer(first[message], to);
        }
    }
    Timetable::of(run.legs())
}

/// Returns all parts by message and offset, and the index of the first part of each message.
fn cut(flits: &[u64], planned: &[Crossing]) -> (Vec<Part>, Vec<usize>) {
    let mut cuts: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); flits.len()];
    for crossing in planned {
        let ends = [crossing.offset, crossing.offset + crossing.flits];
        cuts[crossing.message.0 as usize].extend(ends);
    }
    let (mut parts, mut first) = (Vec::new(), vec![0]);
    for (message, cuts) in (0..).map(MessageId).zip(&cuts) {
        let ends = cuts.iter().skip(1);
        parts.extend(cuts.iter().zip(ends).map(|(offset, end)| Part {
            message,
            offset: *offset,
            flits: end - offset,
        }));
        first.push(parts.len());
    }
    (parts, first)
}

/// The first steps in which ports are free.
enum Ports {
    /// First free steps for each PE.
    One { sends: Vec<u64>, takes: Vec<u64> },
    /// First free steps for each arc; and for each receiver and message the step after the last
    /// part, because the next part may come over another arc.
    OfEach {
        arcs: BTreeMap<[PeId; 2], u64>,
        taken: Vec<u64>,
    },
}

struct Run {
    pes: usize,
    parts: Vec<Part>,
    /// For each part and PE: the delivery there, the PEs that get the part from there, and the step
    /// in which its first flit arrived.
    deliveries: Vec<Option<Delivery>>,
    receivers: Vec<Vec<PeId>>,
    came: Vec<Option<u64>>,
    /// For each PE and message: the part that the PE receives next.
    next: Vec<usize>,
    ports: Ports,
    /// Possible crossings by their first possible step when they were added, then by rank.
    possible: BinaryHeap<Reverse<(u64, usize, usize, PeId)>>,
}

impl Run {
    fn place(&self, part: usize, pe: PeId) -> usize {
        part * self.pes + pe.index()
    }

    /// Adds the crossing of a part if it is the PE's next one and its sender has it.
    fn offer(&mut self, part: usize, to: PeId) {
        let message = self.parts[part].message.0 as usize;
        if self.next[to.index() * self.pes + message] != part {
            return;
        }
        let Some(Delivery { from, rank }) = self.deliveries[self.place(part, to)] else {
            return;
        };
        if let Some(step) = self.earliest(part, from, to) {
            self.possible.push(Reverse((step, rank, part, to)));
        }
    }

    /// Returns the first step in which a part can begin to cross.
    fn earliest(&self, part: usize, from: PeId, to: PeId) -> Option<u64> {
        let came = self.came[self.place(part, from)]?;
        let free = match &self.ports {
            Ports::One { sends, takes } => sends[from.index()].max(takes[to.index()]),
            Ports::OfEach { arcs, taken } => {
                let arc = arcs.get(&[from, to]).copied().unwrap_or(1);
                arc.max(taken[self.taken_place(part, to)])
            }
        };
        Some(free.max(came + 1))
    }

    fn taken_place(&self, part: usize, to: PeId) -> usize {
        to.index() * self.pes + self.parts[part].message.index()
    }

    /// Sets the step in which the ports of a crossing are free again.
    fn occupy(&mut self, part: usize, [from, to]: [PeId; 2], free: u64) {
        let place = self.taken_place(part, to);
        match &mut self.ports {
            Ports::One { sends, takes } => {
                (sends[from.index()], takes[to.index()]) = (free, free);
            }
            Ports::OfEach { arcs, taken } => {
                arcs.insert([from, to], free);
                taken[place] = free;
            }
        }
    }

    /// Schedules and returns all crossings.
    fn legs(mut self) -> Vec<Leg> {
        let mut legs = Vec::new();
        while let Some(Reverse((thought, rank, part, to))) = self.possible.pop() {
            let Some(Delivery { from, .. }) = self.deliveries[self.place(part, to)] else {
                continue;
            };
            let Some(step) = self.earliest(part, from, to) else {
                continue;
            };
            if step > thought {
                self.possible.push(Reverse((step, rank, part, to)));
                continue;
            }
            let Part {
                message,
                offset,
                flits,
            } = self.parts[part];
            self.occupy(part, [from, to], step + flits);
            let place = self.place(part, to);
            self.came[place] = Some(step);
            legs.push(Leg {
                message,
                offset,
                flits,
                from,
                to,
                first_step: step,
                every: 1,
            });
            self.next[to.index() * self.pes + message.0 as usize] = part + 1;
            if self
                .parts
                .get(part + 1)
                .is_some_and(|next| next.message == message)
            {
                self.offer(part + 1, to);
            }
            for receiver in std::mem::take(&mut self.receivers[place]) {
                self.offer(part, receiver);
            }
        }
        legs
    }
}
