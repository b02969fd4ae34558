//! One direction of an edge as with TCP: bytes arrive in order, late or never, and buffers have
//! limits. `world.rs` schedules the events.

use std::collections::VecDeque;

use flitcast_proto::cost::Link;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::FrameSealer;
use flitcast_proto::wire::{LENGTH_BYTES, WireError, flit};

/// Time without an acknowledgement after which a host has retransmitted more than once.
const REPEATS_NS: u64 = 700_000_000;

/// A unit in transit.
#[derive(Debug)]
enum Parcel {
    Bytes {
        bytes: Vec<u8>,
        /// Whether its record on an authenticated connection is invalid.
        spoiled: bool,
    },
    /// A heartbeat, which takes no room and is received even if the process does not read.
    Keepalive,
    /// The end of the stream.
    End,
}

/// Bits to be flipped in a later frame.
#[derive(Debug)]
struct Corruption {
    skip: u64,
    bits: u64,
    /// Whether only payload is affected.
    is_damage: bool,
}

/// One direction of an edge.
#[derive(Debug)]
pub(super) struct Wire {
    link: Link,
    /// When all frames sent so far have left the port, in fractional nanoseconds, so that rates are
    /// exact over many frames.
    port_free: f64,
    /// When all control frames, which go between packets of a flit, have left the port.
    slipped: f64,
    /// Units in transit, with arrival and departure, and the last arrival.
    flight: VecDeque<(u64, u64, Parcel)>,
    last_arrival: u64,
    last_sent: u64,
    /// Bytes that have arrived and were not read.
    inbox: Vec<u8>,
    /// Whether records are checked, and the position in the inbox of the first invalid one.
    authenticated: bool,
    spoiled_at: Option<usize>,
    /// The bytes that each frame between its sender's write and its receiver's read counts for.
    unread: VecDeque<u64>,
    unread_bytes: u64,
    /// When the receiver's host last received anything.
    pub(super) last_received_at: u64,
    /// Whether nothing more can be sent.
    pub(super) closed: bool,
    /// Whether the receiver has received the end.
    pub(super) ended: bool,
    /// The interval in which nothing arrives.
    blocked_since: u64,
    blocked_until: u64,
    /// The end of a delay, and its length.
    pub(super) delay: (u64, u64),
    pub(super) duplicate_percent: u64,
    corruption: Option<Corruption>,
    /// Number of frames of an earlier round that precede the next item.
    pub(super) late: u64,
    /// The sender's seals, and the receiver's reader.
    sealer: FrameSealer,
    pub(super) reader: FrameReader,
    /// Number of duplicates received.
    pub(super) repeated: u64,
    pub(super) damaged_payloads: u64,
    /// When the receiver's host checks the wire next.
    pub(super) looked_at: u64,
}

impl Wire {
    pub(super) fn new(link: Link, authenticated: bool, max_frame: usize) -> Wire {
        Wire {
            link,
            port_free: 0.0,
            slipped: 0.0,
            flight: VecDeque::new(),
            last_arrival: 0,
            last_sent: 0,
            inbox: Vec::new(),
            authenticated,
            spoiled_at: None,
            unread: VecDeque::new(),
            unread_bytes: 0,
            last_received_at: 0,
            closed: false,
            ended: false,
            blocked_since: 0,
            blocked_until: 0,
            delay: (0, 0),
            duplicate_percent: 0,
            corruption: None,
            late: 0,
            sealer: FrameSealer::default(),
            reader: FrameReader::new(max_frame),
            repeated: 0,
            damaged_payloads: 0,
            looked_at: u64::MAX,
        }
    }

    /// Returns whether there is room for a flit that counts for `counts` bytes.
    pub(super) fn has_room(&self, counts: u64, buffer_bytes: u64) -> bool {
        self.unread_bytes == 0 || self.unread_bytes.saturating_add(counts) <= buffer_bytes
    }

