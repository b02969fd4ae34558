//! The text of a profile, readable for users as well.

use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{COSTS, Ports};

use super::content::{HOST_COSTS, Profile, Relay, VERSION};
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

/// Returns the file's text.
pub fn text(profile: &Profile) -> String {
    let Profile {
        measured,
        parents,
        flit_bytes,
        fit,
        ..
    } = profile;
    let tree = quoted(&profile.tree_name);
    let links = profile.links.as_deref().map(quoted);
    let links = optional_line("links", links, "as asked for");
    let encrypted = profile.encrypted.then_some(true);
    let encrypted = optional_line("encrypted", encrypted, "what was sent");
    let pacing = quoted(pacing_name(Some(profile.pacing)).unwrap_or_default());
    let host = host(profile);
    let relay = profile.relay.as_ref().map_or(String::new(), relay);
    let (median, worst) = (fit.median_residual_pct, fit.worst_residual_pct);
    let workloads = list("workloads", fit.workloads.iter().map(|one| quoted(one)), "");
    let edges: Vec<String> = (1..profile.edges.len())
        .map(|pe| edge(profile, pe))
        .collect();
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

fn host(profile: &Profile) -> String {
    let costs = HOST_COSTS.iter().zip(profile.host.costs()).zip(COMMENTS);
    let costs = costs.map(|((key, cost), comment)| line(key, cost, comment));
    let (ports, buffer_bytes) = (profile.ports, profile.buffer_bytes);
    let ports = match ports {
        Ports::Single => "single",
        Ports::PerEdge => "per-edge",
    };
    format!(
        "{}{}\
ports = \"{ports}\" # or \"single\": one for all edges, \"per-edge\": one each
buffer_bytes = {buffer_bytes} # that a link holds
",
        optional_line(
            "shared_cores",
            profile.host.shared_cores,
            "that all PEs share"
        ),
        costs.collect::<String>()
    )
}

fn relay(relay: &Relay) -> String {
    let Relay {
        added_latency_ns,
        overlap,
    } = relay;
    let added_latency_us = micros(*added_latency_ns);
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
    let list =
        |of: Estimate, print: fn(f64) -> String| [of.value, of.low, of.high].map(print).join(", ");
    // The shortest decimal that reads back as the same number.
    let number = |value: f64| value.to_string();
    let (latency, setup) = (list(link.latency_ns, micros), list(link.setup_ns, micros));
    let (per_byte, burst) = (
        list(link.ns_per_byte, number),
        list(link.burst_bytes, number),
    );
    format!(
        "\
latency_us = [{latency}]
setup_us = [{setup}]
ns_per_byte = [{per_byte}]
burst_bytes = [{burst}]
"
    )
}

/// Formats whole nanoseconds as microseconds, so that they read back as the same.
fn micros(ns: f64) -> String {
    let ns = ns.round() as u64;
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
