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

/// The time that bytes take through a PE's send port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// Time from a flit's last byte in the port until the neighbour can forward it.
    pub latency: u64,
    /// Time for which a byte occupies the port.
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
        ticks_per_byte: 1.0,
        message: 0,
        flit_bytes: 1,
    };

    /// Returns the time for which `bytes` bytes occupy the port.
    pub fn ticks(&self, bytes: u64) -> u64 {
        match self.ticks_per_byte {
            // Exact for any length.
            1.0 => bytes,
            ticks => (ticks * bytes as f64).round() as u64,
        }
    }

    /// Returns the time for which a message does; 0 for a null one.
    pub fn message(&self, bytes: u64) -> u64 {
        match bytes {
            0 => 0,
            _ => self.ticks(bytes).saturating_add(self.message),
        }
    }

    /// Returns the time from the start of a stream until the neighbour can forward its first flit, if
    /// `first` is the length of its first message; 0 if that is unknown.
    pub fn first_flit(&self, first: u64) -> u64 {
        let full = u64::from(self.flit_bytes);
        let flit = if first == 0 { full } else { first.min(full) };
        self.latency.saturating_add(self.ticks(flit))
    }
}

/// The times on the edge to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildPace {
    /// Time from a control item's begin at the send port until the child has it.
    pub reach: u64,
    /// Time from the start of the child's stream until its first flit can be forwarded.
    pub back: u64,
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
