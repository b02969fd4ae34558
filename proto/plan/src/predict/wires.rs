//! Frames in virtual time: handed over to a port, on the wire, and received.

use flitcast_proto::items::{Control, Message};
use flitcast_proto::round::{Action, Sized};
use flitcast_proto::{PeId, Time};

use super::predicted_pe::{Next, Work};
use super::prediction_state::{Event, PredictionState};
use super::resources::{FrameInFlight, Wire};
use crate::cost::{Link, Model, Ports};

impl PredictionState<'_> {
    pub(super) fn wire(&mut self, from: PeId, to: PeId) -> (&mut Wire, Link) {
        let link = self.model.link(self.tree, from, to);
        let down = self.tree.parent(to) == Some(from);
        let wire = match () {
            () if down => &mut self.wires[to.index()][0],
            () if self.tree.parent(from) == Some(to) => &mut self.wires[from.index()][1],
            () => self.others.entry((from, to)).or_default(),
        };
        (wire, link)
    }

    /// Returns the bytes of incomplete flits at a PE, and when they reach the number that the round
    /// waits for, if that is in the future.
    pub(super) fn arriving(&mut self, now: u64, at: PeId) -> (u64, Option<u64>) {
        let Some(awaited) = self.stations[at.index()].round.awaits_bytes() else {
            return (0, None);
        };
        let (mut here, mut soonest) = (0, None);
        for place in 0..self.neighbours[at.index()].len() {
            let from = self.neighbours[at.index()][place];
            let Some(arrives) = self.front(from, at) else {
                continue;
            };
            let (wire, link) = self.wire(from, at);
            let Some(frame) = wire.frames.front() else {
                continue;
            };
            let left = arrives.saturating_sub(now) as f64 / link.ns_per_byte.max(f64::MIN_POSITIVE);
            here += frame.bytes.saturating_sub(left as u64);
            let lacks = frame.bytes.saturating_sub(awaited) as f64 * link.ns_per_byte;
            let enough = arrives.saturating_sub(lacks.round() as u64);
            soonest = soonest.into_iter().chain([enough]).min();
        }
        (here, soonest.filter(|at| *at > now))
    }

    /// Receives a frame of a neighbour that the round listens to, or waits for one.
    pub(super) fn listen(&mut self, now: u64, at: PeId, until: Option<Time>) -> Next {
        let until = until.map(|Time(due)| due);
        let mut soonest = until.filter(|&due| due > now);
        let round = &self.stations[at.index()].round;
        let only = round.awaits_rest_from().filter(|_| !round.is_duplex());
        let mut among = 0..self.neighbours[at.index()].len();
        if only.is_some() {
            among.end = 0;
        }
        let mut all = only;
        while let Some(from) = all.take().or_else(|| {
            let place = among.next()?;
            Some(self.neighbours[at.index()][place])
        }) {
            if !self.stations[at.index()].round.listens_to(from) {
                continue;
            }
            let Some(arrived) = self.front(from, at) else {
                continue;
            };
            if arrived <= now {
                match self.pop(now, from, at) {
                    Some((content, along)) => {
                        return Next::Act(Work::In(from, content, along));
                    }
                    None => continue,
                }
            }
            soonest = Some(soonest.map_or(arrived, |soonest| soonest.min(arrived)));
        }
        Next::Sleep(soonest)
    }

    /// Returns when the frame at the front of a wire has arrived completely.
    fn front(&mut self, from: PeId, at: PeId) -> Option<u64> {
        let shared = self.model.ports == Ports::Single;
        let port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let port = if shared { port } else { wire.receive };
        let frame = wire.frames.front()?;
        let arrived = match frame.content {
            Sized::Flits { .. } => port.arrival(frame.departed, frame.takes, &link),
            // A few bytes that go between two packets of a flit.
            Sized::Control(_) => frame.departed + link.latency_ns,
        };
        Some(arrived.round() as u64)
    }

    /// Removes the frame at the front of a wire.
    fn pop(&mut self, now: u64, from: PeId, at: PeId) -> Option<(Sized, bool)> {
        let shared = self.model.ports == Ports::Single;
        let mut port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let frame = wire.frames.pop_front()?;
        wire.unread -= frame.bytes;
        let receive = if shared { &mut port } else { &mut wire.receive };
        if let Sized::Flits { .. } = frame.content {
            receive.take(frame.departed, frame.takes, &link);
        }
        self.stations[at.index()].receive = port;
        self.acknowledge(now, frame.bytes, [at, from]);
        // The sender may have waited for the room.
        self.cause(now, Event::Look(from));
        Some((frame.content, frame.along))
    }

    /// Adds TCP's acknowledgement of `bytes` bytes, which goes between packets in its direction. It
    /// takes as long at the receiver's port and is not counted twice.
    fn acknowledge(&mut self, now: u64, bytes: u64, [from, to]: [PeId; 2]) {
        let bytes = (bytes as f64 * self.model.acknowledged) as u64;
        if bytes == 0 {
            return;
        }
        let shared = self.model.ports == Ports::Single;
        let mut port = self.stations[from.index()].send;
        let (wire, link) = self.wire(from, to);
        let send = if shared { &mut port } else { &mut wire.send };
        send.slip_in(now as f64, bytes, &link);
        self.stations[from.index()].send = port;
    }

    /// Returns the action if a frame of `bytes` bytes can be handed over now.
    pub(super) fn hand_over(
        &mut self,
        now: u64,
        at: PeId,
        to: PeId,
        bytes: u64,
        action: Action,
    ) -> Next {
        let Model {
            ahead_ns,
            buffer_bytes,
            ports,
            ..
        } = *self.model;
        let shared = self.stations[at.index()].send;
        let (wire, _) = self.wire(at, to);
        let has_room = wire.unread == 0 || wire.unread.saturating_add(bytes) <= buffer_bytes;
        if !has_room {
            return Next::Sleep(None);
        }
        let (wire, _) = self.wire(at, to);
        let port = if ports == Ports::Single {
            &shared
        } else {
            &wire.send
        };
        match port.free_at(ahead_ns).round() as u64 {
            free if free > now => Next::Sleep(Some(free)),
            _ => Next::Act(Work::Out(action)),
        }
    }

    pub(super) fn control_bytes(&self, item: Control) -> u64 {
        match item {
            Control::Receipt => self.model.receipt_bytes,
            _ => self.model.control_bytes,
        }
    }

    /// Returns the number of flits with this payload of a message.
    pub(super) fn flits(&self, message: Message, payload_bytes: u64) -> u64 {
        let full = self.packets.get(&message.id).copied();
        payload_bytes.div_ceil(full.unwrap_or(1))
    }

    /// Returns the bytes of the frames with this payload of a message.
    pub(super) fn flit_frames_bytes(&self, message: Message, payload_bytes: u64) -> u64 {
        payload_bytes + self.flits(message, payload_bytes) * self.model.prefix_bytes
    }

    /// Adds a frame to a wire, with which this number of packets begin.
    pub(super) fn push(
        &mut self,
        now: u64,
        at: PeId,
        to: PeId,
        bytes: u64,
        (content, packets): (Sized, u64),
    ) {
        let ports = self.model.ports;
        let station = &mut self.stations[at.index()];
        let along = station.gathered.is_for(to);
        if station.gathers {
            station.gathered.add(to, bytes);
        }
        let mut shared = station.send;
        let (wire, link) = self.wire(at, to);
        let port = if ports == Ports::Single {
            &mut shared
        } else {
            &mut wire.send
        };
        let takes = link.occupied_ns(packets, bytes);
        let departed = match content {
            Sized::Flits { .. } => port.depart(now as f64, takes, &link),
            Sized::Control(_) => port.slip_in(now as f64, bytes, &link),
        };
        wire.unread += bytes;
        wire.frames.push_back(FrameInFlight {
            content,
            bytes,
            takes,
            departed,
            along,
        });
        self.stations[at.index()].send = shared;
        self.cause(now, Event::Look(to));
    }
}
