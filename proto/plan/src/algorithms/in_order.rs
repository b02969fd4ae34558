//! Steps for planned crossings if each PE receives the parts of a message in order, as a static
//! schedule requires (`flitcast_proto::ops`), with one port in each direction or with two for each
//! neighbour.
//!
//! The plan determines the sender of each part to each PE, the packets, and their order at each port;
//! no port waits for the end of a step. Repeatedly, the possible packet that can begin first is scheduled; ties
//! go to the plan's order. Some plans bring the parts of a message to a PE in another order. Then
//! packets leave a port in any order, and if they cannot be whole either, each part is a packet. A
//! message is cut wherever the plan cuts it for any PE, so the first missing part of a message can
//! always arrive, and there is no deadlock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::{MessageId, PeId};

use super::timetable::{Timetable, hop};
use crate::timing::Timing;

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
    pub(super) step: usize,
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
    /// The number of its step in the plan.
    planned: usize,
    is_scheduled: bool,
}

/// The parts of the plan that a schedule keeps.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    /// The packets, and their order at each send port.
    Order,
    Packets,
    /// The crossings alone.
    Parts,
}

/// Returns a schedule of the planned crossings between `pes` PEs; `flits` are the lengths of the
/// messages, of which `message mod pes` is the source. If PEs have fewer ports than in the plan,
/// packets leave in another order if that is shorter.
pub(super) fn in_order(
    pes: usize,
    flits: &[u64],
    planned: &[Crossing],
    timing: &Timing,
    has_planned_ports: bool,
) -> Timetable {
    let keeping = |keeps| {
        let hops = Run::new(pes, flits, planned, timing, keeps).hops();
        hops.map(Timetable::of)
    };
    let ordered = keeping(Keeps::Order);
    let free = match &ordered {
        Some(_) if has_planned_ports => None,
        _ => keeping(Keeps::Packets),
    };
    let both = ordered.into_iter().chain(free);
    let shorter = both.min_by_key(|plan| plan.time_steps);
    shorter
        .or_else(|| keeping(Keeps::Parts))
        .unwrap_or_default()
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

/// A port of a PE, or the place of a message at it: over separate links, the next part of a message may come
/// over another one than the last, and has to wait for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    Sends(PeId),
    Takes(PeId),
    Arc([PeId; 2]),
    Message(PeId, MessageId),
}

