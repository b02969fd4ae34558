//! What can go wrong while rounds are conducted, and with whom.

use std::time::Duration;

use flitcast_node::lively::Lifeless;
use flitcast_proto::PeId;
use flitcast_proto::calibration::fit::FitError;
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::control::FromPe;
use thiserror::Error;

use crate::text::words::names;

/// What went wrong first, and with whom.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The process of a PE has ended so, having said this last.
    #[error("{0} {1}{2}")]
    Died(PeId, String, String),
    /// A PE cannot go on.
    #[error("{witness}: {reason}")]
    Fault {
        /// Who says so.
        witness: PeId,
        /// The neighbour that it blames.
        blamed: Option<PeId>,
        /// Why.
        reason: String,
        /// Its input cannot be read.
        bad_input: bool,
        /// Something has come to stand where a message was to.
        output_stands: bool,
        /// Whom it blames has ended the connection, and may know better why.
        hung_up: bool,
    },
    /// These stand where messages are to arrive, and are not to be replaced.
    #[error(
        "--output: these are there already; move them away, or replace them with --force:\n    {}",
        .0.join("\n    ")
    )]
    OutputStands(Vec<String>),
    /// A PE is not heard any more, and nobody knows more than that.
    #[error("{0} {1}")]
    Vanished(PeId, String),
    /// Some have not answered in time.
    #[error("no word from {} within {} s, {doing}", names(.silent), limit.as_secs())]
    Silent {
        /// Who.
        silent: Vec<PeId>,
        /// How long they could have.
        limit: Duration,
        /// What they were doing.
        doing: &'static str,
    },
    /// The channel of a PE shows no life.
    #[error("{0} has been {1}")]
    Lifeless(PeId, Lifeless),
    /// The round stands still, by whose fault may be known.
    #[error("{1}")]
    Stalled(Option<PeId>, String),
    /// A PE speaks no version of the protocol that is spoken here.
    #[error("{0}: {1}")]
    Incompatible(PeId, WireError),
    /// A state machine refuses the schedule.
    #[error("the schedule contradicts itself: {0}")]
    Schedule(#[from] flitcast_proto::round::RoundFault),
    /// A PE has said what it was not asked for.
    #[error("{0} said {1} out of turn")]
    OutOfTurn(PeId, String),
    /// A PE listens nowhere.
    #[error("{0} says it listens on `{1}`, which is no address and port")]
    NoPort(PeId, String),
    /// What was exchanged over an edge fits no link.
    #[error("the edge to {0} could not be measured: {1}")]
    Unmeasured(PeId, FitError),
    /// What was exchanged tells nothing of how far two clocks are apart.
    #[error("the clock of {0} could not be compared with its parent's")]
    ClockNotComparable(PeId),
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
            Trouble::Unmeasured(..) | Trouble::ClockNotComparable(_) => "measurement",
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
            | Trouble::ClockNotComparable(pe) => Some(*pe),
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
            | Trouble::ClockNotComparable(_) => Vec::new(),
        }
    }
}

/// How a PE is lost, or its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its process has ended.
    Exited {
        /// How, as it is said of the PE.
        how: String,
        /// What it said on stderr last.
        last_words: Vec<String>,
    },
    /// Its channel has shown no life for too long.
    Lifeless(Lifeless),
    /// Its channel has broken, for this reason.
    Broken(String),
    /// Its channel was closed without a word.
    Closed,
}

/// The process of a PE has ended, having said this last.
pub fn died(pe: PeId, how: String, last_words: &[String]) -> Trouble {
    let said = match last_words.is_empty() {
        true => String::new(),
        false => format!("; its last words: {}", last_words.join(" / ")),
    };
    Trouble::Died(pe, how, said)
}

/// The channel of a PE that has joined has ended: more is not heard of its death.
pub fn gone(pe: PeId, lost: Lost) -> Trouble {
    let broke = |why: String| format!("is gone: its channel broke: {why}");
    match lost {
        Lost::Exited { how, last_words } => died(pe, how, &last_words),
        Lost::Lifeless(lifeless) => Trouble::Vanished(pe, broke(lifeless.to_string())),
        Lost::Broken(why) => Trouble::Vanished(pe, broke(why)),
        Lost::Closed => {
            Trouble::Vanished(pe, "is gone: its channel ended without a word".to_owned())
        }
    }
}

/// A word that has no place now.
pub fn out_of_turn(pe: PeId, word: &FromPe) -> Trouble {
    Trouble::OutOfTurn(pe, format!("{word:?}").chars().take(100).collect())
}
