//! The prices of steps of wormhole packets on calibrated hosts and links (spec of gossip, section 8).

use std::path::Path;

use flitcast_plan::cost::Model;
use flitcast_plan::timing::passage;

use crate::files::profile::Profile;
use crate::job::request::flit_size;
use crate::options::prices::PriceArgs;
use crate::text::faults::Faults;
use crate::tuning::USUAL_FLIT_BYTES;

/// Returns the prices as typed, or those of a profile in microseconds.
///
/// # Errors
///
/// Returns all errors in the profile or in the size of a flit.
pub fn typed(args: &PriceArgs) -> Result<PriceArgs, Faults> {
    let Some(path) = &args.profile else {
        return Ok(args.clone());
    };
    let size = args.flit_size.as_deref().map(flit_size);
    let size = size.unwrap_or(Ok(USUAL_FLIT_BYTES));
    match (Profile::load(Path::new(path), None), size) {
        (Ok(profile), Ok(size)) => {
            let prices = calibrated(&profile.model(), size);
            let [ts, td, tl] = prices.map(|ns| Some(format!("{}.{:03}", ns / 1000, ns % 1000)));
            Ok(PriceArgs {
                ts,
                td,
                tl,
                ..args.clone()
            })
        }
        (profile, size) => {
            let profile = profile.err().map(anyhow::Error::from);
            Err(Faults::all(profile.into_iter().chain(size.err())))
        }
    }
}

/// Returns the set-up time of a packet, the time of a hop and that of a flit of `flit_bytes` bytes, in
/// nanoseconds: each the largest over all edges and directions.
fn calibrated(model: &Model, flit_bytes: u32) -> [u64; 3] {
    let edges = model.edges.iter().enumerate().skip(1);
    let passages = edges.flat_map(|(edge, links)| {
        let [upper, lower] = model.hosts.ends(edge);
        [
            passage(&links.down, [upper, lower], flit_bytes),
            passage(&links.up, [lower, upper], flit_bytes),
        ]
    });
    passages.fold([0; 3], |[setup, hop, flit], passage| {
        [
            setup.max(passage.message),
            hop.max(passage.latency),
            flit.max(passage.packet(flit_bytes.into())),
        ]
    })
}

#[cfg(test)]
mod tests {
    use flitcast_plan::cost::{Host, Hosts};
    use flitcast_proto::cost::{Edge, Link};

    use super::*;

    #[test]
    fn the_slowest_edge_counts() {
        let link = |latency_ns, ns_per_byte| Link {
            latency_ns,
            ns_per_byte,
            ..Link::default()
        };
        let edge = |down, up| Edge { down, up };
        let host = Host {
            wake_ns: 7.0,
            flit_ns: 100.0,
            message_ns: 2000.0,
            ..Host::NONE
        };
        let model = Model {
            edges: vec![
                Edge::default(),
                edge(link(10.0, 8.0), link(30.0, 2.0)),
                edge(link(20.0, 1.0), link(5.0, 9.0)),
            ],
            hosts: Hosts::one(host),
            ..Model::unit(3)
        };
        // Sent, received by a process that wakes up, and on the slowest wire.
        assert_eq!(calibrated(&model, 1000), [2000, 30 + 7 + 200, 9000]);
    }
}