    /// Sends a frame; returns the number of copies.
    pub(super) fn send(
        &mut self,
        now: u64,
        frame: &[u8],
        counts: u64,
        chance: &mut SplitMix64,
    ) -> u64 {
        if self.closed {
            return 0;
        }
        let is_flit = flit::is_flit(&frame[LENGTH_BYTES..]);
        let payload = flit::parse(&frame[LENGTH_BYTES..]).map_or(0, |flit| flit.payload.len());
        let mut frame = self.sealer.sealed(frame);
        let spoiled = self.corrupt_frame(&mut frame, payload, chance);
        let twice = self.duplicate_percent > 0 && chance.below(100) < self.duplicate_percent;
        let copies = 1 + u64::from(twice);
        for _ in 0..copies {
            let departs = match is_flit {
                true => self.pass_port(now, counts),
                false => self.slip_in(now, counts),
            };
            let arrives = (departs + self.link.latency_ns).round() as u64;
            self.unread.push_back(counts);
            self.unread_bytes += counts;
            self.last_sent = now;
            let bytes = frame.clone();
            self.launch(now, arrives, Parcel::Bytes { bytes, spoiled });
        }
        copies
    }

    /// Flips bits if this is the frame for it. Returns whether the frame's record is invalid.
    fn corrupt_frame(&mut self, frame: &mut [u8], payload: usize, chance: &mut SplitMix64) -> bool {
        let Some(corruption) = &mut self.corruption else {
            return false;
        };
        if corruption.is_damage && payload == 0 {
            return false;
        }
        if corruption.skip > 0 {
            corruption.skip -= 1;
            return false;
        }
        // Payload is last.
        let spared = match corruption.is_damage {
            true => frame.len() - payload,
            false => frame.len() / 2 * chance.below(2) as usize,
        };
        self.damaged_payloads += u64::from(corruption.is_damage);
        let hit = &mut frame[spared..];
        for _ in 0..corruption.bits {
            let bit = chance.below(8 * hit.len() as u64);
            hit[bit as usize / 8] ^= 1 << (bit % 8);
        }
        self.corruption = None;
        self.authenticated
    }

    /// Returns for how long the port is busy with the frames sent so far.
    pub(super) fn busy_ns(&self, now: u64) -> f64 {
        (self.port_free - now as f64).max(0.0)
    }

    /// Adds a flit and returns when it has left the port.
    fn pass_port(&mut self, now: u64, counts: u64) -> f64 {
        self.port_free = self.port_free.max(now as f64) + self.link.ns_per_byte * counts as f64;
        self.port_free
    }

    /// Adds a control frame, which delays all other frames, and returns when it has left the port.
    fn slip_in(&mut self, now: u64, counts: u64) -> f64 {
        self.pass_port(now, counts);
        self.slipped = self.slipped.max(now as f64) + self.link.ns_per_byte * counts as f64;
        self.slipped
    }

    fn launch(&mut self, now: u64, arrives: u64, parcel: Parcel) {
        let (until, by) = self.delay;
        let arrives = arrives + if now < until { by } else { 0 };
        self.last_arrival = self.last_arrival.max(arrives);
        self.flight.push_back((self.last_arrival, now, parcel));
    }

    /// Sends a keepalive from the sender's host.
    pub(super) fn beat(&mut self, now: u64) {
        if !self.closed {
            self.launch(now, now + self.link.latency_ns as u64, Parcel::Keepalive);
        }
    }

    /// Closes the sending end; data sent before still arrives.
    pub(super) fn close(&mut self, now: u64) {
        if !self.closed {
            self.launch(now, now + self.link.latency_ns as u64, Parcel::End);
            self.closed = true;
        }
    }

    /// Breaks the connection: of the data in transit, at most the first frame arrives, and rarely
    /// completely.
    pub(super) fn cut(&mut self, now: u64, chance: &mut SplitMix64) {
        let mut flight = self.flight.drain(..);
        let first = flight.find_map(|(_, _, parcel)| match parcel {
            Parcel::Bytes { bytes, spoiled } => Some((bytes, spoiled)),
            Parcel::Keepalive | Parcel::End => None,
        });
        drop(flight);
        if let Some((mut bytes, spoiled)) = first {
            bytes.truncate(chance.below(bytes.len() as u64 + 1) as usize);
            let parcel = Parcel::Bytes { bytes, spoiled };
            self.flight.push_back((now, now, parcel));
        }
        self.flight.push_back((now, now, Parcel::End));
        self.last_arrival = now;
        self.closed = true;
    }

