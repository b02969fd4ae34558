//! The phases of a run on a cluster, for display and reports.

use std::fmt;

use crate::text::units::Bytes;

/// A phase of a run.
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
        match self {
            Phase::Launch => "launch",
            Phase::Connect => "connect",
            Phase::Probe => "probe",
            Phase::Predict => "predict",
            Phase::Prepare => "prepare",
            Phase::Round { .. } => "round",
            Phase::Report => "report",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Phase::Launch => f.write_str("starting the processes"),
            Phase::Connect => f.write_str("reading the input and connecting"),
            Phase::Probe => f.write_str("measuring the edges"),
            Phase::Predict => f.write_str("predicting the round"),
            Phase::Prepare => f.write_str("preparing the rounds"),
            Phase::Round { moved: 0, .. } => f.write_str("before the first data at P0"),
            Phase::Round { moved, of } => {
                write!(f, "{} of {} moved at P0", Bytes(moved), Bytes(of))
            }
            Phase::Report => f.write_str("reporting the round"),
        }
    }
}
