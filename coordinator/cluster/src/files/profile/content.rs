//! The measurements of a cluster, those of other trees over the same PEs, and the text of a profile, readable for
//! users as well.

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{COSTS, Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use crate::files::toml_file::writer::{line, list, optional_line, quoted};
use crate::options::names::pacing_name;

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

/// The comments on [`HOST_COSTS`].
const COMMENTS: [&str; COSTS] = [
    "until a sleeping process runs",
    "a control frame, at either end",
    "a flit, at either end",
    "handed to the network",
    "taken from the network",
    "at the source or destination",
    "a message at its source or destination",
    "once, in the first round of a process",
];

impl Profile {
    pub fn text(&self) -> String {
        let (fit, parents, flit_bytes) = (&self.fit, &self.parents, self.flit_bytes);
        let (measured, tree) = (&self.measured, quoted(&self.tree_name));
        let links = self.links.as_deref().map(quoted);
        let links = optional_line("links", links, "as asked for");
        let encrypted = self.encrypted.then_some(true);
        let encrypted = optional_line("encrypted", encrypted, "what was sent");
        let pacing = quoted(pacing_name(Some(self.pacing)).unwrap_or_default());
        let host = host(self);
        let relay = self.relay.as_ref().map_or(String::new(), relay);
        let (median, worst) = (fit.median_residual_pct, fit.worst_residual_pct);
        let workloads = list("workloads", fit.workloads.iter().map(|one| quoted(one)), "");
        let edges: Vec<String> = (1..self.edges.len()).map(|pe| edge(self, pe)).collect();
        let edges = edges.join("\n");
        format!(
            "\
# What `flitcast calibrate` measured. Other commands read it with --profile.
version = {VERSION}
measured = {measured}
tree = {tree}
parents = {parents:?} # of P1, P2, ..
{links}{encrypted}flit_bytes = {flit_bytes}
pacing = {pacing} # of \"scheduled\", \"turns\" and \"eager\", the quickest gather

# What the processes spend: nanoseconds of a core, but for wake_ns.
[host]
{host}{relay}
# What the host was fitted on, and how far predictions were off there.
[fit]
median_residual_pct = {median}
worst_residual_pct = {worst}
{workloads}
# Each edge, by the PE at its lower end, as it looks from outside: wire and software.
# [value, low, high]: the truth lies between low and high in 95 of 100 cases.
# setup_us is what a flit takes beside its bytes, burst_bytes what an idle link lets through
# before its rate holds. The clock is the lower end's, less P0's; uncertainty 0 is one clock
# for both.
{edges}"
        )
    }
}

fn host(profile: &Profile) -> String {
    let costs = HOST_COSTS.iter().zip(profile.host.costs()).zip(COMMENTS);
    let costs = costs.map(|((key, cost), comment)| line(key, cost, comment));
    let note = "or \"single\": one for all edges, \"per-edge\": one each";
    [
        optional_line(
            "shared_cores",
            profile.host.shared_cores,
            "that all PEs share",
        ),
        costs.collect(),
        line("ports", quoted(ports_name(profile.ports)), note),
        line("buffer_bytes", profile.buffer_bytes, "that a link holds"),
    ]
    .concat()
}

fn relay(relay: &Relay) -> String {
    let (added_latency_us, overlap) = (micros(relay.added_latency_ns), relay.overlap);
    format!(
        "
# What a relay adds to a flit's way, and how much of receiving and sending it
# does at once: 1 is all, 0 is nothing. Both follow from the rest.
[relay]
added_latency_us = {added_latency_us}
overlap = {overlap}
"
    )
}

fn edge(profile: &Profile, pe: usize) -> String {
    let (edge, clock) = (&profile.edges[pe], &profile.clocks[pe]);
    let (offset_ns, uncertainty_ns) = (clock.offset_ns, clock.uncertainty_ns);
    let (down, up) = (link(&edge.down), link(&edge.up));
    format!(
        "\
[[edge]]
child = {pe}
clock = {{ offset_ns = {offset_ns}, uncertainty_ns = {uncertainty_ns} }}
[edge.down]
{down}[edge.up]
{up}"
    )
}

fn link(link: &MeasuredLink) -> String {
    let list = |key, of: Estimate, print: fn(f64) -> String| {
        let list = [of.value, of.low, of.high].map(print).join(", ");
        line(key, format!("[{list}]"), "")
    };
    // The shortest decimal that reads back as the same number.
    let number = |value: f64| value.to_string();
    [
        list("latency_us", link.latency_ns, micros),
        list("setup_us", link.setup_ns, micros),
        list("ns_per_byte", link.ns_per_byte, number),
        list("burst_bytes", link.burst_bytes, number),
    ]
    .concat()
}

/// Formats whole nanoseconds as microseconds, so that they read back as the same.
fn micros(ns: f64) -> String {
    let ns = ns.round() as u64;
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
