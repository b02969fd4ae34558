//! Writes a profile as the text of a file, readable for users as well.

use std::fmt::Write as _;

use flitcast_proto::calibration::fit::{Estimate, MeasuredLink};
use flitcast_proto::cost::{COSTS, Ports};

use super::{HOST_COSTS, Profile, Relay, VERSION};
use crate::files::toml_file::quoted;
use crate::options::names::pacing_name;

const HEAD: &str = "\
# What `flitcast calibrate` measured. Other commands read it with --profile.
";

const EDGES: &str = "
# Each edge, by the PE at its lower end, as it looks from outside: wire and software.
# [value, low, high]: the truth lies between low and high in 95 of 100 cases.
# setup_us is what a flit takes beside its bytes, burst_bytes what an idle link lets through
# before its rate holds. The clock is the lower end's, less P0's; uncertainty 0 is one clock
# for both.
";

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
    let mut out = String::from(HEAD);
    // Writing to a String cannot fail.
    let _ = write(profile, &mut out);
    out
}

fn write(profile: &Profile, out: &mut String) -> std::fmt::Result {
    let Profile {
        host, relay, fit, ..
    } = profile;
    writeln!(out, "version = {VERSION}")?;
    writeln!(out, "measured = {}", profile.measured)?;
    writeln!(out, "tree = {}", quoted(&profile.tree_name))?;
    writeln!(out, "parents = {:?} # of P1, P2, ..", profile.parents)?;
    if let Some(links) = &profile.links {
        writeln!(out, "links = {} # as asked for", quoted(links))?;
    }
    if profile.encrypted {
        writeln!(out, "encrypted = true # what was sent")?;
    }
    writeln!(out, "flit_bytes = {}", profile.flit_bytes)?;
    let pacing = pacing_name(Some(profile.pacing)).unwrap_or_default();
    writeln!(
        out,
        "pacing = {} # of \"scheduled\", \"turns\" and \"eager\", the quickest gather",
        quoted(pacing)
    )?;

    writeln!(
        out,
        "\n# What the processes spend: nanoseconds of a core, but for wake_ns."
    )?;
    writeln!(out, "[host]")?;
    if let Some(cores) = host.shared_cores {
        writeln!(out, "shared_cores = {cores} # that all PEs share")?;
    }
    let costs = HOST_COSTS.iter().zip(host.costs()).zip(COMMENTS);
    for ((key, cost), comment) in costs {
        writeln!(out, "{key} = {} # {comment}", number(cost))?;
    }
    let ports = match profile.ports {
        Ports::Single => "single",
        Ports::PerEdge => "per-edge",
    };
    writeln!(
        out,
        "ports = \"{ports}\" # or \"single\": one for all edges, \"per-edge\": one each"
    )?;
    writeln!(
        out,
        "buffer_bytes = {} # that a link holds",
        profile.buffer_bytes
    )?;

    if let Some(Relay {
        added_latency_ns,
        overlap,
    }) = relay
    {
        writeln!(
            out,
            "\n# What a relay adds to a flit's way, and how much of receiving and sending it"
        )?;
        writeln!(
            out,
            "# does at once: 1 is all, 0 is nothing. Both follow from the rest."
        )?;
        writeln!(out, "[relay]")?;
        writeln!(out, "added_latency_us = {}", micros(*added_latency_ns))?;
        writeln!(out, "overlap = {}", number(*overlap))?;
    }

    writeln!(
        out,
        "\n# What the host was fitted on, and how far predictions were off there."
    )?;
    writeln!(out, "[fit]")?;
    writeln!(
        out,
        "median_residual_pct = {}",
        number(fit.median_residual_pct)
    )?;
    writeln!(
        out,
        "worst_residual_pct = {}",
        number(fit.worst_residual_pct)
    )?;
    writeln!(out, "workloads = [")?;
    for workload in &fit.workloads {
        writeln!(out, "  {},", quoted(workload))?;
    }
    writeln!(out, "]")?;

    out.push_str(EDGES);
    for (pe, edge) in profile.edges.iter().enumerate().skip(1) {
        let clock = profile.clocks[pe];
        writeln!(out, "[[edge]]\nchild = {pe}")?;
        writeln!(
            out,
            "clock = {{ offset_ns = {}, uncertainty_ns = {} }}",
            clock.offset_ns, clock.uncertainty_ns
        )?;
        for (direction, link) in [("down", &edge.down), ("up", &edge.up)] {
            writeln!(out, "[edge.{direction}]")?;
            write_link(link, out)?;
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    Ok(())
}

fn write_link(link: &MeasuredLink, out: &mut String) -> std::fmt::Result {
    let list = |estimate: Estimate, print: fn(f64) -> String| {
        let Estimate { value, low, high } = estimate;
        [value, low, high].map(print).join(", ")
    };
    writeln!(out, "latency_us = [{}]", list(link.latency_ns, micros))?;
    writeln!(out, "setup_us = [{}]", list(link.setup_ns, micros))?;
    writeln!(out, "ns_per_byte = [{}]", list(link.ns_per_byte, number))?;
    writeln!(out, "burst_bytes = [{}]", list(link.burst_bytes, number))
}

/// Returns the shortest decimal that reads back as the same number.
fn number(value: f64) -> String {
    format!("{value}")
}

/// Formats whole nanoseconds as microseconds, so that they read back as the same.
fn micros(ns: f64) -> String {
    let ns = ns.round() as u64;
    let text = format!("{}.{:03}", ns / 1000, ns % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
