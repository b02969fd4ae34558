//! How connections are to be guarded, as it is typed.

use std::path::PathBuf;

use clap::Args;

/// How connections are to be guarded.
#[derive(Clone, Debug, Default, Args)]
pub struct GuardArgs {
    /// Authenticate and encrypt with the certificates in this folder (see `flitcast ca`),
    /// which each PE has at the same path: on its host, too [default: certificates made
    /// for this run, or on loopback addresses, where nobody can listen in, a secret].
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Security",
        conflicts_with = "insecure"
    )]
    pub credentials: Option<PathBuf>,
    /// Send everything in the clear, for anybody on the network to read and to change.
    #[arg(long, help_heading = "Security")]
    pub insecure: bool,
}
