//! Errors of plans in packets.

use flitcast_proto::PeId;
use thiserror::Error;

use super::MAX_FLITS;

/// A reason why messages cannot be planned in packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketPlanError {
    /// A number of flits whose times would exceed 128 bits.
    #[error("{flits} flits are too many to plan in packets; the limit is {MAX_FLITS}")]
    Flits {
        /// The number of flits.
        flits: u128,
    },
    /// A tree whose paths would fill the memory.
    #[error(
        "the messages cross {hops} links together, too many to plan in packets on a tree that is \
         no path: at most {most} are"
    )]
    Hops {
        /// The number of links.
        hops: u64,
        /// The limit.
        most: u64,
    },
    /// Sizes for one message, although there are several.
    #[error(
        "sizes are for one nonnull message, and {0} are nonnull: give a COUNT for all of them, or \
         sequence:PExFLITS,.."
    )]
    Several(usize),
    /// A packet for a PE that does not exist, or for the source itself.
    #[error("the sequence has a packet for {0}, which gets nothing from P0 on this tree")]
    Nobody(PeId),
    /// A packet with messages for PEs that are not on one path.
    #[error(
        "a packet of the sequence is for {farther} and {nearer}: name the farthest PE first, and \
         then only PEs on the way to it"
    )]
    Apart {
        /// The PE that is named first.
        farther: PeId,
        /// The PE that is not on the way to it.
        nearer: PeId,
    },
    /// A number of packets that is 0 or exceeds the number of flits.
    #[error(
        "{packets} packets of the {flits} flits for {pe}: 1 to {flits} packets can have a flit each"
    )]
    Count {
        /// The number of packets.
        packets: u64,
        /// The number of flits.
        flits: u64,
        /// The destination.
        pe: PeId,
    },
    /// Packets whose sum differs from the message's length.
    #[error("the packets for {pe} have {sum} flits together, its message has {flits}")]
    Sum {
        /// The sum.
        sum: u128,
        /// The length of the message.
        flits: u64,
        /// The destination.
        pe: PeId,
    },
    /// A packet without flits.
    #[error("packet {0} would be empty: a packet has 1 flit at least")]
    Empty(usize),
}
