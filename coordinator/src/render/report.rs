//! The result on stdout: a human-readable table, or machine-readable JSON.

use std::path::Path;
use std::time::Duration;

use flitcast_proto::Tree;
use flitcast_proto::cost::{Host, Link};
use flitcast_proto::ops::{Exchange, Operation};
use flitcast_proto::wire::control::Payload;
use serde_json::{Value, json};

use crate::job::host_costs::CostSource;
use crate::job::request::Request;
use crate::options::names::pacing_name;
use crate::render::lateness::lateness;
use crate::retry::Story;
use crate::rounds::certificates::Certificates;
use crate::rounds::outcome::{Beside, Failure, Outcome, PeOutcome, Phases, Spread, error_pct};
use crate::text::deliveries;
use crate::text::figures::{self, lines, micros};
use crate::text::units::{Bytes, Nanos, Rate};
use crate::text::words::counted;

/// Returns the table and the summary below it.
pub fn table(request: &Request, outcome: &Outcome) -> String {
    let mut header = vec!["PE", "parent", "depth", "bytes", "predicted"];
    if request.site.nodes.is_some() {
        header.insert(1, "node");
    }
    header.extend(match request.rounds {
        0 => &[][..],
        1 => &["measured", "peak memory"],
        _ => &["measured", "min", "max", "peak memory"],
    });
    let mut table = figures::table(header);
    for pe in &outcome.pes {
        table.add_row(row(request, pe));
    }
    let names = if request.site.nodes.is_some() { 1 } else { 2 };
    let mut out = heading(request, outcome);
    if let Some(choice) = &request.choice {
        out.push_str(&format!("  chosen: {choice}\n\n"));
    }
    out.push_str(&lines(table, names));
    out.push_str(&summary(request, outcome));
    if request.is_dry_run() {
        out.push_str("  dry run      nothing was sent (--dry-run)\n");
    }
    out
}

fn heading(request: &Request, outcome: &Outcome) -> String {
    let (algorithm, sync) = (request.way.algorithm(), request.way.sync());
    let sync = sync.map(|sync| format!(", {sync}")).unwrap_or_default();
    let pacing = pacing_name(outcome.rounds.pacing);
    let pacing = pacing
        .map(|pacing| format!(", {pacing}"))
        .unwrap_or_default();
    let links = request.site.links_name();
    let mut links = links.map(|links| format!("; {links}")).unwrap_or_default();
    if uses_all_ports(request) {
        links.push_str("; over all links of a PE at once");
    }
    format!(
        "{} {}: {}, {algorithm}{sync}{pacing}; {}, {} in flits of {}{links}\n\n",
        request.way.operation.name(),
        request.site.name,
        counted(request.site.tree.count() as u64, "PE", "PEs"),
        counted(outcome.messages, "message", "messages"),
        Bytes(outcome.bytes),
        Bytes(outcome.rounds.flit_bytes.into()),
    )
}

/// Returns whether PEs send to all their neighbours at once.
fn uses_all_ports(request: &Request) -> bool {
    let operation = request.way.operation;
    operation.has_all_ports() && request.site.own_links
        || operation == Operation::Exchange(Exchange::AtOnce)
}

fn row(request: &Request, pe: &PeOutcome) -> Vec<String> {
    let nanos = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
    let spread = |pick: fn(Spread) -> u64| nanos(pe.measured.map(pick));
    let parent = request.site.tree.parent(pe.pe);
    let mut row = vec![
        pe.pe.to_string(),
        parent.map_or("-".to_owned(), |parent| parent.to_string()),
        request.site.tree.depth(pe.pe).to_string(),
        match parent.is_some() || request.way.operation.is_of_pairs() {
            true => Bytes(pe.bytes).to_string(),
            false => "-".to_owned(),
        },
        nanos(pe.predicted_ns),
    ];
    if let Some(nodes) = &request.site.nodes {
        let name = request.site.placement.places[pe.pe.index()].name.clone();
        row.insert(1, name.unwrap_or_else(|| nodes[pe.pe.index()].to_string()));
    }
    if !request.is_dry_run() {
        row.push(spread(|s| s.median));
    }
    if request.rounds > 1 {
        row.extend([spread(|s| s.min), spread(|s| s.max)]);
    }
    row.extend(pe.peak_resident_bytes.map(|peak| Bytes(peak).to_string()));
    row
}

