//! The networks of `flitcast plan gossip`, as values of `--network`.

use anyhow::anyhow;
use flitcast_plan::gossip::GossipNetwork;
use flitcast_plan::network::NetworkSpec;

/// Parses a network of any size.
///
/// # Errors
///
/// Returns an error if the text names no network, or one without a planned gossip.
pub fn gossip_network(text: &str) -> anyhow::Result<GossipNetwork> {
    let spec = text.parse::<NetworkSpec>();
    let spec = spec.map_err(|fault| anyhow!("--network {text}: {fault}"))?;
    GossipNetwork::of(&spec).map_err(|fault| anyhow!("--network {text}: {fault}"))
}
