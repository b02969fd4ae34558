//! Why a round cannot go on, as far as the protocol says so.

use std::fmt::Debug;

use thiserror::Error;

use crate::items::{Message, Violation};
use crate::wire::WireError;
use crate::{PeId, RoundId};

/// Of what a neighbour sent, so many characters are told.
const LONGEST: usize = 160;

/// What came breaks the protocol, or a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoundFault {
    /// Bytes that are no frame.
    #[error("from {from}: {error}")]
    Wire {
        /// The neighbour.
        from: PeId,
        /// What is wrong with them.
        error: WireError,
    },
    /// A neighbour broke the protocol.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A frame that has no place in this round.
    #[error("{from} sent {what} in round {round}")]
    OutOfPlace {
        /// The neighbour.
        from: PeId,
        /// What it sent.
        what: String,
        /// The round.
        round: RoundId,
    },
    /// A message is not what its source sent.
    #[error("the message of {} is damaged: {what}", message.pe())]
    Damaged {
        /// Which message.
        message: Message,
        /// How that shows.
        what: String,
    },
}

impl RoundFault {
    pub(super) fn out_of_place(from: PeId, what: &dyn Debug, round: RoundId) -> RoundFault {
        let what = format!("{what:?}").chars().take(LONGEST).collect();
        RoundFault::OutOfPlace { from, what, round }
    }

    /// Which kind of fault it is, for who counts them.
    pub fn kind(&self) -> &'static str {
        match self {
            RoundFault::Wire { .. } => "neighbour",
            RoundFault::Violation(_) | RoundFault::OutOfPlace { .. } => "protocol",
            RoundFault::Damaged { .. } => "damaged",
        }
    }

    /// The neighbour that is blamed for it.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            RoundFault::Wire { from, .. } | RoundFault::OutOfPlace { from, .. } => Some(*from),
            RoundFault::Violation(_) | RoundFault::Damaged { .. } => None,
        }
    }
}