struct Run {
    pes: usize,
    messages: usize,
    keeps: Keeps,
    /// Steps of a packet's set-up.
    setup: u64,
    parts: Vec<Part>,
    packets: Vec<Packet>,
    /// For each part and PE: the packet that brings it there, the packets that take it from there,
    /// and the first step in which it can continue.
    deliveries: Vec<Option<usize>>,
    onwards: Vec<Vec<usize>>,
    here: Vec<Option<u64>>,
    /// For each PE and message: the part that the PE receives next.
    next: Vec<usize>,
    /// Whether each neighbour has a separate link.
    all_ports: bool,
    /// The first step in which each port is free, if it is not the first of all.
    free: BTreeMap<Port, u64>,
    /// For each send port, the packets that have not been scheduled, in the plan's order.
    queues: BTreeMap<(PeId, Option<PeId>), VecDeque<usize>>,
    /// For each receiver with one port, the packets that have not been scheduled, by their planned
    /// steps.
    due: BTreeMap<PeId, BTreeMap<usize, BTreeSet<usize>>>,
    /// Possible packets by their first possible step when they were added, then in the plan's order.
    possible: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Run {
    fn new(pes: usize, flits: &[u64], planned: &[Crossing], timing: &Timing, keeps: Keeps) -> Run {
        let (parts, first) = cut(flits, planned);
        let messages = flits.len();
        let mut run = Run {
            pes,
            messages,
            keeps,
            packets: Vec::new(),
            deliveries: vec![None; parts.len() * pes],
            onwards: vec![Vec::new(); parts.len() * pes],
            here: vec![None; parts.len() * pes],
            next: first[..messages].repeat(pes),
            setup: timing.setup_flits,
            all_ports: timing.all_ports,
            free: BTreeMap::new(),
            queues: BTreeMap::new(),
            due: BTreeMap::new(),
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
                if keeps == Keeps::Parts || last != Some(crossing.packet) {
                    run.packets.push(Packet {
                        from: crossing.from,
                        to: crossing.to,
                        parts: Vec::new(),
                        planned: crossing.step,
                        is_scheduled: false,
                    });
                    last = Some(crossing.packet);
                    let packet = run.packets.len() - 1;
                    run.queue(packet).push_back(packet);
                    if !timing.all_ports {
                        let due = run.due.entry(crossing.to).or_default();
                        due.entry(crossing.step).or_default().insert(packet);
                    }
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

    /// Returns the packets that wait for the send port of one of them.
    fn queue(&mut self, packet: usize) -> &mut VecDeque<usize> {
        let Packet { from, to, .. } = self.packets[packet];
        let port = (from, self.all_ports.then_some(to));
        self.queues.entry(port).or_default()
    }

    /// Returns whether a packet is the next one of its send port, and of the first step that its receive
    /// port has not finished.
    fn is_its_turn(&mut self, packet: usize) -> bool {
        let Packet { to, planned, .. } = self.packets[packet];
        let due = self.due.get(&to).and_then(|due| due.keys().next());
        (self.all_ports || due == Some(&planned)) && self.queue(packet).front() == Some(&packet)
    }

    /// Removes a packet that is scheduled from those that wait for its ports, and offers the next ones.
    fn end_turn(&mut self, packet: usize) {
        let Packet { to, planned, .. } = self.packets[packet];
        self.queue(packet).pop_front();
        let mut next: Vec<usize> = self.queue(packet).front().copied().into_iter().collect();
        let due = self.due.entry(to).or_default();
        if let Some(packets) = due.get_mut(&planned) {
            packets.remove(&packet);
            if packets.is_empty() {
                due.remove(&planned);
                next.extend(due.values().next().into_iter().flatten());
            }
        }
        next.into_iter().for_each(|packet| self.offer(packet));
    }

    fn next_place(&self, part: usize, to: PeId) -> usize {
        to.index() * self.messages + self.parts[part].message.index()
    }

    /// Adds a packet if all of its parts are the next ones of their messages at its receiver, its
    /// sender has them, and it is its turn at the send port if packets keep their order.
    fn offer(&mut self, packet: usize) {
        if self.keeps == Keeps::Order && !self.is_its_turn(packet) {
            return;
        }
        let Packet { to, parts, .. } = &self.packets[packet];
        let is_next = |(place, part): (usize, &usize)| {
            let follows = |before: &usize| {
                before + 1 == *part && self.parts[*before].message == self.parts[*part].message
            };
            let before = place.checked_sub(1).map(|before| &parts[before]);
            self.next[self.next_place(*part, *to)] == *part || before.is_some_and(follows)
        };
        if parts.iter().enumerate().all(is_next)
            && let Some(step) = self.earliest(packet)
        {
            self.possible.push(Reverse((step, packet)));
        }
    }

    /// Returns the ports that a packet occupies.
    fn ports(&self, packet: usize) -> impl Iterator<Item = Port> {
        let Packet {
            from, to, parts, ..
        } = &self.packets[packet];
        let (from, to) = (*from, *to);
        let ends = match self.all_ports {
            true => [Some(Port::Arc([from, to])), None],
            false => [Port::Sends(from), Port::Takes(to)].map(Some),
        };
        let parts = parts.iter().filter(|_| self.all_ports);
        let messages = parts.map(move |part| Port::Message(to, self.parts[*part].message));
        ends.into_iter().flatten().chain(messages)
    }

    /// Returns the first step in which a packet can begin to cross.
    fn earliest(&self, packet: usize) -> Option<u64> {
        let free = self.ports(packet).filter_map(|port| self.free.get(&port));
        let mut step = free.max().copied().unwrap_or(1);
        let Packet { from, parts, .. } = &self.packets[packet];
        for part in parts {
            step = step.max(self.here[self.place(*part, *from)]?);
        }
        Some(step)
    }

    /// Schedules and returns all crossings, or `None` in a deadlock.
    fn hops(mut self) -> Option<Vec<ScheduledHop>> {
        (0..self.packets.len()).for_each(|packet| self.offer(packet));
        let mut hops: Vec<ScheduledHop> = Vec::new();
        while let Some(Reverse((estimated, packet))) = self.possible.pop() {
            if self.packets[packet].is_scheduled {
                continue;
            }
            let Some(step) = self.earliest(packet) else {
                continue;
            };
            if step > estimated {
                self.possible.push(Reverse((step, packet)));
                continue;
            }
            self.schedule(packet, step, &mut hops);
        }
        let mut packets = self.packets.iter();
        packets.all(|packet| packet.is_scheduled).then_some(hops)
    }

    /// Schedules a packet that begins in this step.
    fn schedule(&mut self, packet: usize, step: u64, hops: &mut Vec<ScheduledHop>) {
        let Packet { from, to, .. } = self.packets[packet];
        let parts = self.packets[packet].parts.clone();
        let flits: u64 = parts.iter().map(|part| self.parts[*part].flits).sum();
        let setup = match self.keeps {
            Keeps::Parts => 0,
            _ => self.setup,
        };
        let ports: Vec<Port> = self.ports(packet).collect();
        let free = step + setup + flits;
        self.free.extend(ports.into_iter().map(|port| (port, free)));
        self.packets[packet].is_scheduled = true;
        let mut first_step = step;
        for (place, part) in parts.iter().enumerate() {
            let Part {
                message,
                offset,
                flits,
            } = self.parts[*part];
            let packing = match (self.keeps, place) {
                (Keeps::Parts, _) => Packing::Flits,
                (_, 0) => Packing::Begins,
                _ => Packing::Joins,
            };
            // Parts that follow each other in a packet are one crossing.
            match hops.last_mut().filter(|_| packing == Packing::Joins) {
                Some(hop) if hop.message == message && hop.offset + hop.flits == offset => {
                    hop.flits += flits;
                }
                _ => hops.push(ScheduledHop {
                    packing,
                    ..hop(message, [from, to], [offset, flits], first_step)
                }),
            }
            first_step += flits;
        }
        let available_at = match self.keeps {
            Keeps::Parts => step + 1,
            _ => step + setup + flits,
        };
        for part in parts {
            let place = self.next_place(part, to);
            self.next[place] = part + 1;
            let place = self.place(part, to);
            self.here[place] = Some(available_at);
            let behind = self.deliveries.get(self.place(part + 1, to)).copied();
            let offered = behind.flatten().into_iter();
            let onwards = std::mem::take(&mut self.onwards[place]);
            for packet in offered.chain(onwards) {
                self.offer(packet);
            }
        }
        if self.keeps == Keeps::Order {
            self.end_turn(packet);
        }
    }
}
