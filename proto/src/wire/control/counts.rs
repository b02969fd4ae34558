//! The counts of a PE, to and from protobuf.

use crate::wire::codec::{Wire, ensure, record};
use crate::wire::pb::pong::Doing as Code;
use crate::wire::{MAX_COUNTED_EDGES, WireError, pb};
use crate::{PeId, Unkept};

/// Counts of a PE in the rounds of its assignment. They do not decrease, except for current values
/// and those of the latest round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts of each neighbour, the parent first; at most [`MAX_COUNTED_EDGES`].
    pub edges: Vec<EdgeCounts>,
    pub rounds_begun: u64,
    /// Number of rounds in which the PE has completed its part.
    pub rounds_done: u64,
    /// Number of flits that had to wait for a busy port.
    pub collisions: u64,
    /// Number of frames of earlier rounds, which were dropped.
    pub late_frames: u64,
    /// Number of frames received before on the same edge, which were dropped.
    pub repeated_frames: u64,
    /// Current number of flits of other PEs' messages in user memory.
    pub buffered_flits: u64,
    /// Maximum of `buffered_flits` so far.
    pub peak_buffered_flits: u64,
    /// Payload bytes in the latest round: of the PE's own messages that were sent, and of messages
    /// for it that were delivered.
    pub moved_bytes: u64,
    /// Number of own messages with a scheduled start.
    pub slips: u64,
    /// Sum of the delays of those starts, in nanoseconds.
    pub slip_ns: u64,
    /// Current resident set of the process in bytes.
    pub resident_bytes: u64,
    /// In the latest round: entries of delivered messages some of whose attributes could not be set.
    pub unkept: Unkept,
}

/// Numbers of frames on an edge at one end, except for those that measure the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCounts {
    /// The PE at the other end.
    pub peer: PeId,
    /// Bytes of received frames, with their lengths and seals.
    pub received_bytes: u64,
    /// Bytes of sent frames, with their lengths and seals.
    pub sent_bytes: u64,
    pub received_flits: u64,
    pub sent_flits: u64,
}

impl Counts {
    /// Adds counts that began at 0 behind these, for example in a later cluster.
    pub fn add(&mut self, later: &Counts) {
        for edge in &later.edges {
            match self.edges.iter_mut().find(|known| known.peer == edge.peer) {
                Some(known) => known.add(edge),
                None => self.edges.push(*edge),
            }
        }
        self.rounds_begun += later.rounds_begun;
        self.rounds_done += later.rounds_done;
        self.collisions += later.collisions;
        self.late_frames += later.late_frames;
        self.repeated_frames += later.repeated_frames;
        self.buffered_flits = later.buffered_flits;
        self.peak_buffered_flits = self.peak_buffered_flits.max(later.peak_buffered_flits);
        self.moved_bytes = later.moved_bytes;
        self.slips += later.slips;
        self.slip_ns += later.slip_ns;
        self.resident_bytes = later.resident_bytes;
        self.unkept = later.unkept;
    }
}

impl EdgeCounts {
    fn add(&mut self, later: &EdgeCounts) {
        self.received_bytes += later.received_bytes;
        self.sent_bytes += later.sent_bytes;
        self.received_flits += later.received_flits;
        self.sent_flits += later.sent_flits;
    }
}

record! {
    Counts = Counts {
        edges, rounds_begun, rounds_done, collisions, late_frames, repeated_frames, buffered_flits,
        peak_buffered_flits, moved_bytes, slips, slip_ns, resident_bytes,
    }
    put counts { unkept: put_unkept(counts.unkept) }
    parse counts { unkept: Wire::parse(counts.unkept.unwrap_or_default())? },
    |counts: &Counts| {
        let edges = counts.edges.len();
        ensure(edges <= MAX_COUNTED_EDGES, format_args!("counts of {edges} edges"))
    }
}
record! { Unkept = Unkept { hard_links, special_modes, owners, extended } }
record! { EdgeCounts = EdgeCounts { peer, received_bytes, sent_bytes, received_flits, sent_flits } }

/// Encodes counts; `None` if all are 0.
pub(super) fn put_counts(counts: &Counts) -> Option<pb::Counts> {
    (*counts != Counts::default()).then(|| counts.put())
}

/// Encodes numbers of entries; `None` if all are 0.
pub(super) fn put_unkept(unkept: Unkept) -> Option<pb::Unkept> {
    (unkept != Unkept::default()).then(|| unkept.put())
}

pub(super) fn parse_counts(counts: Option<pb::Counts>) -> Result<Counts, WireError> {
    Wire::parse(counts.unwrap_or_default())
}

/// Sign of life of a PE, with its current activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Time since the PE last read a byte from an edge or wrote one to it.
    pub quiet_ms: u64,
    /// Time since the PE last finished an entry of a message on its disk, or found one there to
    /// send.
    pub files_quiet_ms: u64,
    pub doing: Doing,
    /// Neighbours whose hosts do not acknowledge retransmitted data; empty unless requested.
    pub unreached: Vec<PeId>,
    pub counts: Counts,
}

/// Activity of a PE, as far as it concerns other PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// There is no round, or the PE's part of it has ended.
    Idle,
    /// The PE is working, or waits for its disk or for a time.
    Working,
    /// The PE waits until this neighbour accepts bytes.
    Sending(PeId),
    /// The PE waits for the rest of a message from this neighbour.
    Receiving(PeId),
    /// The PE waits for the next message of any neighbour.
    Listening,
}

impl Doing {
    /// Returns the activity as a number and a PE; the PE is P0 if the activity concerns none.
    #[inline]
    pub fn code(self) -> (i32, PeId) {
        let (code, peer) = match self {
            Doing::Idle => (Code::Idle, PeId::ROOT),
            Doing::Working => (Code::Working, PeId::ROOT),
            Doing::Sending(to) => (Code::Sending, to),
            Doing::Receiving(from) => (Code::Receiving, from),
            Doing::Listening => (Code::Listening, PeId::ROOT),
        };
        (code.into(), peer)
    }

    /// Returns the activity with this number and PE, if there is one: the inverse of [`Doing::code`].
    #[inline]
    pub fn of(code: i32, peer: PeId) -> Option<Doing> {
        Some(match Code::try_from(code).ok()? {
            Code::Idle => Doing::Idle,
            Code::Working => Doing::Working,
            Code::Sending => Doing::Sending(peer),
            Code::Receiving => Doing::Receiving(peer),
            Code::Listening => Doing::Listening,
        })
    }
}

record! {
    Pong = Pong { quiet_ms, files_quiet_ms, unreached }
    put pong {
        doing: pong.doing.code().0,
        peer: pong.doing.code().1.0,
        counts: put_counts(&pong.counts),
    }
    parse pong {
        doing: Doing::of(pong.doing, PeId(pong.peer)).ok_or_else(|| {
            WireError::malformed(format!("{} is nothing a PE does", pong.doing))
        })?,
        counts: parse_counts(pong.counts)?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_no_more_than_a_process_has() {
        let of = |edges| pb::Counts {
            edges: vec![pb::EdgeCounts::default(); edges],
            ..Default::default()
        };
        let most = parse_counts(Some(of(MAX_COUNTED_EDGES))).map(|counts| counts.edges.len());
        assert_eq!(most, Ok(MAX_COUNTED_EDGES));
        let refused = parse_counts(Some(of(MAX_COUNTED_EDGES + 1))).expect_err("one more");
        assert!(refused.to_string().contains("65537 edges"), "{refused}");
    }
}
