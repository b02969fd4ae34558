//! The measurements of a cluster, and those of other trees over the same PEs.

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{COSTS, Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

/// The version of the file's format.
pub const VERSION: u32 = 1;

/// The names of a host's costs, in the order of [`Host::costs`].
pub const HOST_COSTS: [&str; COSTS] = [
    "wake_ns",
    "control_ns",
    "flit_ns",
    "send_ns_per_byte",
    "receive_ns_per_byte",
    "end_ns_per_byte",
    "message_ns",
    "first_ns",
];

/// The measurements of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The time of the measurement, as TOML writes a date and time.
    pub measured: String,
    /// The tree's name at that time.
    pub tree_name: String,
    /// Parents of P1, P2, ..
    pub parents: Vec<u32>,
    /// The requested shapes of links, as typed, if they were shaped.
    pub links: Option<String>,
    /// Whether connections were encrypted.
    pub encrypted: bool,
    /// The quickest pacing.
    pub pacing: Pacing,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// The costs of processes.
    pub host: Host,
    /// Whether a PE's edges share a port.
    pub ports: Ports,
    /// Bytes that a link buffers.
    pub buffer_bytes: u64,
    /// The costs of a relay; `None` in a tree without relays.
    pub relay: Option<Relay>,
    /// The data of the host's fit.
    pub fit: Fit,
    /// The edges by PE index; `[0]` is all zeros.
    pub edges: Vec<MeasuredEdge>,
    /// Offsets to P0's clock, by PE index; `[0]` is shared.
    pub clocks: Vec<ClockOffset>,
}

/// The costs of a PE that forwards messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Relay {
    /// Latency that it adds to a flit, in addition to its two links.
    pub added_latency_ns: f64,
    /// The part of the shorter of receiving and sending that overlaps the longer: 1 if a stream passes
    /// at its slower link's rate, 0 if each flit is received and then sent.
    pub overlap: f64,
}

/// The data that the host's costs were fitted to, and the quality of the fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    /// The calibration's rounds, like `scatter 1000 B each`.
    pub workloads: Vec<String>,
    /// Median error of its predictions, in percent.
    pub median_residual_pct: f64,
    /// Largest error of its predictions, in percent.
    pub worst_residual_pct: f64,
}

impl Profile {
    /// Returns the profile of another tree over the same PEs. Edges that were not measured have the
    /// medians of the measured ones.
    pub fn for_tree(&self, tree: &Tree, name: &str) -> Profile {
        let parents = parents(tree);
        if parents == self.parents {
            return self.clone();
        }
        let measured = self.edges.iter();
        let measured = measured.filter(|edge| **edge != MeasuredEdge::default());
        let link = |of: fn(&MeasuredEdge) -> &MeasuredLink| {
            let median = |value: fn(&MeasuredLink) -> Estimate| {
                let mut all: Vec<Estimate> = measured.clone().map(of).map(value).collect();
                all.sort_by(|a, b| a.value.total_cmp(&b.value));
                all.get(all.len() / 2).copied().unwrap_or_default()
            };
            MeasuredLink {
                latency_ns: median(|link| link.latency_ns),
                setup_ns: median(|link| link.setup_ns),
                ns_per_byte: median(|link| link.ns_per_byte),
                burst_bytes: median(|link| link.burst_bytes),
            }
        };
        let edge = MeasuredEdge {
            down: link(|edge| &edge.down),
            up: link(|edge| &edge.up),
        };
        let mut edges = vec![edge; tree.len()];
        edges[tree.root().index()] = MeasuredEdge::default();
        Profile {
            tree_name: name.to_owned(),
            parents,
            edges,
            ..self.clone()
        }
    }

    /// Returns the profile of the same edges, seen from another PE than P0; `tree` is the one that was
    /// measured.
    pub fn rerooted(self, tree: &Tree, root: PeId) -> Profile {
        let mut edges = self.edges.clone();
        edges[root.index()] = MeasuredEdge::default();
        for child in tree.turned(root) {
            if let Some(parent) = tree.parent(child) {
                let MeasuredEdge { down, up } = self.edges[child.index()];
                edges[parent.index()] = MeasuredEdge { down: up, up: down };
            }
        }
        Profile {
            parents: parents(&tree.rerooted(root)),
            edges,
            ..self
        }
    }
}

pub fn ports_name(ports: Ports) -> &'static str {
    match ports {
        Ports::Single => "single",
        Ports::PerEdge => "per-edge",
    }
}

/// Returns the parents of all but the root of a tree, by index.
pub fn parents(tree: &Tree) -> Vec<u32> {
    let parents = tree.pes().filter_map(|pe| tree.parent(pe));
    parents.map(|PeId(parent)| parent).collect()
}
