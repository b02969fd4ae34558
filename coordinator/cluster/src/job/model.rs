//! The model of a cluster, from measurements or a profile.

use flitcast_node::tuning::pacer::AT_ONCE_NS;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::cost_estimate::Prior;
use flitcast_plan::calibration::fit::Point;
use flitcast_plan::calibration::{MeasuredEdge, edges_from_measurements};
use flitcast_plan::cost::{COSTS, Host, Hosts, Model, Ports};
use flitcast_proto::PeId;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::shape::RUN_AHEAD_NS;
use flitcast_proto::wire::seal::SEAL_BYTES;
use serde_json::{Value, json};

use crate::files::profile::Profile;
use crate::job::site::Site;
use crate::text::units::BitRate;
use crate::tuning::{ACKNOWLEDGED, BUFFER_BYTES, CRYPTO_NS_PER_BYTE};

/// A measurement of a cluster's edges and clocks.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The edges by PE index; `[0]` is unused.
    pub edges: Vec<MeasuredEdge>,
    /// The inferred values of edges that were not completely measured, by PE index.
    pub alike: Vec<Option<InferredEdge>>,
    /// Offsets to P0's clock, by PE index.
    pub clocks: Vec<ClockOffset>,
    /// The measurements that the edges were fitted to, if they were measured just now.
    pub fits: Vec<EdgeFit>,
    /// Cores that all PEs share, if they are on one machine.
    pub shared_cores: Option<u32>,
}

/// The inferred values of an edge that was not completely measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InferredEdge {
    /// The PE whose edge has the same rate and burst.
    pub other: PeId,
    /// Whether its latencies were measured; otherwise they are the other edge's, too.
    pub asked: bool,
}

/// The fit of one direction of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeFit {
    /// The edge between this PE and its parent.
    pub edge: PeId,
    /// From parent to child; else from child to parent.
    pub down: bool,
    /// The measurements, and whether the fit used each; it does not use outliers.
    pub points: Vec<(Point, bool)>,
    pub link: Link,
}

impl EdgeFit {
    /// Returns the fit as JSON for the page's script.
    pub fn data(&self) -> Value {
        let point =
            |(p, used): &(Point, bool)| json!({ "bytes": p.bytes, "ns": p.ns, "used": used });
        json!({
            "edge": self.edge.0,
            "direction": if self.down { "down" } else { "up" },
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
            "latency_ns": self.link.latency_ns,
            "ns_per_byte": self.link.ns_per_byte,
            "burst_bytes": self.link.burst_bytes,
        })
    }
}

/// Returns the time from P0's start to a reading of another PE's clock; 0 if the uncertainty of the
/// clocks puts the reading before the start.
pub fn since(started_ns: u64, at_ns: u64, clock: ClockOffset) -> u64 {
    let since = clock.on_the_other(at_ns) - i128::from(started_ns);
    u64::try_from(since.max(0)).unwrap_or(u64::MAX)
}

/// Returns the assumed costs of processes that could not be measured, which also limit what is learned:
/// about the results of `flitcast calibrate` on a machine of two cores.
pub fn assumed_host() -> Host {
    Host {
        shared_cores: None,
        busy_threads: 0,
        wake_ns: 15_000.0,
        control_ns: 5_000.0,
        flit_ns: 6_000.0,
        send_ns_per_byte: 0.12,
        receive_ns_per_byte: 0.12,
        end_ns_per_byte: 0.05,
        message_ns: 20_000.0,
        first_ns: 30_000.0,
    }
}

/// Returns the assumed costs of processes with encrypted or unencrypted connections.
pub fn assumed(encrypted: bool) -> Host {
    let mut host = assumed_host();
    if encrypted {
        host.send_ns_per_byte += CRYPTO_NS_PER_BYTE;
        host.receive_ns_per_byte += CRYPTO_NS_PER_BYTE;
    }
    host
}

/// Returns the assumed costs of a machine, and the parameters of learning.
pub fn prior(encrypted: bool) -> Prior<COSTS> {
    Prior {
        costs: assumed(encrypted).costs(),
        // Processors differ by more than their costs' proportions: together a factor of three.
        log_deviations: [0.5; COSTS],
        common: 0.9,
        min_deviation: 0.03,
        drift: 0.02,
        common_drift: 0.05,
        sitting: 0.3,
        sitting_each: 0.02,
        iterations: 10,
    }
}

/// Returns whether the edges of a site's PEs share ports. Shaped links do, unless the user requested
/// otherwise, and so does the network card of a host with one address; processes of one machine share
/// only its cores.
pub fn ports(site: &Site) -> Ports {
    let one_card = site.placement.is_spread() && site.placement.has_any_edge();
    match (site.is_shaped() || one_card) && !site.own_links {
        true => Ports::Single,
        false => Ports::PerEdge,
    }
}

