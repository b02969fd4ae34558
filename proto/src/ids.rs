//! Names of things: PEs, rounds, messages, deliveries, points in time.

use std::fmt;

/// The index of a PE in its tree; `PeId(0)`, written P0, is the root of every tree in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeId(pub u32);

impl PeId {
    /// P0: the source of a scatter, the destination of a gather.
    pub const ROOT: PeId = PeId(0);

    /// Returns the PE's place in arrays that hold one element per PE.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "P{}", self.0)
    }
}

/// The number of a round; a cluster counts its rounds from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoundId(pub u64);

impl fmt::Display for RoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of a message in its round. In a scatter and a gather it is the number of the PE: i
/// for M_i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl MessageId {
    /// Returns the message's place in arrays that hold one element per message.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the PE that the message is named after, in a scatter or a gather.
    pub fn pe(self) -> PeId {
        PeId(self.0 as u32)
    }
}

impl From<PeId> for MessageId {
    fn from(pe: PeId) -> MessageId {
        MessageId(pe.0.into())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "M_{}", self.0)
    }
}

/// The number of a delivery: a message at one of the PEs at which it ends. The collective defines
/// the numbers and the names for users ([`Collective::delivery`](crate::ops::Collective::delivery)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u32);

impl DeliveryId {
    /// Returns the delivery's place in arrays that hold one element per delivery.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of a delivery for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryName {
    /// The PE whose row of a report contains the delivery: the end that is not the root, or else
    /// the destination.
    pub row: PeId,
    /// The source, if any two PEs may be the ends of a message.
    pub source: Option<PeId>,
}

/// `P3`, or `P2's at P5`.
impl fmt::Display for DeliveryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            None => self.row.fmt(f),
            Some(source) => write!(f, "{source}'s at {}", self.row),
        }
    }
}

/// A point in time, in nanoseconds from an origin that the caller chooses: a
/// driver passes its monotonic clock, the simulator its step counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);
