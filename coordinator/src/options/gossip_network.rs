//! Networks that a gossip is planned on, as they are typed.

use flitcast_proto::gossip::{Arena, ArenaError};
use flitcast_proto::network::{NetworkSpec, NetworkSpecError};
use thiserror::Error;

/// Why there is no gossip on what `--network` says.
#[derive(Debug, Error)]
pub enum GossipNetworkError {
    /// It names no network.
    #[error("--network {spec}: {fault}")]
    Name {
        /// As typed.
        spec: String,
        /// Why not.
        fault: NetworkSpecError,
    },
    /// No gossip is planned there.
    #[error("--network {spec}: {fault}")]
    Arena {
        /// As typed.
        spec: String,
        /// Why not.
        fault: ArenaError,
    },
}

/// The network, however large.
pub fn gossip_network(text: &str) -> Result<Arena, GossipNetworkError> {
    let spec = || text.to_owned();
    let network: NetworkSpec = text.parse().map_err(|fault| GossipNetworkError::Name {
        spec: spec(),
        fault,
    })?;
    Arena::of(&network).map_err(|fault| GossipNetworkError::Arena {
        spec: spec(),
        fault,
    })
}
