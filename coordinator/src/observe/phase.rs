//! What a command is doing on its cluster: the steps of a run, for whoever shows or reports them.

use std::fmt;

use crate::text::units::Bytes;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Processes are started and register.
    Launch,
    /// The PEs read their input and connect.
    Connect,
    /// Edges are measured, one after the other.
    Probe,
    /// The PEs are told what the rounds need.
    Prepare,
    /// A round is under way.
    Round {
        /// Bytes that P0 has sent or received.
        moved: u64,
        /// How many bytes there are to be.
        of: u64,
    },
    /// P0 is done, and the others tell how it was.
    Report,
}

impl Phase {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Launch => "launch",
            Phase::Connect => "connect",
            Phase::Probe => "probe",
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
            Phase::Prepare => f.write_str("preparing the rounds"),
            Phase::Round { moved: 0, .. } => f.write_str("before the first data at P0"),
            Phase::Round { moved, of } => {
                write!(f, "{} of {} moved at P0", Bytes(moved), Bytes(of))
            }
            Phase::Report => f.write_str("reporting the round"),
        }
    }
}
