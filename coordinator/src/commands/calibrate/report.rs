//! The result of a calibration on stdout: human-readable tables, or machine-readable JSON.

use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_proto::PeId;
use serde_json::{Map, Value, json};

use super::calibration::{Calibrated, Ran};
use flitcast_cluster::files::profile::{HOST_COSTS, Relay};
use flitcast_cluster::text::figures;
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};

/// Returns the tables and the summary below them.
pub fn table(found: &Calibrated) -> String {
    let profile = &found.profile;
    let mut out = format!(
        "calibrate {}: {} PEs in flits of {}\n\n",
        profile.tree_name,
        profile.edges.len(),
        Bytes(profile.flit_bytes.into())
    );
    out.push_str(&edges(found));
    out.push('\n');
    out.push_str(&workloads(&found.workloads));
    out.push('\n');
    out.push_str(&summary(found));
    out
}

/// Formats the values with their 95 % confidence intervals.
fn edges(found: &Calibrated) -> String {
    let profile = &found.profile;
    let links = || {
        profile.edges[1..]
            .iter()
            .flat_map(|edge| [edge.down, edge.up])
    };
    let bursts = links().any(|link| link.burst_bytes.value > 0.0);
    let setups = links().any(|link| link.setup_ns.value > 0.0);
    let mut header = vec!["edge", "latency", "from", "to", "rate", "from", "to"];
    if setups {
        header.extend(["a flit", "from", "to"]);
    }
    if bursts {
        header.extend(["burst", "from", "to"]);
    }
    let rows = profile
        .edges
        .iter()
        .enumerate()
        .skip(1)
        .flat_map(|(child, edge)| {
            let parent = PeId(profile.parents[child - 1]);
            let child = PeId(child as u32);
            [(parent, child, edge.down), (child, parent, edge.up)]
        });
    let rows = rows.map(|(from, to, link)| {
        let mut row = vec![format!("{from} to {to}")];
        row.extend(all(link.latency_ns).map(|ns| Nanos(ns as u64).to_string()));
        // A longer time per byte is a lower rate.
        let [value, low, high] = all(link.ns_per_byte).map(rate);
        row.extend([value, high, low]);
        if setups {
            row.extend(all(link.setup_ns).map(|ns| Nanos(ns as u64).to_string()));
        }
        if bursts {
            row.extend(all(link.burst_bytes).map(|bytes| Bytes(bytes as u64).to_string()));
        }
        row
    });
    lines(&header, rows.collect())
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
    lines(&header, rows.collect())
}

fn lines(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = figures::table(header.to_vec());
    rows.into_iter().for_each(|row| table.add_row(row));
    figures::lines(table, 1)
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
    let mut out = format!(
        "  host         {cores}; runs {} after there is something for it\n",
        nanos(host.wake_ns)
    );
    out.push_str(&format!(
        "  costs        {} a control frame, {} a flit, {} a message\n",
        nanos(host.control_ns),
        nanos(host.flit_ns),
        nanos(host.message_ns)
    ));
    out.push_str(&format!(
        "  a byte       {} ns to send, {} ns to receive, {} ns at its source or destination\n",
        host.send_ns_per_byte, host.receive_ns_per_byte, host.end_ns_per_byte
    ));
    if let Some(Relay {
        added_latency_ns,
        overlap,
    }) = profile.relay
    {
        out.push_str(&format!(
            "  relay        adds {}, and does {:.0} % of receiving and sending at once\n",
            nanos(added_latency_ns),
            overlap * 100.0
        ));
    }
    let uncertain = profile
        .clocks
        .iter()
        .map(|clock| clock.uncertainty_ns)
        .max();
    out.push_str(&match uncertain.unwrap_or(0) {
        0 => "  clocks       one for all PEs\n".to_owned(),
        ns => format!("  clocks       of several hosts, known to {}\n", Nanos(ns)),
    });
    out.push_str(&format!(
        "  fit          off by {:.0} % in the median, {:.0} % at worst\n",
        profile.fit.median_residual_pct, profile.fit.worst_residual_pct
    ));
    if !found.left_out.is_empty() {
        out.push_str(&format!(
            "  left out     {}: too long for these links; --seconds gives more time\n",
            found.left_out.join(", ")
        ));
    }
    out.push_str(&format!(
        "  took         {}, announced {:.0} s\n",
        Nanos(found.took.as_nanos() as u64),
        found.announced.as_secs_f64().max(1.0)
    ));
    if let Some(told) = found.guard.told() {
        out.push_str(&format!("  security     {told}\n"));
    }
    out.push_str(&match &found.written {
        Some(path) => format!("  profile      in {}\n", path.display()),
        None => "  profile      not kept: --output FILE writes it\n".to_owned(),
    });
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

/// Returns the result as JSON text.
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
    let edges = profile
        .edges
        .iter()
        .zip(&profile.clocks)
        .enumerate()
        .skip(1);
    let edges = edges.map(|(child, (edge, clock))| {
        json!({
            "parent": profile.parents[child - 1],
            "child": child,
            "down": link(edge.down),
            "up": link(edge.up),
            "clock_offset_us": clock.offset_ns as f64 / 1000.0,
            "clock_uncertainty_us": clock.uncertainty_ns as f64 / 1000.0,
        })
    });
    let workloads = found.workloads.iter().map(|ran| {
        json!({
            "name": ran.name,
            "rounds": ran.rounds,
            "measured_us": ran.measured_ns as f64 / 1000.0,
            "predicted_us": ran.predicted_ns as f64 / 1000.0,
            "error_pct": ran.error_pct,
        })
    });
    let relay = profile.relay.map_or(Value::Null, |relay| {
        json!({
            "added_latency_us": relay.added_latency_ns / 1000.0,
            "overlap": relay.overlap,
        })
    });
    let costs = HOST_COSTS.into_iter().zip(host.costs());
    let costs = costs.map(|(name, cost)| (name, json!(cost)));
    let host_costs: Map<String, Value> =
        std::iter::once(("shared_cores", json!(host.shared_cores)))
            .chain(costs)
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
    let result = json!({
        "tree": profile.tree_name,
        "parents": profile.parents,
        "measured": profile.measured,
        "flit_bytes": profile.flit_bytes,
        "edges": edges.collect::<Vec<_>>(),
        "host": host_costs,
        "relay": relay,
        "workloads": workloads.collect::<Vec<_>>(),
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