fn summary(request: &Request, outcome: &Outcome) -> String {
    if outcome.messages == 0 {
        return "\n  round        nothing to send: every message is null\n".to_owned();
    }
    let mut out = format!("\n{}", times(request, outcome));
    if let Some(flit_size) = outcome.rounds.flit_size {
        out.push_str(&format!("  flits        {flit_size}\n"));
    }
    if let Some(packets) = outcome.rounds.packets {
        out.push_str(&format!("  packets      {packets}\n"));
    }
    if let Some(order) = outcome.rounds.order {
        out.push_str(&format!("  order        {order}\n"));
    }
    if let Some(trees) = &outcome.rounds.trees {
        out.push_str(&format!("  trees        {trees}\n"));
    }
    if request.is_dry_run() {
        out.push_str(&preparation(request, outcome));
        return out;
    }
    out.push_str(&waiting(request, outcome));
    out.push_str(&preparation(request, outcome));
    out.push_str(&match &request.messages.payload {
        Payload::Files { output, .. } => {
            format!(
                "  verified     every digest matched; files are in {}\n",
                output.display()
            )
        }
        Payload::Synthetic { .. } => "  verified     every byte and digest matched\n".to_owned(),
    });
    out
}

/// Returns the lines with the times of a round, predicted and measured.
fn times(request: &Request, outcome: &Outcome) -> String {
    // The round's purpose: delivered messages or visible files.
    let (round, what) = match outcome.phases {
        Some(Phases { whole, .. }) => (whole, " until every file was visible"),
        None => (
            Beside {
                predicted_ns: outcome.predicted_ns,
                measured: outcome.measured,
            },
            "",
        ),
    };
    let mut out = format!("  round        {}{what}", beside(&round));
    if let Some(took) = round.measured {
        if request.rounds > 1 {
            let (min, max) = (Nanos(took.min), Nanos(took.max));
            out.push_str(&format!(" (median of {}, {min} to {max})", request.rounds));
        }
        if took.median > 0 {
            let error = error_pct(round.predicted_ns, took.median);
            let side = if error < 0.0 { "low" } else { "high" };
            out.push_str(&format!("; the prediction is {:.0} % {side}", error.abs()));
        }
    }
    let resent = outcome.pes.iter();
    let resent = resent.map(|pe| (pe.pe, pe.retransmitted_packets));
    out.push_str(&lateness(outcome.slowdown(), resent));
    if let Some(Phases {
        transfer,
        disk,
        commit,
        ..
    }) = &outcome.phases
    {
        let lines = [
            ("transfer", transfer, "until the last byte had come"),
            (
                "disk",
                disk,
                "of that, the longest that a PE waited for its files",
            ),
            ("commit", commit, "more, until all was durable and visible"),
        ];
        for (label, phase, what) in lines {
            out.push_str(&format!("\n  {label:<12} {} {what}", beside(phase)));
        }
    }
    if let Some(within) = outcome.begun_within {
        out.push_str(&format!(
            "\n  begin        all PEs at one time, the last one {} late",
            Nanos(within.median)
        ));
    }
    let dropped = [
        (
            "late",
            outcome.late_frames,
            "frame of an earlier round was dropped",
            "frames of earlier rounds were dropped",
        ),
        (
            "repeated",
            outcome.repeated_frames,
            "frame that had come before was dropped",
            "frames that had come before were dropped",
        ),
    ];
    for (label, frames, one, many) in dropped.into_iter().filter(|(_, frames, ..)| *frames > 0) {
        out.push_str(&format!("\n  {label:<12} {}", counted(frames, one, many)));
    }
    if let Some(measured) = outcome.measured {
        out.push_str(&format!(
            "\n  goodput      {}",
            Rate {
                bytes: outcome.bytes,
                nanos: measured.median
            },
        ));
    }
    out.push('\n');
    out
}

