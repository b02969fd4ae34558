//! Intended errors in a simulation, to check that it detects them.

/// An intended error. The script `tests/mistakes.sh` inserts others into the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A coordinator that gives up does not notify the PEs.
    ForgetsToAbort,
    /// The durable bytes differ from the verified ones.
    WritesOtherBytes,
    /// Durable messages are not reported when a round is given up.
    ForgetsDeliveries,
    /// A message is delivered twice.
    DeliversTwice,
}

impl Plant {
    /// All intended errors.
    pub const ALL: [Plant; 4] = [
        Plant::ForgetsToAbort,
        Plant::WritesOtherBytes,
        Plant::ForgetsDeliveries,
        Plant::DeliversTwice,
    ];
}
