//! Steps for planned crossings if each PE receives the parts of a message in order, as a static
//! schedule requires ([`super::listed`]), with one port in each direction or with two for each
//! neighbour.
//!
//! The plan determines the sender of each part to each PE, the packets and the order of the crossings;
//! its steps are ignored. Repeatedly, the possible packet that can begin first is scheduled; ties go
//! to the plan's order. A message is cut wherever the plan cuts it for any PE, so the first missing
//! part of a message can always arrive, and there is no deadlock if each part is a packet. Where
//! links have no set-up time, it is, and a PE forwards it as it arrives. Otherwise packets are whole,
//! unless that leads to a deadlock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::timetable::Timetable;
use crate::items::{Leg, Packing};
use crate::{MessageId, PeId};

/// A planned crossing of flits `offset..offset + flits` of a message. Every PE but the source gets
/// every flit once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    pub(super) message: MessageId,
    pub(super) offset: u64,
    pub(super) flits: u64,
    pub(super) from: PeId,
    pub(super) to: PeId,
    /// The number of the packet: consecutive crossings with one number have the same ends.
    pub(super) packet: usize,
}

/// A part of a message that is not cut further.
struct Part {
    message: MessageId,
    offset: u64,
    flits: u64,
}

/// Parts that cross together.
struct Packet {
    from: PeId,
    to: PeId,
    parts: Vec<usize>,
    is_scheduled: bool,
}

