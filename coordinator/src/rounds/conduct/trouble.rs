//! What can go wrong while rounds are conducted, and with whom.

use std::time::Duration;

use flitcast_node::channel::ChannelError;
use flitcast_node::lively::Lifeless;
use flitcast_proto::PeId;
use flitcast_proto::calibration::fit::FitError;
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::control::FromPe;
use thiserror::Error;

use crate::launch::cluster::Exit;
use crate::text::words::names;

/// What went wrong first, and with whom.
#[derive(Debug, Error)]
pub enum Trouble {
    #[error("{0} {1}{2}")]
    Died(PeId, String, String),
    #[error("{witness}: {reason}")]
    Fault {
        /// Who says so.
        witness: PeId,
        /// The neighbour that it blames.
        blamed: Option<PeId>,
        reason: String,
        /// Its input cannot be read.
        bad_input: bool,
        /// Something has come to stand where a message was to.
        output_stands: bool,
    },
    #[error(
        "--output: these are there already; move them away, or replace them with --force:\n    {}",
        .0.join("\n    ")
    )]
    OutputStands(Vec<String>),
    #[error("{0} {1}")]
    Vanished(PeId, String),
    #[error("no word from {} within {} s, {doing}", names(.silent), limit.as_secs())]
    Silent {
        silent: Vec<PeId>,
        limit: Duration,
        doing: &'static str,
    },
    #[error("{0} has been {1}")]
    Lifeless(PeId, Lifeless),
    #[error("{1}")]
    Stalled(Option<PeId>, String),
    #[error("{0}: {1}")]
    Incompatible(PeId, WireError),
    #[error("the schedule contradicts itself: {0}")]
    Schedule(#[from] flitcast_proto::pe::Violation),
    #[error("{0} said {1} out of turn")]
    OutOfTurn(PeId, String),
    #[error("{0} says it listens on `{1}`, which is no address and port")]
    NoPort(PeId, String),
    #[error("the edge to {0} could not be measured: {1}")]
    Unmeasured(PeId, FitError),
    #[error("the clock of {0} could not be compared with its parent's")]
    Timeless(PeId),
}

impl Trouble {
    /// Which kind it is, for who counts them.
    pub fn kind(&self) -> &'static str {
        match self {
            Trouble::Died(..) => "died",
            Trouble::Fault {
                bad_input: true, ..
            } => "input",
            Trouble::Fault {
                output_stands: true,
                ..
            }
            | Trouble::OutputStands(_) => "output",
            Trouble::Fault { .. } => "fault",
            Trouble::Vanished(..) => "vanished",
            Trouble::Silent { .. } | Trouble::Lifeless(..) => "silent",
            Trouble::Stalled(..) => "stalled",
            Trouble::Incompatible(..) | Trouble::OutOfTurn(..) | Trouble::NoPort(..) => "protocol",
            Trouble::Schedule(_) => "schedule",
            Trouble::Unmeasured(..) | Trouble::Timeless(_) => "measurement",
        }
    }

    /// Who is to blame, where somebody is.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            Trouble::Died(pe, ..)
            | Trouble::Vanished(pe, _)
            | Trouble::Lifeless(pe, _)
            | Trouble::Incompatible(pe, _)
            | Trouble::OutOfTurn(pe, _)
            | Trouble::NoPort(pe, _)
            | Trouble::Unmeasured(pe, _)
            | Trouble::Timeless(pe) => Some(*pe),
            Trouble::Fault {
                witness, blamed, ..
            } => Some(blamed.unwrap_or(*witness)),
            Trouble::Silent { silent, .. } => silent.first().copied(),
            Trouble::Stalled(pe, _) => *pe,
            Trouble::Schedule(_) | Trouble::OutputStands(_) => None,
        }
    }
}

impl Trouble {
    /// Whom the round could have gone on without, with the messages that are their own
    /// left out. Nobody where that would not help: input that cannot be read, an output that
    /// is not to be replaced, an edge that cannot be measured.
    pub fn culprits(&self) -> Vec<PeId> {
        match self {
            Trouble::Fault {
                bad_input,
                output_stands,
                ..
            } if *bad_input || *output_stands => Vec::new(),
            Trouble::Silent { silent, .. } => silent.clone(),
            Trouble::Died(..)
            | Trouble::Fault { .. }
            | Trouble::Vanished(..)
            | Trouble::Lifeless(..)
            | Trouble::Stalled(..)
            | Trouble::Incompatible(..)
            | Trouble::OutOfTurn(..)
            | Trouble::NoPort(..) => self.pe().into_iter().collect(),
            Trouble::OutputStands(_)
            | Trouble::Schedule(_)
            | Trouble::Unmeasured(..)
            | Trouble::Timeless(_) => Vec::new(),
        }
    }
}

/// The process of a PE has ended, having said this last.
pub fn died(pe: PeId, exit: &Exit, last_words: Vec<String>) -> Trouble {
    let said = match last_words.is_empty() {
        true => String::new(),
        false => format!("; its last words: {}", last_words.join(" / ")),
    };
    Trouble::Died(pe, exit.to_string(), said)
}

/// The channel of a PE that has joined has ended: more is not heard of its death.
pub fn gone(pe: PeId, end: Option<ChannelError>) -> Trouble {
    let how = end.map_or(
        "is gone: its channel ended without a word".to_owned(),
        |error| format!("is gone: its channel broke: {error}"),
    );
    Trouble::Vanished(pe, how)
}

/// A word that has no place now.
pub fn out_of_turn(pe: PeId, word: &FromPe) -> Trouble {
    Trouble::OutOfTurn(pe, format!("{word:?}").chars().take(100).collect())
}
