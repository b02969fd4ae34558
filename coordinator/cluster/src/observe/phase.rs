//! The phases of a run on a cluster, for display and reports.

use std::fmt;

use crate::text::units::Bytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Processes start and register.
    Launch,
    /// The PEs read their input and connect.
    Connect,
    /// Edges are measured one after the other.
    Probe,
    /// The round is planned and predicted.
    Predict,
    /// The PEs receive what they need for the rounds.
    Prepare,
    /// A round is under way.
    Round {
        /// Bytes that P0 has sent or received so far.
        moved: u64,
        /// Bytes that P0 will have sent or received at the end.
        of: u64,
    },
    /// P0 is done, and the PEs report the round.
    Report,
}

impl Phase {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the machine-readable name, and the phase as text.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Phase::Launch => ("launch", "starting the processes"),
            Phase::Connect => ("connect", "reading the input and connecting"),
            Phase::Probe => ("probe", "measuring the edges"),
            Phase::Predict => ("predict", "predicting the round"),
            Phase::Prepare => ("prepare", "preparing the rounds"),
            Phase::Round { .. } => ("round", "before the first data at P0"),
            Phase::Report => ("report", "reporting the round"),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Phase::Round { moved, of } if moved > 0 => {
                write!(f, "{} of {} moved at P0", Bytes(moved), Bytes(of))
            }
            phase => f.write_str(phase.names().1),
        }
    }
}
