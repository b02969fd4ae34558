//! Options about the bytes on all connections.

use clap::Args;

/// Options about the bytes on all connections.
#[derive(Clone, Debug, Default, Args)]
pub struct TransmissionArgs {
    /// Let each PE send at this rate at most, on all its connections together, like 200mbit (kbit, mbit,
    /// gbit), from 64kbit on.
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    pub bwlimit: Option<String>,
    /// Compress flits (LZ4) if that is predicted to be quicker.
    #[arg(long, hide_short_help = true)]
    pub compress: bool,
}
