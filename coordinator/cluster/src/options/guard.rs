//! The options for the protection of connections.

use std::path::PathBuf;

use clap::Args;

/// Security options of connections.
#[derive(Clone, Debug, Default, Args)]
pub struct GuardArgs {
    /// Authenticate and encrypt with the certificates in this folder (see `flitcast ca`), which
    /// must exist at the same path on each PE's host [default: certificates made for this run, or a
    /// secret on loopback addresses, where no other host can listen in].
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Security",
        conflicts_with = "insecure"
    )]
    pub credentials: Option<PathBuf>,
    /// Send everything unencrypted and unauthenticated: any host on the network can read and change
    /// it.
    #[arg(long, help_heading = "Security")]
    pub insecure: bool,
}