/// Returns a schedule of the planned crossings between `pes` PEs; `flits` are the lengths of the
/// messages, of which `message mod pes` is the source. `whole` keeps packets whole.
pub(super) fn in_order(
    pes: usize,
    flits: &[u64],
    planned: &[Crossing],
    all_ports: bool,
    whole: bool,
) -> Timetable {
    let legs = Run::new(pes, flits, planned, all_ports, whole).legs();
    let legs = legs.or_else(|| Run::new(pes, flits, planned, all_ports, false).legs());
    Timetable::of(legs.unwrap_or_default())
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
    messages: usize,
    whole: bool,
    parts: Vec<Part>,
    packets: Vec<Packet>,
    /// For each part and PE: the packet that brings it there, the packets that take it from there,
    /// and the first step in which it can go on.
    deliveries: Vec<Option<usize>>,
    onwards: Vec<Vec<usize>>,
    here: Vec<Option<u64>>,
    /// For each PE and message: the part that the PE receives next.
    next: Vec<usize>,
    ports: Ports,
    /// Possible packets by their first possible step when they were added, then in the plan's order.
    possible: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Run {
    fn new(pes: usize, flits: &[u64], planned: &[Crossing], all_ports: bool, whole: bool) -> Run {
        let (parts, first) = cut(flits, planned);
        let messages = flits.len();
        let mut run = Run {
            pes,
            messages,
            whole,
            packets: Vec::new(),
            deliveries: vec![None; parts.len() * pes],
            onwards: vec![Vec::new(); parts.len() * pes],
            here: vec![None; parts.len() * pes],
            next: first[..messages].repeat(pes),
            ports: match all_ports {
                true => Ports::OfEach {
                    arcs: BTreeMap::new(),
                    taken: vec![1; pes * messages],
                },
                false => Ports::One {
                    sends: vec![1; pes],
                    takes: vec![1; pes],
                },
            },
            possible: BinaryHeap::new(),
            parts,
        };
        let mut last = None;
        for crossing in planned {
            let message = crossing.message.0 as usize;
            let of_message = &run.parts[first[message]..first[message + 1]];
            let end = crossing.offset + crossing.flits;
            let begin = of_message.partition_point(|part| part.offset < crossing.offset);
            let behind = of_message.partition_point(|part| part.offset < end);
            for part in first[message] + begin..first[message] + behind {
                if !whole || last != Some(crossing.packet) {
                    run.packets.push(Packet {
                        from: crossing.from,
                        to: crossing.to,
                        parts: Vec::new(),
                        is_scheduled: false,
                    });
                    last = Some(crossing.packet);
                }
                let packet = run.packets.len() - 1;
                run.packets[packet].parts.push(part);
                let place = run.place(part, crossing.to);
                run.deliveries[place] = Some(packet);
                let place = run.place(part, crossing.from);
                run.onwards[place].push(packet);
            }
        }
        for (message, first) in first.windows(2).enumerate() {
            for part in first[0]..first[1] {
                // The source has all of its message before the first step.
                run.here[part * pes + message % pes] = Some(1);
            }
        }
        run
    }

    fn place(&self, part: usize, pe: PeId) -> usize {
        part * self.pes + pe.index()
    }

    fn next_place(&self, part: usize, to: PeId) -> usize {
        to.index() * self.messages + self.parts[part].message.index()
    }

    /// Adds a packet if all of its parts are the next ones of their messages at its receiver and its
    /// sender has them.
    fn offer(&mut self, packet: usize) {
        let Packet { to, parts, .. } = &self.packets[packet];
        let is_next = |(place, part): (usize, &usize)| {
            let follows = |before: &usize| {
                before + 1 == *part && self.parts[*before].message == self.parts[*part].message
            };
            self.next[self.next_place(*part, *to)] == *part
                || place
                    .checked_sub(1)
                    .is_some_and(|before| follows(&parts[before]))
        };
        if parts.iter().enumerate().all(is_next)
            && let Some(step) = self.earliest(packet)
        {
            self.possible.push(Reverse((step, packet)));
        }
    }

    /// Returns the first step in which a packet can begin to cross.
    fn earliest(&self, packet: usize) -> Option<u64> {
        let Packet {
            from, to, parts, ..
        } = &self.packets[packet];
        let mut step = match &self.ports {
            Ports::One { sends, takes } => sends[from.index()].max(takes[to.index()]),
            Ports::OfEach { arcs, taken } => {
                let taken = parts.iter().map(|part| taken[self.next_place(*part, *to)]);
                let arc = arcs.get(&[*from, *to]).copied();
                taken.chain(arc).max().unwrap_or(1)
            }
        };
        for part in parts {
            step = step.max(self.here[self.place(*part, *from)]?);
        }
        Some(step)
    }

    /// Sets the step in which the ports of a packet are free again.
    fn occupy(&mut self, packet: usize, free: u64) {
        let Packet {
            from, to, parts, ..
        } = &self.packets[packet];
        let places: Vec<usize> = parts
            .iter()
            .map(|part| self.next_place(*part, *to))
            .collect();
        match &mut self.ports {
            Ports::One { sends, takes } => {
                (sends[from.index()], takes[to.index()]) = (free, free);
            }
            Ports::OfEach { arcs, taken } => {
                arcs.insert([*from, *to], free);
                places.into_iter().for_each(|place| taken[place] = free);
            }
        }
    }

    /// Schedules and returns all crossings, or `None` in a deadlock.
    fn legs(mut self) -> Option<Vec<Leg>> {
        (0..self.packets.len()).for_each(|packet| self.offer(packet));
        let mut legs: Vec<Leg> = Vec::new();
        while let Some(Reverse((thought, packet))) = self.possible.pop() {
            if self.packets[packet].is_scheduled {
                continue;
            }
            let Some(step) = self.earliest(packet) else {
                continue;
            };
            if step > thought {
                self.possible.push(Reverse((step, packet)));
                continue;
            }
            self.schedule(packet, step, &mut legs);
        }
        let mut packets = self.packets.iter();
        packets.all(|packet| packet.is_scheduled).then_some(legs)
    }

    /// Schedules a packet that begins in this step.
    fn schedule(&mut self, packet: usize, step: u64, legs: &mut Vec<Leg>) {
        let Packet { from, to, .. } = self.packets[packet];
        let parts = self.packets[packet].parts.clone();
        let flits: u64 = parts.iter().map(|part| self.parts[*part].flits).sum();
        self.occupy(packet, step + flits);
        self.packets[packet].is_scheduled = true;
        let mut first_step = step;
        for (place, part) in parts.iter().enumerate() {
            let Part {
                message,
                offset,
                flits,
            } = self.parts[*part];
            let packing = match (self.whole, place) {
                (false, _) => Packing::Flits,
                (true, 0) => Packing::Begins,
                (true, _) => Packing::Joins,
            };
            // Parts that follow each other in a packet are one crossing.
            match legs.last_mut().filter(|_| packing == Packing::Joins) {
                Some(leg) if leg.message == message && leg.offset + leg.flits == offset => {
                    leg.flits += flits;
                }
                _ => legs.push(Leg {
                    message,
                    offset,
                    flits,
                    from,
                    to,
                    first_step,
                    every: 1,
                    packing,
                }),
            }
            first_step += flits;
        }
        let goes_on = if self.whole { step + flits } else { step + 1 };
        for part in parts {
            let place = self.next_place(part, to);
            self.next[place] = part + 1;
            let place = self.place(part, to);
            self.here[place] = Some(goes_on);
            let behind = self.deliveries.get(self.place(part + 1, to)).copied();
            let offered = behind.flatten().into_iter();
            let onwards = std::mem::take(&mut self.onwards[place]);
            for packet in offered.chain(onwards) {
                self.offer(packet);
            }
        }
    }
}
