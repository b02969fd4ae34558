//! The roles that PEs can have in a round.

use super::collective::Collective;
use crate::schedule::certification::Sync;

/// The rules by which a PE decides what it sends and what it does with what arrives.
///
/// Planners choose the messages, their order and the crossings; the role of a PE does not depend on the
/// algorithm that has chosen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeRole {
    /// Scatter: the root sends messages in the given order, and the other PEs relay them.
    Scatter,
    /// Gather by Shoulder-Tap; the tree must be a path.
    ShoulderTap,
    /// Gather by Transmission-Certification.
    Certification(Sync),
    /// Gather on a star: the root requests one message after the other, `window` at most at a time.
    Linear {
        /// At least 1.
        window: u32,
    },
    /// Scatter or gather: a PE holds all messages of its subtree before it forwards them.
    Combining,
    /// Broadcast: a PE forwards each flit to one child after the other.
    FlitByFlit,
    /// Any collective but a gather: a PE executes a list of crossings.
    StaticSchedule,
}

impl PeRole {
    pub fn serves(self, collective: Collective) -> bool {
        match self {
            PeRole::Scatter => collective == Collective::Scatter,
            PeRole::ShoulderTap | PeRole::Certification(_) | PeRole::Linear { .. } => {
                collective == Collective::Gather
            }
            PeRole::Combining => matches!(collective, Collective::Scatter | Collective::Gather),
            PeRole::FlitByFlit => collective == Collective::Broadcast,
            PeRole::StaticSchedule => collective != Collective::Gather,
        }
    }

    /// Returns the phase of the round for error messages: "in a scatter".
    pub(super) fn phase(self) -> &'static str {
        match self {
            PeRole::Scatter => "in a scatter",
            PeRole::ShoulderTap => "in a Shoulder-Tap gather",
            PeRole::Certification(_) => "in this phase of a Transmission-Certification gather",
            PeRole::Linear { .. } => "in a linear gather",
            PeRole::Combining => "in a combining round",
            PeRole::FlitByFlit => "in a broadcast",
            PeRole::StaticSchedule => "in a round by a list",
        }
    }

    /// Returns whether a PE has a separate port for the control items of each neighbour.
    pub fn has_control_ports(self) -> bool {
        matches!(
            self,
            PeRole::Certification(Sync::Parallel | Sync::MultiPort)
        )
    }
}
