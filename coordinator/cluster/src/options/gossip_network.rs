//! The networks of `flitcast plan gossip`, as values of `--network`.

use flitcast_plan::gossip::{GossipNetwork, InvalidGossipNetwork};
use flitcast_plan::network::{NetworkSpec, NetworkSpecError};
use thiserror::Error;

/// An error in a `--network` of a gossip.
#[derive(Debug, Error)]
pub enum GossipNetworkError {
    /// The text names no network.
    #[error("--network {spec}: {fault}")]
    Name {
        /// As typed.
        spec: String,
        /// The reason why it does not.
        fault: NetworkSpecError,
    },
    /// The network has no planned gossip.
    #[error("--network {spec}: {fault}")]
    Arena {
        /// As typed.
        spec: String,
        /// The reason why it has none.
        fault: InvalidGossipNetwork,
    },
}

/// Parses a network of any size.
pub fn gossip_network(text: &str) -> Result<GossipNetwork, GossipNetworkError> {
    let spec = || text.to_owned();
    let network: NetworkSpec = text.parse().map_err(|fault| GossipNetworkError::Name {
        spec: spec(),
        fault,
    })?;
    GossipNetwork::of(&network).map_err(|fault| GossipNetworkError::Arena {
        spec: spec(),
        fault,
    })
}
