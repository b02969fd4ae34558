//! The text of a profile, readable for users as well.

use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::COSTS;

use super::content::{HOST_COSTS, Profile, Relay, VERSION, ports_name};
use crate::files::toml_file::writer::{line, list, optional_line, quoted};
use crate::options::names::pacing_name;

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