    pub(super) fn block(&mut self, now: u64, until: u64) {
        if self.blocked_until <= now {
            self.blocked_since = now;
        }
        self.blocked_until = self.blocked_until.max(until);
    }

    fn is_blocked(&self, now: u64) -> bool {
        now < self.blocked_until
    }

    /// Returns whether the sender's host has waited for an acknowledgement for a while;
    /// acknowledgements use the direction `back`.
    pub(super) fn is_unacknowledged(&self, now: u64, back: &Wire) -> bool {
        let oldest = self.flight.front().map(|(_, sent, _)| *sent);
        let late = oldest.is_some_and(|sent| now - sent > REPEATS_NS);
        let lacks_acknowledgements = back.is_blocked(now) && self.last_sent >= back.blocked_since;
        !self.closed
            && ((self.is_blocked(now) && late)
                || (lacks_acknowledgements && now - self.last_sent > REPEATS_NS))
    }

    /// Flips bits of a later frame, or of the payload of a later flit.
    pub(super) fn corrupt(&mut self, skip: u64, bits: u64, is_damage: bool) {
        self.corruption = Some(Corruption {
            skip,
            bits,
            is_damage,
        });
    }

    /// Returns whether a frame of an earlier round is to be sent first, and removes it.
    pub(super) fn take_late_frame(&mut self) -> bool {
        let has_late_frame = self.late > 0 && !self.closed;
        self.late -= u64::from(has_late_frame);
        has_late_frame
    }

    /// Returns when the next unit arrives, if any.
    pub(super) fn next_arrival(&self) -> Option<u64> {
        let (arrives, ..) = self.flight.front()?;
        let arrives = (*arrives).max(self.blocked_until);
        (arrives < u64::MAX).then_some(arrives)
    }

    /// Receives all units that have arrived by now; returns whether the receiver has to read.
    pub(super) fn arrive(&mut self, now: u64) -> bool {
        let mut noticed = false;
        while self.next_arrival().is_some_and(|arrives| arrives <= now) {
            let Some((_, _, parcel)) = self.flight.pop_front() else {
                break;
            };
            self.last_received_at = now;
            noticed |= !matches!(parcel, Parcel::Keepalive);
            match parcel {
                Parcel::Bytes { bytes, spoiled } => {
                    if spoiled && self.spoiled_at.is_none() {
                        self.spoiled_at = Some(self.inbox.len());
                    }
                    self.inbox.extend(bytes);
                }
                Parcel::Keepalive => {}
                Parcel::End => self.ended = true,
            }
        }
        noticed
    }

    /// Reads the next new frame, or the error of invalid bytes.
    pub(super) fn read(&mut self) -> Option<Result<Vec<u8>, WireError>> {
        loop {
            match self.reader.look() {
                Ok(Look::New) => {
                    self.take_from_buffer();
                    return Some(Ok(self.reader.body().to_vec()));
                }
                Ok(Look::Open) => return Some(Ok(self.reader.body().to_vec())),
                Ok(Look::Repeated { .. }) => {
                    self.take_from_buffer();
                    self.repeated += 1;
                }
                Ok(Look::Incomplete) if !self.inbox.is_empty() => {
                    if self.spoiled_at == Some(0) {
                        let what = "a record was changed on its way".to_owned();
                        return Some(Err(WireError::Malformed(what)));
                    }
                    let space = self.reader.space();
                    let there = self.spoiled_at.unwrap_or(self.inbox.len());
                    let read = space.len().min(there);
                    for (to, from) in space.iter_mut().zip(self.inbox.drain(..read)) {
                        *to = from;
                    }
                    self.reader.filled(read);
                    self.spoiled_at = self.spoiled_at.map(|at| at - read);
                }
                Ok(Look::Incomplete) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Frees the room of a frame that was read.
    fn take_from_buffer(&mut self) {
        self.unread_bytes -= self.unread.pop_front().unwrap_or(0);
    }

    /// Returns the received and the expected bytes of a frame that has begun and will never be
    /// complete.
    pub(super) fn torn(&self) -> Option<(usize, usize)> {
        let (got, expected) = self.reader.progress();
        (got > 0).then_some((got, expected))
    }
}
