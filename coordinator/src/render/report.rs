//! The result on stdout as a human-readable table.

use std::path::Path;
use std::time::Duration;

use flitcast_plan::Algorithm;
use flitcast_proto::wire::control::Payload;

use crate::render::lateness::lateness;
use flitcast_cluster::algorithms::method::Method;
use flitcast_cluster::job::host_costs::CostSource;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::names::pacing_name;
use flitcast_cluster::rounds::outcome::{
    MedianMinMax, Outcome, PeOutcome, Phases, PredictedVsMeasured, error_pct,
};
use flitcast_cluster::text::figures::{self, lines};
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};
use flitcast_cluster::text::words::counted;

/// Returns the table and the summary below it.
pub fn table(request: &Request, outcome: &Outcome) -> String {
    let mut header = vec!["PE", "parent", "depth", "bytes", "predicted"];
    let has_nodes = nodes(request).is_some();
    if has_nodes {
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
    let names = if has_nodes { 1 } else { 2 };
    let mut out = heading(request, outcome);
    if let Some(choice) = &outcome.rounds.decisions.choice {
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
    let decisions = &outcome.rounds.decisions;
    let way = way_as_text(&decisions.way, pacing_name(decisions.pacing_of_orders()));
    let links = request.site.links_name();
    let mut links = links.map(|links| format!("; {links}")).unwrap_or_default();
    if uses_all_ports(request) {
        links.push_str("; over all links of a PE at once");
    }
    format!(
        "{} {}: {}, {way}; {}, {} in flits of {}{links}\n\n",
        decisions.way.operation.collective().name(),
        decisions.tree,
        counted(request.site.tree.count() as u64, "PE", "PEs"),
        counted(outcome.messages, "message", "messages"),
        Bytes(outcome.bytes),
        Bytes(decisions.flit_bytes.into()),
    )
}

/// Returns an algorithm with its synchronisation and its pacing, if it has any.
pub fn way_as_text(way: &Method, pacing: Option<&str>) -> String {
    let parts = [Some(way.algorithm()), way.sync(), pacing];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns whether PEs send to all their neighbours at once.
pub fn uses_all_ports(request: &Request) -> bool {
    let operation = request.way.operation;
    operation.has_all_ports() && request.site.own_links || operation == Algorithm::EXCHANGE_AT_ONCE
}

/// Returns the network's node of each PE, unless PEs have names.
fn nodes(request: &Request) -> Option<&Vec<u32>> {
    let nodes = request.site.nodes.as_ref();
    nodes.filter(|_| request.site.placement.names().is_empty())
}

fn row(request: &Request, pe: &PeOutcome) -> Vec<String> {
    let nanos = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
    let spread = |pick: fn(MedianMinMax) -> u64| nanos(pe.measured.map(pick));
    let parent = request.site.tree.parent(pe.pe);
    let mut row = vec![
        request.site.placement.called(pe.pe),
        parent.map_or("-".to_owned(), |parent| parent.to_string()),
        request.site.tree.depth(pe.pe).to_string(),
        match parent.is_some() || request.way.operation.collective().is_of_pairs() {
            true => Bytes(pe.bytes).to_string(),
            false => "-".to_owned(),
        },
        nanos(pe.predicted_ns),
    ];
    if let Some(nodes) = nodes(request) {
        row.insert(1, nodes[pe.pe.index()].to_string());
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
    for (label, reason) in outcome.rounds.decisions.reasons() {
        out.push_str(&format!("  {label:<12} {reason}\n"));
    }
    if request.is_dry_run() {
        out.push_str(&preparation(request, outcome));
        return out;
    }
    out.push_str(&waiting(request, outcome));
    out.push_str(&preparation(request, outcome));
    out.push_str(&match &request.messages.payload {
        Payload::Files(files) => {
            format!(
                "  verified     every digest matched; files are in {}\n",
                files.output.display()
            )
        }
        Payload::Synthetic { .. } => "  verified     every byte and digest matched\n".to_owned(),
    });
    out
}

/// Returns the lines with the times of a round, predicted and measured.
fn times(request: &Request, outcome: &Outcome) -> String {
    let mut out = format!("  round        {}", whole_round(request, outcome));
    let resent = outcome.pes.iter();
    let resent = resent.map(|pe| (pe.pe, pe.retransmitted_packets));
    out.push_str(&lateness(outcome.slowdown(), resent));
    if let Some(phases) = &outcome.phases {
        out.push_str(&phases_of_files(phases));
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

/// Describes the time of a round until its purpose is fulfilled: delivered messages or visible files.
fn whole_round(request: &Request, outcome: &Outcome) -> String {
    let (round, what) = match outcome.phases {
        Some(Phases { whole, .. }) => (whole, " until every file was visible"),
        None => (
            PredictedVsMeasured {
                predicted_ns: outcome.predicted_ns,
                measured: outcome.measured,
            },
            "",
        ),
    };
    let mut out = format!("{}{what}", beside(&round));
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
    out
}

/// Returns the lines about the phases of a round with files, each after a line break.
fn phases_of_files(phases: &Phases) -> String {
    let lines = [
        ("transfer", phases.transfer, "until the last byte had come"),
        (
            "disk",
            phases.disk,
            "of that, the longest that a PE waited for its files",
        ),
        (
            "commit",
            phases.commit,
            "more, until all was durable and visible",
        ),
    ];
    let line = |(label, phase, what)| format!("\n  {label:<12} {} {what}", beside(&phase));
    lines.into_iter().map(line).collect()
}

fn beside(both: &PredictedVsMeasured) -> String {
    let predicted = format!("predicted {}", Nanos(both.predicted_ns));
    match both.measured {
        Some(took) => format!("{predicted}, measured {}", Nanos(took.median)),
        None => predicted,
    }
}

/// Returns the lines about flits that waited in a PE or for a port.
fn waiting(request: &Request, outcome: &Outcome) -> String {
    let buffered = counted(outcome.peak_buffered_flits, "flit", "flits");
    match request.way.operation.is_static() {
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
    if let threads @ 1.. = outcome.rounds.busy_threads {
        let busy = counted(threads.into(), "busy thread", "busy threads");
        out.push_str(&format!("               beside {busy} of other programs\n"));
    }
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