fn beside(both: &Beside) -> String {
    let predicted = format!("predicted {}", Nanos(both.predicted_ns));
    match both.measured {
        Some(took) => format!("{predicted}, measured {}", Nanos(took.median)),
        None => predicted,
    }
}

/// Returns the lines about flits that waited in a PE or for a port.
fn waiting(request: &Request, outcome: &Outcome) -> String {
    let buffered = counted(outcome.peak_buffered_flits, "flit", "flits");
    match request.way.operation.is_duplex() {
        // In duplex operations, one stream waits in memory while another one is received.
        true => format!("  held         at most {buffered} of others' messages in a PE\n"),
        false => format!(
            "  collisions   {}\n  buffered     at most {buffered} of a passing message in a PE\n",
            counted(
                outcome.collisions,
                "flit that waited for a busy port",
                "flits that waited for a busy port"
            ),
        ),
    }
}

/// Returns the lines about the time before the round, and the inputs of the prediction.
fn preparation(request: &Request, outcome: &Outcome) -> String {
    let probing = outcome.rounds.probing.map(|time| time.as_nanos() as u64);
    let mut out = format!(
        "  before it    {} up in {}, edges {}\n",
        counted(request.site.tree.count() as u64, "process", "processes"),
        Nanos(outcome.launching.as_nanos() as u64),
        match probing {
            Some(time) => format!("measured in {}", Nanos(time)),
            None => "as the profile has them".to_owned(),
        },
    );
    let alike = || outcome.rounds.measured.alike.iter().flatten();
    if let Some(first) = alike().next() {
        let edges = request.site.tree.count() - 1;
        out.push_str(&format!(
            "               {} of {edges} edges whole; {}\n",
            edges - alike().count(),
            match first.asked {
                true => "of the others the latencies, their rates are taken to be alike",
                false => "on one machine, the others are taken to be alike",
            }
        ));
    }
    let costs = &outcome.rounds.costs;
    let machines = match (costs.keys.len(), request.site.placement.is_spread()) {
        (_, false) => "of this machine".to_owned(),
        (1, true) => "of the machine of all PEs".to_owned(),
        (count, true) => format!("of {count} machines"),
    };
    out.push_str(&format!(
        "  costs        {}\n",
        costs_line(costs.source(), &machines)
    ));
    if let Some(files) = &outcome.rounds.files {
        let line = costs_line(files.source, "of its files");
        out.push_str(&format!("               {line}\n"));
    }
    if let Some(told) = request.site.guard.told() {
        out.push_str(&format!("  security     {told}\n"));
    }
    if outcome.clock_uncertainty_ns > 0 {
        out.push_str(&format!(
            "  clocks       of several hosts, compared to within {}\n",
            Nanos(outcome.clock_uncertainty_ns)
        ));
    }
    out
}

/// Describes where the costs in the prediction come from.
fn costs_line(source: CostSource, of_what: &str) -> String {
    let ago = |age: Duration| humantime::format_duration(Duration::from_secs(age.as_secs()));
    match source {
        CostSource::Measured => format!("{of_what}, measured just now"),
        CostSource::Cached { rounds: 0, age } => format!("{of_what}, measured {} ago", ago(age)),
        CostSource::Cached { rounds, age } => format!(
            "{of_what}, from {}, the first {} ago",
            counted(rounds, "round", "rounds"),
            ago(age),
        ),
        CostSource::Profile => "as the profile has them".to_owned(),
        CostSource::Assumed => format!("{of_what} assumed: nobody has measured them"),
    }
}

