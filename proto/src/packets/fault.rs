//! Why a scatter is not planned in packets.

use thiserror::Error;

use super::MAX_FLITS;
use crate::PeId;

/// What is too much for a plan, or does not fit the message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketsFault {
    /// Times of so much would leave 128 bits.
    #[error("{flits} flits together are too many to plan in packets, at most {MAX_FLITS} are")]
    Flits {
        /// How many.
        flits: u128,
    },
    /// Ways of a tree that would fill the memory.
    #[error(
        "the messages cross {hops} links together, too many to plan in packets on a tree that is \
         no path: at most {most} are"
    )]
    Hops {
        /// How many.
        hops: u64,
        /// How many there may be.
        most: u64,
    },
    /// Sizes of one message where there are others.
    #[error(
        "a count or sizes are for one nonnull message, and {0} are nonnull: leave them out, or \
         write auto"
    )]
    Several(usize),
    /// More packets than flits, or none.
    #[error(
        "{packets} packets of the {flits} flits for {pe}: 1 to {flits} packets can have a flit each"
    )]
    Count {
        /// How many packets.
        packets: u64,
        /// Of how many flits.
        flits: u64,
        /// For whom.
        pe: PeId,
    },
    /// Sizes that are not those of the message.
    #[error("the sizes have {sum} flits together, the message for {pe} has {flits}")]
    Sum {
        /// Together.
        sum: u128,
        /// What they should have.
        flits: u64,
        /// For whom.
        pe: PeId,
    },
    /// A packet without flits.
    #[error("packet {0} would be empty: a packet has 1 flit at least")]
    Empty(usize),
}
