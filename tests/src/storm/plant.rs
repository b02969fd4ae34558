//! Mistakes that are planted, to see that the storm finds them.

/// A mistake that is made on purpose, to see that it is found. Others are made in the program
/// itself (`tests/mistakes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A coordinator that gives up tells nobody.
    ForgetsToAbort,
    /// What becomes durable is not what was verified.
    WritesOtherBytes,
    /// What became durable is not listed when the round is given up.
    ForgetsDeliveries,
    /// A message is delivered again.
    DeliversTwice,
}

impl Plant {
    /// All of them.
    pub const ALL: [Plant; 4] = [
        Plant::ForgetsToAbort,
        Plant::WritesOtherBytes,
        Plant::ForgetsDeliveries,
        Plant::DeliversTwice,
    ];
}
