//! The result of a calibration on stdout: human-readable tables, or machine-readable JSON.

use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_proto::PeId;
use serde_json::json;

use super::calibration::{Calibrated, Ran};
use flitcast_cluster::files::profile::HOST_COSTS;
use flitcast_cluster::text::figures::{self, beside};
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};

/// Characters before the text of a summary's line.
const INDENT: usize = 13;
/// Heading of the 95 % confidence interval of the column before.
const WITHIN: &str = "within";

pub fn table(found: &Calibrated) -> String {
    let profile = &found.profile;
    format!(
        "calibrate {}: {} PEs in flits of {}\n\n{}\n{}\n{}",
        profile.tree_name,
        profile.edges.len(),
        Bytes(profile.flit_bytes.into()),
        edges(found),
        workloads(&found.workloads),
        summary(found),
    )
}

/// Formats the values with their 95 % confidence intervals.
fn edges(found: &Calibrated) -> String {
    let profile = &found.profile;
    let links = || profile.edges[1..].iter().flat_map(|it| [it.down, it.up]);
    let bursts = links().any(|link| link.burst_bytes.value > 0.0);
    let setups = links().any(|link| link.setup_ns.value > 0.0);
    let mut header = vec!["edge", "latency", WITHIN, "rate", WITHIN];
    if setups {
        header.extend(["a flit", WITHIN]);
    }
    if bursts {
        header.extend(["burst", WITHIN]);
    }
    let rows = profile.edges.iter().enumerate().skip(1);
    let rows = rows.flat_map(|(child, edge)| {
        let parent = PeId(profile.parents[child - 1]);
        let child = PeId(child as u32);
        [(parent, child, edge.down), (child, parent, edge.up)]
    });
    let within = |[value, low, high]: [String; 3]| [value, format!("{low} to {high}")];
    let nanos = |ns: f64| Nanos(ns as u64).to_string();
    let rows = rows.map(|(from, to, link)| {
        let mut row = vec![format!("{from} to {to}")];
        row.extend(within(all(link.latency_ns).map(nanos)));
        // A longer time per byte is a lower rate.
        let [value, low, high] = all(link.ns_per_byte).map(rate);
        row.extend(within([value, high, low]));
        if setups {
            row.extend(within(all(link.setup_ns).map(nanos)));
        }
        if bursts {
            let bytes = |bytes: f64| Bytes(bytes as u64).to_string();
            row.extend(within(all(link.burst_bytes).map(bytes)));
        }
        row
    });
    let least = [WITHIN, WITHIN, WITHIN, WITHIN, "burst", "a flit"];
    lines(&header, rows.collect(), &least)
}

fn workloads(ran: &[Ran]) -> String {
    let rows = ran.iter().map(|ran| {
        vec![
            ran.name.clone(),
            ran.rounds.to_string(),
            Nanos(ran.measured_ns).to_string(),
            Nanos(ran.predicted_ns).to_string(),
            format!("{:+.0} %", ran.error_pct),
        ]
    });
    let header = ["calibrated on", "rounds", "measured", "predicted", "error"];
    lines(&header, rows.collect(), &["rounds", "predicted"])
}

/// Formats rows without as many of the columns `least` as have no room.
fn lines(header: &[&str], rows: Vec<Vec<String>>, least: &[&str]) -> String {
    let mut table = figures::table(header);
    rows.into_iter().for_each(|row| table.add_row(row));
    figures::fitted(table, 1, least, columns())
}

