//! Frames in virtual time: handed over to a port, on the wire, and received.

use flitcast_proto::items::{Control, Message};
use flitcast_proto::round::Sized;
use flitcast_proto::{PeId, Time};

use super::predicted_pe::{Next, Work};
use super::prediction_state::{Event, PredictionState};
use super::resources::{FrameInFlight, PortQueue, Wire};
use crate::cost::{Link, Ports};

impl PredictionState<'_> {
    fn wire(&mut self, from: PeId, to: PeId) -> &mut Wire {
        match () {
            () if self.tree.parent(to) == Some(from) => &mut self.wires[to.index()][0],
            () if self.tree.parent(from) == Some(to) => &mut self.wires[from.index()][1],
            () => self.others.entry((from, to)).or_default(),
        }
    }

    fn link(&self, from: PeId, to: PeId) -> Link {
        self.model.link(self.tree, from, to)
    }

    /// Returns the port through which a PE sends to a neighbour.
    fn send_port(&mut self, from: PeId, to: PeId) -> &mut PortQueue {
        match self.model.ports {
            Ports::Single => &mut self.stations[from.index()].send,
            Ports::PerEdge => &mut self.wire(from, to).send,
        }
    }

    /// Returns the port through which a PE receives from a neighbour.
    fn receive_port(&mut self, from: PeId, to: PeId) -> &mut PortQueue {
        match self.model.ports {
            Ports::Single => &mut self.stations[to.index()].receive,
            Ports::PerEdge => &mut self.wire(from, to).receive,
        }
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
            let link = self.link(from, at);
            let Some(frame) = self.wire(from, at).frames.front() else {
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
        let only = self.stations[at.index()].round.listens_only_to();
        let neighbours = self.neighbours[at.index()].len();
        for place in 0..only.map_or(neighbours, |_| 1) {
            let from = only.unwrap_or_else(|| self.neighbours[at.index()][place]);
            if !self.stations[at.index()].round.listens_to(from) {
                continue;
            }
            let Some(arrived) = self.front(from, at) else {
                continue;
            };
            if arrived <= now {
                let Some((content, along)) = self.pop(now, from, at) else {
                    continue;
                };
                return Next::Act(Work::In(from, content, along));
            }
            soonest = soonest.into_iter().chain([arrived]).min();
        }
        Next::Sleep(soonest)
    }

    /// Returns when the frame at the front of a wire has arrived completely.
    fn front(&mut self, from: PeId, at: PeId) -> Option<u64> {
        let frame = self.wire(from, at).frames.front()?;
        let (departed, takes) = (frame.departed, frame.takes);
        let is_control = matches!(frame.content, Sized::Control(_));
        let link = self.link(from, at);
        let arrived = match is_control {
            // A few bytes that go between two packets of a flit.
            true => departed + link.latency_ns,
            false => self.receive_port(from, at).arrival(departed, takes, &link),
        };
        Some(arrived.round() as u64)
    }

    /// Removes the frame at the front of a wire.
    fn pop(&mut self, now: u64, from: PeId, at: PeId) -> Option<(Sized, bool)> {
        let wire = self.wire(from, at);
        let frame = wire.frames.pop_front()?;
        wire.unread -= frame.bytes;
        if let Sized::Flits(_) = frame.content {
            let link = self.link(from, at);
            let port = self.receive_port(from, at);
            port.take(frame.departed, frame.takes, &link);
        }
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
        let link = self.link(from, to);
        let port = self.send_port(from, to);
        port.slip_in(now as f64, bytes, &link);
    }

    /// Returns when a frame of `bytes` bytes can be handed over, if it cannot be now: at a time, or
    /// `Some(None)` when the receiver has made room.
    pub(super) fn waits_for_room(
        &mut self,
        now: u64,
        at: PeId,
        to: PeId,
        bytes: u64,
    ) -> Option<Option<u64>> {
        let unread = self.wire(at, to).unread;
        if unread > 0 && unread.saturating_add(bytes) > self.model.buffer_bytes {
            return Some(None);
        }
        let ahead_ns = self.model.ahead_ns;
        let free = self.send_port(at, to).free_at(ahead_ns).round() as u64;
        (free > now).then_some(Some(free))
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
        let prefixes = self.flits(message, payload_bytes) * self.model.prefix_bytes;
        self.compression.wire_bytes(message.id, payload_bytes) + prefixes
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
        let station = &mut self.stations[at.index()];
        let along = station.gathered.is_for(to);
        if station.gathers {
            station.gathered.add(to, bytes);
        }
        let link = self.link(at, to);
        let takes = link.occupied_ns(packets, bytes);
        let port = self.send_port(at, to);
        let departed = match content {
            Sized::Flits(_) => port.depart(now as f64, takes, &link),
            Sized::Control(_) => port.slip_in(now as f64, bytes, &link),
        };
        let wire = self.wire(at, to);
        wire.unread += bytes;
        wire.frames.push_back(FrameInFlight {
            content,
            bytes,
            takes,
            departed,
            along,
        });
        self.cause(now, Event::Look(to));
    }
}
