//! Frames in virtual time: the times of a core for each, handed over to a port, on the wire, and received.

use std::ops::Bound::{Excluded, Unbounded};

use flitcast_proto::items::{Control, Message};
use flitcast_proto::ops::{HELD_IN_MEMORY, POLL_ATTEMPTS};
use flitcast_proto::round::{Action, Sized};
use flitcast_proto::{PeId, Time};

use super::predicted_pe::{FlitsOut, Next, Work};
use super::prediction_state::{Event, PredictionState, Sender};
use super::resources::{FrameInFlight, PortQueue, Wire};
use crate::cost::{
    COALESCED_FRAME_COST, COLD_BYTE_COST, HELD_BYTE_COST, HELD_IN_CACHE, HELD_IN_NEW_MEMORY_COST,
    HELD_ON_HEAP, Link, Ports,
};

impl PredictionState<'_> {
    fn wire(&mut self, from: PeId, to: PeId) -> &mut Wire {
        match Sender::new(self.tree, from, to) {
            Sender::Parent(_) => &mut self.wires[to.index()][0],
            Sender::Child(_) => &mut self.wires[from.index()][1],
            Sender::Peer(_) => self.others.entry((from, to)).or_default(),
        }
    }

    /// Returns the first neighbour after this one whose frames are on the way to a PE or there.
    fn next_sender(&self, at: PeId, after: Option<Sender>) -> Option<Sender> {
        let after = after.map_or(Unbounded, Excluded);
        let incoming = &self.incoming[at.index()];
        incoming.range((after, Unbounded)).next().copied()
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
        let mut next = self.next_sender(at, None);
        while let Some(sender) = next {
            next = self.next_sender(at, next);
            let from = sender.id();
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
        let only = only.map(|from| Sender::new(self.tree, from, at));
        let mut next = only.or_else(|| self.next_sender(at, None));
        while let Some(sender) = next {
            let from = sender.id();
            next = match only {
                Some(_) => None,
                None => self.next_sender(at, next),
            };
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
        if wire.frames.is_empty() {
            let sender = Sender::new(self.tree, from, at);
            self.incoming[at.index()].remove(&sender);
        }
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
        self.incoming[to.index()].insert(Sender::new(self.tree, at, to));
        self.cause(now, Event::Look(to));
    }

    /// Returns the nanoseconds until a PE that has waited for `waited_ns` continues, or begins the
    /// round.
    pub(super) fn wake_ns(&self, at: PeId, waited_ns: u64, begins: bool) -> f64 {
        let hosts = &self.model.hosts;
        let host = hosts.of(at);
        let look_ns = host.look_ns(self.residents[hosts.machine_of(at)]);
        let is_awake = self.stations[at.index()].polls_before_sleep
            && !begins
            && waited_ns as f64 <= POLL_ATTEMPTS as f64 * look_ns;
        match is_awake {
            true => host.wake_ns.min(look_ns),
            false => host.wake_ns,
        }
    }

    /// Returns the nanoseconds of a core for a piece of work.
    pub(super) fn core_ns(&self, at: PeId, work: &Work) -> u64 {
        let host = self.model.hosts.of(at);
        let station = &self.stations[at.index()];
        let (piece, per_byte, along) = match work {
            Work::Out(action) => match FlitsOut::of(action) {
                Some(FlitsOut { to, piece, .. }) => {
                    (piece, host.send_ns_per_byte, station.gathered.is_for(to))
                }
                None => return host.control_ns.round() as u64,
            },
            Work::In(_, Sized::Flits(piece), along) => (*piece, host.receive_ns_per_byte, *along),
            Work::In(..) => return host.control_ns.round() as u64,
        };
        let (message, bytes) = (piece.message, piece.bytes);
        let flits = self.flits(message, bytes) as f64;
        let calls = if along { COALESCED_FRAME_COST } else { 1.0 };
        let mut bytes_ns = per_byte * self.compression.wire_bytes(message.id, bytes) as f64;
        bytes_ns += self.compression.core_ns(work, message.id, bytes);
        let (ends, first_or_last) = match work {
            // The bytes were prepared for the first neighbour.
            Work::Out(Action::SendAgain { .. }) => (false, false),
            Work::Out(_) => {
                let is_first = piece.offset == 0 && !station.set_up.contains(&message.id);
                (message.source == at, is_first)
            }
            Work::In(..) => (message.is_for(at), piece.is_last()),
        };
        if ends {
            bytes_ns += host.end_ns_per_byte * bytes as f64;
        }
        if matches!(work, Work::Out(Action::SendHeld { .. })) {
            bytes_ns += self.held_ns(at, piece.message, bytes);
        }
        // The following flits pass the same memory.
        if host.first_ns > 0.0 && piece.offset == 0 {
            bytes_ns += COLD_BYTE_COST * bytes_ns / flits.max(1.0);
        }
        let message_ns = if ends && first_or_last {
            host.message_ns
        } else {
            0.0
        };
        (host.flit_ns * flits * calls + bytes_ns + message_ns).round() as u64
    }

    /// Returns the nanoseconds of a core for storing bytes of a message and for loading them again.
    fn held_ns(&self, at: PeId, message: Message, bytes: u64) -> f64 {
        let host = self.model.hosts.of(at);
        let held = self.stations[at.index()].round.held_flits();
        let flit_bytes = self.packets.get(&message.id).copied().unwrap_or(1);
        let held_bytes = held.saturating_mul(flit_bytes);
        let is_in_new_memory = match host.first_ns > 0.0 {
            true => held_bytes > HELD_ON_HEAP,
            false => held_bytes > HELD_IN_MEMORY as u64,
        };
        let cost = if is_in_new_memory {
            HELD_IN_NEW_MEMORY_COST
        } else if held_bytes > HELD_IN_CACHE {
            HELD_BYTE_COST
        } else {
            0.0
        };
        cost * (host.send_ns_per_byte + host.receive_ns_per_byte) * bytes as f64
    }
}