fn summary(found: &Calibrated) -> String {
    let profile = &found.profile;
    let host = &profile.host;
    let nanos = |ns: f64| Nanos(ns as u64);
    let cores = match host.shared_cores {
        Some(1) => "one core for all PEs".to_owned(),
        Some(cores) => format!("{cores} cores for all PEs"),
        None => "cores of its own for each PE".to_owned(),
    };
    let mut out = String::new();
    let mut add =
        |label: &str, text: String| out.push_str(&beside(label, INDENT, &text, columns()));
    let wake = nanos(host.wake_ns);
    let host_line = format!("{cores}; runs {wake} after there is something for it");
    add("host", host_line);
    let [control, flit, message] = [host.control_ns, host.flit_ns, host.message_ns].map(nanos);
    let costs = format!("{control} a control frame, {flit} a flit, {message} a message");
    add("costs", costs);
    let a_byte = format!(
        "{} ns to send, {} ns to receive, {} ns at its source or destination",
        host.send_ns_per_byte, host.receive_ns_per_byte, host.end_ns_per_byte
    );
    add("a byte", a_byte);
    if let Some(relay) = profile.relay {
        let (added, percent) = (nanos(relay.added_latency_ns), relay.overlap * 100.0);
        let both = "of receiving and sending at once";
        add(
            "relay",
            format!("adds {added}, and does {percent:.0} % {both}"),
        );
    }
    let clocks = profile.clocks.iter();
    let clocks = match clocks.map(|clock| clock.uncertainty_ns).max().unwrap_or(0) {
        0 => "one for all PEs".to_owned(),
        ns => format!("of several hosts, known to {}", Nanos(ns)),
    };
    add("clocks", clocks);
    let fit = &profile.fit;
    let (median, worst) = (fit.median_residual_pct, fit.worst_residual_pct);
    let fit = format!("off by {median:.0} % in the median, {worst:.0} % at worst");
    add("fit", fit);
    if !found.left_out.is_empty() {
        let (left_out, why) = (found.left_out.join(", "), "too long for these links");
        let text = format!("{left_out}: {why}; --seconds gives more time");
        add("left out", text);
    }
    let took = Nanos(found.took.as_nanos() as u64);
    let announced = found.announced.as_secs_f64().max(1.0);
    add("took", format!("{took}, announced {announced:.0} s"));
    if let Some(security) = found.guard.description() {
        add("security", security);
    }
    let profile = match &found.written {
        Some(path) => format!("in {}", path.display()),
        None => "not kept: --output FILE writes it".to_owned(),
    };
    add("profile", profile);
    out
}

fn all(estimate: Estimate) -> [f64; 3] {
    [estimate.value, estimate.low, estimate.high]
}

fn rate(ns_per_byte: f64) -> String {
    let rate = Rate {
        bytes: (1e9 / ns_per_byte) as u64,
        nanos: 1_000_000_000,
    };
    rate.to_string()
}

pub fn json(found: &Calibrated) -> String {
    let profile = &found.profile;
    let host = &profile.host;
    let estimate = |estimate: Estimate, unit: f64| {
        let [value, low, high] = all(estimate).map(|value| value / unit);
        json!({ "value": value, "low": low, "high": high })
    };
    let link = |link: MeasuredLink| {
        json!({
            "latency_us": estimate(link.latency_ns, 1000.0),
            "setup_us": estimate(link.setup_ns, 1000.0),
            "ns_per_byte": estimate(link.ns_per_byte, 1.0),
            "burst_bytes": estimate(link.burst_bytes, 1.0),
        })
    };
    let edges = profile.edges.iter().zip(&profile.clocks).enumerate();
    let edges = edges.skip(1).map(|(child, (edge, clock))| {
        json!({
            "parent": profile.parents[child - 1],
            "child": child,
            "down": link(edge.down),
            "up": link(edge.up),
            "clock_offset_us": clock.offset_ns as f64 / 1000.0,
            "clock_uncertainty_us": clock.uncertainty_ns as f64 / 1000.0,
        })
    });
    let relay = profile.relay.map(|relay| {
        json!({
            "added_latency_us": relay.added_latency_ns / 1000.0,
            "overlap": relay.overlap,
        })
    });
    let mut costs = json!({ "shared_cores": host.shared_cores });
    for (name, cost) in HOST_COSTS.into_iter().zip(host.costs()) {
        costs[name] = json!(cost);
    }
    let result = json!({
        "tree": profile.tree_name,
        "parents": profile.parents,
        "measured": profile.measured,
        "flit_bytes": profile.flit_bytes,
        "edges": edges.collect::<Vec<_>>(),
        "host": costs,
        "relay": relay,
        "workloads": found.workloads,
        "left_out": found.left_out,
        "median_residual_pct": profile.fit.median_residual_pct,
        "worst_residual_pct": profile.fit.worst_residual_pct,
        "announced_s": found.announced.as_secs_f64(),
        "security": found.guard.name(),
        "took_s": found.took.as_secs_f64(),
        "profile": found.written.as_ref().map(|path| path.display().to_string()),
    });
    format!("{result:#}\n")
}