/// Returns the summary line that names the picture files.
pub fn pictures_line(files: &[&Path]) -> String {
    match files {
        [] => String::new(),
        files => {
            let files: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
            format!("  pictures     {}\n", files.join(" and "))
        }
    }
}

/// Returns the result as JSON text.
pub fn json(request: &Request, outcome: &Outcome, story: &Story) -> String {
    let mut result = json_value(request, outcome);
    story.add_to(&mut result);
    format!("{result:#}\n")
}

/// Returns the result as a JSON value.
pub fn json_value(request: &Request, outcome: &Outcome) -> Value {
    let tree = &request.site.tree;
    let (algorithm, sync) = (request.way.algorithm(), request.way.sync());
    // The list has an element for every PE index; it is null for the root and for absent PEs.
    let parents: Vec<_> = tree
        .ids()
        .map(|pe| tree.parent(pe).map(|parent| parent.0))
        .collect();
    let certificates = Certificates::of(tree, &outcome.rounds);
    let pes = outcome.pes.iter().map(|pe| {
        let certificate = certificates.pes[pe.pe.index()];
        json!({
            "pe": pe.pe.0,
            "parent": tree.parent(pe.pe).map(|parent| parent.0),
            "depth": tree.depth(pe.pe),
            "bytes": pe.bytes,
            "predicted_us": pe.predicted_ns.map(micros),
            "measured_us": pe.measured,
            "peak_resident_bytes": pe.peak_resident_bytes,
            "retransmitted_packets": pe.retransmitted_packets,
            "certificate": certificate.map(|it| it.json()),
        })
    });
    let link = |link: Link| json!({ "latency_us": link.latency_ns / 1000.0, "ns_per_byte": link.ns_per_byte });
    let edges = tree.below_root().map(|pe| {
        let edge = outcome.rounds.measured.edges[pe.index()].values();
        let parent = tree.parent(pe).map(|parent| parent.0);
        let alike = outcome.rounds.measured.alike[pe.index()];
        let shaped = request.site.links[pe.index()].map(|asked| asked.edge());
        let shaped = shaped.map(|edge| json!({ "down": link(edge.down), "up": link(edge.up) }));
        json!({
            "parent": parent,
            "child": pe.0,
            "down": link(edge.down),
            "up": link(edge.up),
            "rate_of": alike.map(|alike| alike.other.0),
            "latency_of": alike.filter(|alike| !alike.asked).map(|alike| alike.other.0),
            "shaped": shaped,
        })
    });
    let goodput = outcome.measured.filter(|m| m.median > 0);
    let goodput = goodput.map(|m| outcome.bytes as f64 * 1e9 / m.median as f64);
    let resident = outcome
        .pes
        .iter()
        .map(|pe| pe.peak_resident_bytes)
        .max()
        .flatten();
    json!({
        "operation": request.way.operation.name(),
        "algorithm": algorithm,
        "sync": sync,
        "pacing": pacing_name(outcome.rounds.pacing),
        "ports": if uses_all_ports(request) { "multi" } else { "single" },
        "tree": request.site.name,
        "parents": parents,
        "nodes": request.site.nodes,
        "choice": request.choice,
        "flit_bytes": outcome.rounds.flit_bytes,
        "flit_choice": outcome.rounds.flit_size,
        "packets": outcome.rounds.packets,
        "order": outcome.rounds.order,
        "trees": outcome.rounds.trees,
        "security": request.site.guard.name(),
        "rounds": request.rounds,
        "dry_run": request.is_dry_run(),
        "pes": pes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "round": {
            "bytes": outcome.bytes,
            "messages": outcome.messages,
            "predicted_us": micros(outcome.predicted_ns),
            "measured_us": outcome.measured,
            "error_pct": outcome.error_pct(),
            "slowdown": outcome.slowdown(),
            "begun_within_us": outcome.begun_within,
            "late_frames": outcome.late_frames,
            "repeated_frames": outcome.repeated_frames,
            "retransmitted_packets": outcome.retransmitted_packets(),
            "goodput_bytes_per_s": goodput,
            "collisions": outcome.collisions,
            "peak_buffered_flits": outcome.peak_buffered_flits,
            "peak_resident_bytes": resident,
            "certificates_of_round": certificates.round.map(|round| round.0),
        },
        "phases": outcome.phases,
        "costs": costs(outcome, &request.site.tree),
        "launch_us": micros(outcome.launching.as_nanos() as u64),
        "probe_us": outcome.rounds.probing.map(|time| micros(time.as_nanos() as u64)),
        "clock_uncertainty_us": micros(outcome.clock_uncertainty_ns),
    })
}

