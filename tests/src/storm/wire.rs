//! One direction of an edge, as TCP carries it: bytes in order, late or never, in
//! buffers that fill up. What happens when is `world.rs`'s to say.

use std::collections::VecDeque;

use flitcast_proto::cost::Link;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::Sealer;
use flitcast_proto::wire::{LENGTH_BYTES, WireError, flit};

/// After so long without an acknowledgement a host has sent again more than once.
const REPEATS_NS: u64 = 700_000_000;

/// What crosses.
#[derive(Debug)]
enum Parcel {
    Bytes {
        bytes: Vec<u8>,
        /// On an authenticated connection: its record fails its check.
        spoiled: bool,
    },
    /// A heartbeat: it takes no room, and is noticed whether the receiver reads or not.
    Life,
    /// Nothing comes behind this.
    End,
}

/// Bits that are to flip in a frame to come.
#[derive(Debug)]
struct Corruption {
    skip: u64,
    bits: u64,
}

/// One direction of an edge.
#[derive(Debug)]
pub(super) struct Wire {
    link: Link,
    /// When all that was handed over has left the port, in nanoseconds with fractions,
    /// so that rates are exact over many frames.
    port_free: f64,
    /// The same for control frames, which slip in between the packets of a flit.
    slipped: f64,
    /// What is on its way, with its arrival and its departure, and the last arrival.
    flight: VecDeque<(u64, u64, Parcel)>,
    last_arrival: u64,
    /// When bytes were handed over last.
    last_sent: u64,
    /// What has arrived and was not read.
    inbox: Vec<u8>,
    /// Whether records are checked, and where in the inbox the first one begins that
    /// fails.
    authenticated: bool,
    spoiled_at: Option<usize>,
    /// Of each frame between its sender's write and its receiver's read, the bytes that it
    /// counts for.
    unread: VecDeque<u64>,
    /// The sum of what they count for.
    unread_bytes: u64,
    /// When the receiver's host last heard anything.
    heard: u64,
    /// Nothing more can be sent.
    closed: bool,
    /// The receiver has seen the end.
    ended: bool,
    /// Nothing arrives in this time.
    blocked_since: u64,
    blocked_until: u64,
    /// Until when everything takes so much longer.
    delay: (u64, u64),
    duplicate_percent: u64,
    corruption: Option<Corruption>,
    /// Frames of an earlier round that are to go ahead of the next item.
    late: u64,
    /// The sender's seals, and what the receiver has read.
    sealer: Sealer,
    pub(super) reader: FrameReader,
    /// Frames that had come before.
    pub(super) repeated: u64,
    /// When the receiver's host looks at the wire next.
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
            heard: 0,
            closed: false,
            ended: false,
            blocked_since: 0,
            blocked_until: 0,
            delay: (0, 0),
            duplicate_percent: 0,
            corruption: None,
            late: 0,
            sealer: Sealer::default(),
            reader: FrameReader::new(max_frame),
            repeated: 0,
            looked_at: u64::MAX,
        }
    }

    /// Whether a flit that counts for so many bytes can be handed over.
    pub(super) fn has_room(&self, counts: u64, buffer_bytes: u64) -> bool {
        self.unread_bytes == 0 || self.unread_bytes.saturating_add(counts) <= buffer_bytes
    }

    /// A frame is handed over. Returns how many copies go.
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
        let mut frame = self.sealer.sealed(frame);
        let spoiled = self.corrupt_frame(&mut frame, chance);
        let passes = |wire: &mut Wire| match is_flit {
            true => wire.pass_port(now, counts),
            false => wire.slip_in(now, counts),
        };
        let twice = self.duplicate_percent > 0 && chance.below(100) < self.duplicate_percent;
        if twice {
            let departs = passes(self);
            self.hand_over(now, departs, frame.clone(), spoiled, counts);
        }
        let departs = passes(self);
        self.hand_over(now, departs, frame, spoiled, counts);
        1 + u64::from(twice)
    }

    /// Flips the bits that are to flip, if it is this frame's turn. Returns whether its
    /// record fails its check.
    fn corrupt_frame(&mut self, frame: &mut [u8], chance: &mut SplitMix64) -> bool {
        let Some(corruption) = &mut self.corruption else {
            return false;
        };
        if corruption.skip > 0 {
            corruption.skip -= 1;
            return false;
        }
        // Payload stands last, and only its digest tells of it: half of them are to hit that.
        let spared = frame.len() / 2 * chance.below(2) as usize;
        let hit = &mut frame[spared..];
        for _ in 0..corruption.bits {
            let bit = chance.below(8 * hit.len() as u64);
            hit[bit as usize / 8] ^= 1 << (bit % 8);
        }
        self.corruption = None;
        self.authenticated
    }

    /// When a flit has left the port.
    fn pass_port(&mut self, now: u64, counts: u64) -> f64 {
        self.port_free = self.port_free.max(now as f64) + self.link.ns_per_byte * counts as f64;
        self.port_free
    }

    /// When a control frame has, by which everything else is later.
    fn slip_in(&mut self, now: u64, counts: u64) -> f64 {
        self.pass_port(now, counts);
        self.slipped = self.slipped.max(now as f64) + self.link.ns_per_byte * counts as f64;
        self.slipped
    }

    fn hand_over(&mut self, now: u64, departs: f64, bytes: Vec<u8>, spoiled: bool, counts: u64) {
        let arrives = (departs + self.link.latency_ns).round() as u64;
        self.unread.push_back(counts);
        self.last_sent = now;
        self.unread_bytes += counts;
        self.launch(now, arrives, Parcel::Bytes { bytes, spoiled });
    }

    fn launch(&mut self, now: u64, arrives: u64, parcel: Parcel) {
        let (until, by) = self.delay;
        let arrives = arrives + if now < until { by } else { 0 };
        self.last_arrival = self.last_arrival.max(arrives);
        self.flight.push_back((self.last_arrival, now, parcel));
    }

    /// The sender's host gives a sign of life.
    pub(super) fn beat(&mut self, now: u64) {
        if !self.closed {
            self.launch(now, now + self.link.latency_ns as u64, Parcel::Life);
        }
    }

    /// The sender closes: what was handed over still arrives.
    pub(super) fn close(&mut self, now: u64) {
        if !self.closed {
            self.launch(now, now + self.link.latency_ns as u64, Parcel::End);
            self.closed = true;
        }
    }

    /// The connection breaks: of what is on its way, the first frame arrives at most, and
    /// rarely whole.
    pub(super) fn cut(&mut self, now: u64, chance: &mut SplitMix64) {
        let first = self
            .flight
            .drain(..)
            .find_map(|(_, _, parcel)| match parcel {
                Parcel::Bytes { bytes, spoiled } => Some((bytes, spoiled)),
                Parcel::Life | Parcel::End => None,
            });
        if let Some((mut bytes, spoiled)) = first {
            bytes.truncate(chance.below(bytes.len() as u64 + 1) as usize);
            let parcel = Parcel::Bytes { bytes, spoiled };
            self.flight.push_back((now, now, parcel));
        }
        self.flight.push_back((now, now, Parcel::End));
        self.last_arrival = now;
        self.closed = true;
    }

    /// The sender's host is gone.
    pub(super) fn fall_silent(&mut self) {
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

    /// Whether the sender's host has waited for a while for what it sent to be acknowledged;
    /// acknowledgements take the way `back`.
    pub(super) fn is_unacknowledged(&self, now: u64, back: &Wire) -> bool {
        let oldest = self.flight.front().map(|(_, sent, _)| *sent);
        let late = oldest.is_some_and(|sent| now - sent > REPEATS_NS);
        let unheard = back.is_blocked(now) && self.last_sent >= back.blocked_since;
        !self.closed
            && ((self.is_blocked(now) && late) || (unheard && now - self.last_sent > REPEATS_NS))
    }

    pub(super) fn delay(&mut self, until: u64, by: u64) {
        self.delay = (until, by);
    }

    pub(super) fn duplicate(&mut self, percent: u64) {
        self.duplicate_percent = percent;
    }

    pub(super) fn corrupt(&mut self, skip: u64, bits: u64) {
        self.corruption = Some(Corruption { skip, bits });
    }

    pub(super) fn owe_late_frame(&mut self) {
        self.late += 1;
    }

    /// Whether a frame of an earlier round is to go first.
    pub(super) fn take_late_frame(&mut self) -> bool {
        let owed = self.late > 0 && !self.closed;
        self.late -= u64::from(owed);
        owed
    }

    /// When something arrives next, if ever.
    pub(super) fn next_arrival(&self) -> Option<u64> {
        let (arrives, ..) = self.flight.front()?;
        let arrives = (*arrives).max(self.blocked_until);
        (arrives < u64::MAX).then_some(arrives)
    }

    /// Takes in what has arrived by now; whether the receiver is to look at it.
    pub(super) fn arrive(&mut self, now: u64) -> bool {
        let mut noticed = false;
        while self.next_arrival().is_some_and(|arrives| arrives <= now) {
            let Some((_, _, parcel)) = self.flight.pop_front() else {
                break;
            };
            self.heard = now;
            noticed |= !matches!(parcel, Parcel::Life);
            match parcel {
                Parcel::Bytes { bytes, spoiled } => {
                    if spoiled && self.spoiled_at.is_none() {
                        self.spoiled_at = Some(self.inbox.len());
                    }
                    self.inbox.extend(bytes);
                }
                Parcel::Life => {}
                Parcel::End => self.ended = true,
            }
        }
        noticed
    }

    /// When the receiver's host last heard anything.
    pub(super) fn heard(&self) -> u64 {
        self.heard
    }

    /// Whether the receiver has seen the end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads the new frame that has come, or what can never be one.
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

    /// A frame was read: there is room for others.
    fn take_from_buffer(&mut self) {
        self.unread_bytes -= self.unread.pop_front().unwrap_or(0);
    }

    /// Of a frame that has begun and will never be whole: bytes that came, and all.
    pub(super) fn torn(&self) -> Option<(usize, usize)> {
        let (got, expected) = self.reader.progress();
        (got > 0).then_some((got, expected))
    }
}