/// Creates a model of these edges, without other effects.
fn model(edges: Vec<Edge>, hosts: Hosts, ports: Ports, buffer_bytes: u64, shaped: bool) -> Model {
    Model {
        edges,
        hosts,
        ports,
        own_links: false,
        acknowledged: 0.0,
        buffer_bytes,
        // A socket accepts as much as it has room for, however slow the wire is.
        ahead_ns: match shaped {
            true => RUN_AHEAD_NS as f64,
            false => f64::INFINITY,
        },
        control_bytes: SEAL_BYTES as u64 + 18,
        receipt_bytes: SEAL_BYTES as u64 + 8,
        prefix_bytes: SEAL_BYTES as u64 + 14,
        files: None,
    }
}

/// Creates a model of emulated links that are all alike, between processes that cost nothing.
pub fn links_alone(pes: usize, down: Link, ports: Ports) -> Model {
    let edges = vec![Edge { down, up: down }; pes];
    let hosts = Hosts::one(Host::NONE);
    Model {
        own_links: ports == Ports::PerEdge,
        ..model(edges, hosts, ports, BUFFER_BYTES, true)
    }
}

/// Returns the cost of acknowledgements for each byte. On real links they cost as much as data; a
/// shaped link carries data alone, and within a machine they are part of the costs of processes.
fn acknowledged(site: &Site) -> f64 {
    match site.placement.is_spread() && !site.is_shaped() {
        true => ACKNOWLEDGED,
        false => 0.0,
    }
}

/// Creates a model of a site's edges from a new measurement, on hosts with these costs.
pub fn measured_model(edges: &[MeasuredEdge], hosts: Hosts, site: &Site) -> Model {
    model_of(wires(edges, &hosts, site), hosts, site)
}

/// Returns a site's wires from a measurement. On one machine a shaped link has the requested values,
/// however busy the machine was meanwhile.
pub fn wires(edges: &[MeasuredEdge], hosts: &Hosts, site: &Site) -> Vec<Edge> {
    let mut wires = edges_from_measurements(edges, hosts);
    if !site.placement.is_spread() {
        for (wire, link) in wires.iter_mut().zip(&site.links) {
            *wire = link.map_or(*wire, |link| link.edge());
        }
    }
    wires
}

/// Creates a model of a site from wires and hosts' costs.
pub fn model_of(edges: Vec<Edge>, hosts: Hosts, site: &Site) -> Model {
    let shaped = site.is_shaped();
    let model = Model {
        own_links: site.own_links,
        acknowledged: acknowledged(site),
        ..model(edges, hosts, ports(site), BUFFER_BYTES, shaped)
    };
    limited(model, site.limit)
}

/// Applies a limit of each PE's rate to a model: its connections share the limit.
fn limited(mut model: Model, limit: Option<BitRate>) -> Model {
    if let Some(limit) = limit {
        let limit = 8e9 / limit.0 as f64;
        let edges = model.edges.iter_mut();
        for link in edges.flat_map(|Edge { down, up }| [down, up]) {
            if link.ns_per_byte < limit {
                // The pacer delays the bytes that an idle link would carry at once, too.
                (link.ns_per_byte, link.burst_bytes) = (limit, 0.0);
            }
        }
        (model.ports, model.own_links) = (Ports::Single, false);
        model.ahead_ns = model.ahead_ns.min(AT_ONCE_NS);
    }
    model
}

pub fn model_by(profile: &Profile, site: &Site) -> Model {
    let mut model = profile.model();
    model.acknowledged = acknowledged(site);
    if site.own_links {
        (model.ports, model.own_links) = (ports(site), true);
    }
    limited(model, site.limit)
}

impl Profile {
    pub fn model(&self) -> Model {
        let shaped = self.links.is_some();
        let hosts = Hosts::one(self.host);
        let edges = edges_from_measurements(&self.edges, &hosts);
        model(edges, hosts, self.ports, self.buffer_bytes, shaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_replaces_rates_and_bursts_that_are_higher() {
        let link = |ns_per_byte, burst_bytes| Link {
            ns_per_byte,
            burst_bytes,
            ..Link::default()
        };
        let edge = |down| Edge {
            down,
            up: link(2000.0, 40_000.0),
        };
        let edges = vec![edge(link(1.0, 40_000.0))];
        let hosts = Hosts::one(Host::NONE);
        let model = model(edges, hosts, Ports::PerEdge, BUFFER_BYTES, false);
        let limited = limited(model, Some(BitRate(8_000_000)));
        assert_eq!(limited.edges, [edge(link(1000.0, 0.0))]);
        assert_eq!(limited.ports, Ports::Single);
    }
}
