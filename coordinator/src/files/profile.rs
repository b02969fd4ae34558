//! The profile: what `flitcast calibrate` has measured of a cluster, kept in a file
//! for later commands.
//!
//! It holds what was seen from outside, wire and software together, and the host's
//! share beside it; which model that makes is `model`'s business. How the file is
//! written is in `write`, how it is read and what can be wrong with it in `read`.

mod read;
mod write;

use std::path::Path;

use flitcast_proto::calibration::MeasuredEdge;
use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::calibration::fit::{Estimate, MeasuredLink};
use flitcast_proto::cost::{COSTS, Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use crate::files::user_file::{self, FileError, FileKind, SpotFault};

/// The version of the file's format.
pub const VERSION: u32 = 1;

const FILE: FileKind = FileKind {
    name: "profile",
    // 1 KiB for each edge of the largest local cluster, half as much again as it needs.
    max_bytes: 1024 * 1024,
};

/// What the costs of a host are called, in the order of [`Host::costs`].
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

/// What is known of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// When it was measured, as TOML writes a date and time.
    pub measured: String,
    /// The tree's name at that time.
    pub tree_name: String,
    /// Parents of P1, P2, ..
    pub parents: Vec<u32>,
    /// The links that were asked for, as typed, where they were shaped.
    pub links: Option<String>,
    /// Whether what was sent was encrypted.
    pub encrypted: bool,
    /// The quickest way to obey orders.
    pub pacing: Pacing,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// What the processes spend.
    pub host: Host,
    /// Whether a PE's edges share a port.
    pub ports: Ports,
    /// Bytes that a link holds.
    pub buffer_bytes: u64,
    /// What a relay adds; `None` in a tree without relays.
    pub relay: Option<Relay>,
    /// What the host was fitted on.
    pub fit: Fit,
    /// By PE index; `[0]` is all zeros.
    pub edges: Vec<MeasuredEdge>,
    /// Offsets to P0's clock, by PE index; `[0]` is shared.
    pub clocks: Vec<ClockOffset>,
}

/// A PE that passes messages on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relay {
    /// What it adds to the way of a flit, beside its two links.
    pub added_latency_ns: f64,
    /// The part of the shorter of receiving and sending that it does during the
    /// longer: 1 where a stream passes at its slower link's rate, 0 where each flit is
    /// received and then sent.
    pub overlap: f64,
}

/// What the host's costs were fitted on, and how well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fit {
    /// The calibration's rounds, like `scatter 1000 B each`.
    pub workloads: Vec<String>,
    /// How far predictions were off there, in percent.
    pub median_residual_pct: f64,
    /// The same, of the worst.
    pub worst_residual_pct: f64,
}

impl Profile {
    /// Reads the profile in the file at `path`. With a tree, it must be the tree that
    /// was measured.
    ///
    /// # Errors
    ///
    /// That the file cannot be read, or all that is wrong in it.
    pub fn load(path: &Path, tree: Option<&Tree>) -> Result<Profile, FileError> {
        user_file::load(FILE, path, |text| Profile::parse(text, tree))
    }

    /// Reads the profile in `text`; otherwise, at least one fault, in the order of the file.
    pub fn parse(text: &str, tree: Option<&Tree>) -> Result<Profile, Vec<SpotFault>> {
        read::profile(text, tree)
    }

    /// The profile of another tree over the same PEs: what is not known of its edges is
    /// what the measured ones are like in the median.
    pub fn for_tree(&self, tree: &Tree, name: &str) -> Profile {
        let parents = parents(tree);
        if parents == self.parents {
            return self.clone();
        }
        let median = |pick: &dyn Fn(&MeasuredEdge) -> Estimate| {
            let measured = self
                .edges
                .iter()
                .filter(|edge| **edge != MeasuredEdge::default());
            let mut all: Vec<Estimate> = measured.map(pick).collect();
            all.sort_by(|a, b| a.value.total_cmp(&b.value));
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        let edge = MeasuredEdge {
            down: MeasuredLink {
                latency_ns: median(&|edge| edge.down.latency_ns),
                setup_ns: median(&|edge| edge.down.setup_ns),
                ns_per_byte: median(&|edge| edge.down.ns_per_byte),
                burst_bytes: median(&|edge| edge.down.burst_bytes),
            },
            up: MeasuredLink {
                latency_ns: median(&|edge| edge.up.latency_ns),
                setup_ns: median(&|edge| edge.up.setup_ns),
                ns_per_byte: median(&|edge| edge.up.ns_per_byte),
                burst_bytes: median(&|edge| edge.up.burst_bytes),
            },
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

    /// The profile of the same edges, seen from another PE than P0; `tree` is the one that was
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

    /// The profile as a file's text.
    pub fn text(&self) -> String {
        write::text(self)
    }
}

/// The parents of all but the root of a tree, by index.
pub fn parents(tree: &Tree) -> Vec<u32> {
    let parents = tree.pes().filter_map(|pe| tree.parent(pe));
    parents.map(|PeId(parent)| parent).collect()
}

#[cfg(test)]
mod tests;