/// Returns the costs of the processes that the prediction used, and their source.
fn costs(outcome: &Outcome, tree: &Tree) -> Value {
    let costs = &outcome.rounds.costs;
    let machine = |(place, host): (usize, &Host)| {
        let there = tree.pes().filter(|pe| costs.hosts.machine_of(*pe) == place);
        machine_json(host, there.map(|pe| pe.0).collect())
    };
    let machines = costs.hosts.machines().iter().enumerate().map(machine);
    let source = costs.source();
    let rounds = match source {
        CostSource::Cached { rounds, .. } => Some(rounds),
        _ => None,
    };
    json!({
        "source": source.name(),
        "rounds": rounds,
        "machines": machines.collect::<Vec<_>>(),
        "files": outcome.rounds.files.as_ref().map(|files| json!({ "source": files.source.name() })),
    })
}

/// Returns the costs of processes on one machine, and its PEs.
fn machine_json(host: &Host, pes: Vec<u32>) -> Value {
    json!({
        "pes": pes,
        "cores": host.shared_cores,
        "wake_us": host.wake_ns / 1000.0,
        "control_us": host.control_ns / 1000.0,
        "flit_us": host.flit_ns / 1000.0,
        "message_us": host.message_ns / 1000.0,
        "first_us": host.first_ns / 1000.0,
        "send_ns_per_byte": host.send_ns_per_byte,
        "receive_ns_per_byte": host.receive_ns_per_byte,
        "end_ns_per_byte": host.end_ns_per_byte,
    })
}

/// Returns a failure as JSON text, with the retries after it, and with `algorithm` if several
/// algorithms were run.
pub fn failure_json(failure: &Failure, algorithm: Option<&str>, story: &Story) -> String {
    let aftermath = &failure.aftermath;
    let at = failure.at.as_ref();
    let below = at.iter().flat_map(|at| &at.below);
    let lacking = aftermath.lacking.iter().map(|lacking| {
        let name = failure
            .operation
            .delivery_name(&failure.tree, lacking.delivery);
        let mut told = json!({
            "pe": name.row.0,
            "bytes": lacking.bytes,
            "received_bytes": lacking.received,
        });
        if let Some(source) = name.source {
            told["source"] = source.0.into();
        }
        told
    });
    let delivered = failure.names_of(aftermath.delivered.iter().copied());
    let others = failure.others.iter();
    let others = others.map(|(pe, cause)| json!({ "pe": pe.0, "message": cause }));
    let mut result = json!({
        "error": {
            "message": failure.cause,
            "phase": failure.phase.name(),
            "pe": at.map(|at| at.pe.0),
            "address": at.and_then(|at| at.address.as_ref()),
            "pid": at.and_then(|at| at.pid),
            "host": at.and_then(|at| at.host.as_ref()),
            "parent": at.and_then(|at| at.parent).map(|parent| parent.0),
            "security": failure.guard.name(),
            "below": below.map(|pe| pe.0).collect::<Vec<_>>(),
            "round": failure.round.map(|round| round.0),
            "delivered": deliveries::values(&delivered),
            "left_without": lacking.collect::<Vec<_>>(),
            "others": others.collect::<Vec<_>>(),
        }
    });
    if let Some(algorithm) = algorithm {
        result["error"]["algorithm"] = algorithm.into();
    }
    story.add_to(&mut result);
    format!("{result:#}\n")
}
