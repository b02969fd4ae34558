//! The length of a tick: a step of the papers' model, or a nanosecond of real links.
//!
//! The rules of the gathers are the same in both (spec, section 7). Only the times of a control item, a
//! first flit and a stream differ, and this module defines them.

/// The ways to obey TRANSMIT AFTER (spec, section 7, "Clock or turns").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pacing {
    /// Clock-based: orders are sent at once and carry the time to wait.
    #[default]
    Scheduled,
    /// In turns: an order is sent when the rest of the current stream takes about as long as the next
    /// one needs to arrive. In static schedules receivers request data likewise.
    Turns,
    /// At once, all of them: streams wait in the network for their slots.
    Eager,
}

/// The packets of a stream; each carries one flit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packets {
    /// Bytes of all packets; in the papers' model a flit has one.
    pub bytes: u64,
    pub count: u64,
    /// Bytes of the first packet.
    pub first: u64,
    /// Bytes of the largest packet.
    pub largest: u64,
}

impl Packets {
    /// Returns the packets of a message: full ones of `flit_bytes` bytes, and one with the rest.
    pub fn of(bytes: u64, flit_bytes: u32) -> Packets {
        let full = u64::from(flit_bytes.max(1));
        let first = bytes.min(full);
        Packets {
            bytes,
            count: bytes.div_ceil(full),
            first,
            largest: first,
        }
    }

    /// Returns these packets and `later` ones after them.
    pub fn then(self, later: Packets) -> Packets {
        Packets {
            bytes: self.bytes.saturating_add(later.bytes),
            count: self.count.saturating_add(later.count),
            first: if self.bytes > 0 {
                self.first
            } else {
                later.first
            },
            largest: self.largest.max(later.largest),
        }
    }
}

/// The time that packets take through a PE's send port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// Time from a packet's last byte in the port until the neighbour can forward it.
    pub latency: u64,
    /// Time for which a packet occupies the port in addition to its bytes: the set-up time.
    pub ticks_per_packet: f64,
    /// Time for which a byte does.
    pub ticks_per_byte: f64,
    /// Time for which a message does in addition, whatever its length.
    pub message: u64,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
}

impl Passage {
    /// Flits of one byte, a tick each.
    pub const LOCK_STEP: Passage = Passage {
        latency: 0,
        ticks_per_packet: 0.0,
        ticks_per_byte: 1.0,
        message: 0,
        flit_bytes: 1,
    };

    /// Returns the time for which `count` packets with `bytes` bytes in all occupy the port.
    fn ticks(&self, count: u64, bytes: u64) -> u64 {
        match (self.ticks_per_packet, self.ticks_per_byte) {
            // Exact for any length.
            (0.0, 1.0) => bytes,
            (packet, byte) => (packet * count as f64 + byte * bytes as f64).round() as u64,
        }
    }

    /// Returns the time for which a packet of `bytes` bytes occupies the port.
    pub fn packet(&self, bytes: u64) -> u64 {
        self.ticks(1, bytes)
    }

    /// Returns the time for which a stream occupies the port.
    pub fn stream(&self, packets: Packets) -> u64 {
        self.ticks(packets.count, packets.bytes)
    }

    /// Returns the time for which a message of these packets occupies the port; 0 for a null one.
    pub fn message(&self, packets: Packets) -> u64 {
        match packets.bytes {
            0 => 0,
            _ => self.stream(packets).saturating_add(self.message),
        }
    }

    /// Returns the time by which packets take longer here than on `other`: a longer set-up time and a lower
    /// rate each count, and the opposite of one does not make up for the other.
    pub fn slower(&self, other: &Passage, packets: Packets) -> u64 {
        let packet = (self.ticks_per_packet - other.ticks_per_packet).max(0.0);
        let byte = (self.ticks_per_byte - other.ticks_per_byte).max(0.0);
        (packet * packets.count as f64 + byte * packets.bytes as f64).round() as u64
    }

    /// Returns the time for which a byte of full packets occupies the port, the set-up time included.
    pub fn full_ticks_per_byte(&self) -> f64 {
        self.ticks_per_byte + self.ticks_per_packet / f64::from(self.flit_bytes.max(1))
    }

    /// Returns the time from the start of a stream until the neighbour can forward its first packet, of
    /// `first` bytes; 0 if that is unknown.
    pub fn first_packet(&self, first: u64) -> u64 {
        let first = if first == 0 {
            self.flit_bytes.into()
        } else {
            first
        };
        self.latency.saturating_add(self.packet(first))
    }
}

/// The times on the edge to a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildPace {
    /// Time from a control item's begin at the send port until the child has it.
    pub reach: u64,
    /// The way back, of the child's stream.
    pub up: Passage,
}

/// The times on a PE's edges, in ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The way in which orders are obeyed.
    pub pacing: Pacing,
    /// Whether the papers' model applies, in which each item is sent in its step. On real links a
    /// certificate is sent when all of its children's have arrived, since a few bytes in a socket
    /// collide with nothing.
    pub lock_step: bool,
    /// Time for which a control item occupies the send port.
    pub control: u64,
    /// The edge to the parent; unused at P0.
    pub up: Passage,
    /// The edges to the children, in index order.
    pub below: Vec<ChildPace>,
    /// For static schedules in turns: time for which a byte occupies the PE's port.
    pub port_ticks_per_byte: f64,
    /// For static schedules in turns: payload that the port carries between a request for data and the
    /// first byte of the answer, whatever the sender.
    pub ahead_bytes: u64,
}
