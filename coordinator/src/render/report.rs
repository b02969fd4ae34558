//! The result on stdout as a human-readable table.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use flitcast_plan::Algorithm;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{Durability, PeId};

use crate::render::rows::{hosts, notable};
use flitcast_cluster::job::host_costs::CostSource;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::outcome::{
    MedianMinMax, Outcome, PeOutcome, Phases, PredictedVsMeasured, error_pct,
};
use flitcast_cluster::system::spool;
use flitcast_cluster::text::figures::{self, beside, fitted, wrapped};
use flitcast_cluster::text::pe_names::with_names;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::{Detail, Style, on_stdout};
use flitcast_cluster::text::units::{Bytes, Nanos, Rate, Seconds};

/// Characters before the text of a summary's line.
const INDENT: usize = 13;

/// The columns of the table from the least important one on.
const LEAST: [&str; 9] = [
    "depth",
    "host",
    "node",
    "min",
    "max",
    "parent",
    "peak memory",
    "bytes",
    "predicted",
];

/// Returns the table and the summary below it: as much as `detail` demands, and at most `width`
/// characters wide.
///
/// `is_repeated` is whether messages were in the output before.
pub fn table(
    request: &Request,
    outcome: &Outcome,
    is_repeated: bool,
    detail: Detail,
    width: Option<usize>,
) -> String {
    let is_full = detail == Detail::Full;
    let heading = wrapped(&heading(request, outcome), width.unwrap_or(usize::MAX));
    let mut out = format!("{}\n\n", on_stdout(Style::Bold, &heading.join("\n")));
    let choice = &outcome.rounds.decisions.choice;
    if let Some(choice) = choice.as_ref().filter(|_| is_full) {
        out.push_str(&beside("chosen", INDENT, &choice.to_string(), width));
        out.push('\n');
    }
    out.push_str(&rows(request, &outcome.pes, detail, width));
    out.push('\n');
    for (label, text) in summary(request, outcome, is_repeated, is_full) {
        out.push_str(&beside(&label, INDENT, &with_names(&text), width));
    }
    out
}

/// A column of a table: its heading, and the cell of a PE.
type Column<'a> = (&'static str, Box<dyn Fn(&PeOutcome) -> String + 'a>);

/// Returns the table of the PEs: of all, or of the slowest and those with most bytes.
pub fn rows(request: &Request, pes: &[PeOutcome], detail: Detail, width: Option<usize>) -> String {
    let columns = columns(request, pes);
    let mut table = figures::table(columns.iter().map(|(heading, _)| heading));
    let (shown, others) = notable(pes, detail, |pe| {
        let measured = pe.measured.map(|took| took.median);
        (measured.or(pe.predicted_ns), pe.bytes)
    });
    for pe in shown {
        table.add_row(columns.iter().map(|(_, cell)| cell(pe)));
    }
    // The first columns are names; numbers of nodes are not.
    let are_names = |(heading, _): &&Column<'_>| ["PE", "host", "parent"].contains(heading);
    let names = columns.iter().take_while(are_names).count();
    fitted(table, names, &LEAST, width) + &others
}

fn columns<'a>(request: &'a Request, pes: &[PeOutcome]) -> Vec<Column<'a>> {
    let (site, operation) = (&request.site, request.way.operation);
    let nanos = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
    let spread =
        move |pick: fn(MedianMinMax) -> u64| move |pe: &PeOutcome| nanos(pe.measured.map(pick));
    let called = |pe| site.placement.called(pe);
    let parent = |pe: &PeOutcome| site.tree.parent(pe.pe);
    let mut columns: Vec<Column<'_>> = vec![("PE", Box::new(move |pe| called(pe.pe)))];
    let joined = pes.iter().filter_map(|pe| Some((pe.pe, pe.host.clone()?)));
    let hosts = hosts(&site.placement, &joined.collect());
    let more = [("host", hosts), ("node", nodes(request))];
    for (heading, cells) in more {
        if let Some(cells) = cells {
            columns.push((heading, Box::new(move |pe| cells[pe.pe.index()].clone())));
        }
    }
    if operation.fits().stays_in_tree() {
        let above = move |pe: &PeOutcome| parent(pe).map_or("-".to_owned(), called);
        let depth = |pe: &PeOutcome| site.tree.depth(pe.pe).to_string();
        columns.push(("parent", Box::new(above)));
        columns.push(("depth", Box::new(depth)));
    }
    let bytes =
        move |pe: &PeOutcome| match parent(pe).is_some() || operation.collective().is_of_pairs() {
            true => Bytes(pe.bytes).to_string(),
            false => "-".to_owned(),
        };
    columns.push(("bytes", Box::new(bytes)));
    columns.push(("predicted", Box::new(move |pe| nanos(pe.predicted_ns))));
    if !request.is_dry_run() {
        columns.push(("measured", Box::new(spread(|took| took.median))));
        if request.rounds > 1 {
            columns.push(("min", Box::new(spread(|took| took.min))));
            columns.push(("max", Box::new(spread(|took| took.max))));
        }
        let peak = |pe: &PeOutcome| pe.peak_resident_bytes.map(|peak| Bytes(peak).to_string());
        let peak = move |pe: &PeOutcome| peak(pe).unwrap_or_default();
        columns.push(("peak memory", Box::new(peak)));
    }
    columns
}

fn heading(request: &Request, outcome: &Outcome) -> String {
    let decisions = &outcome.rounds.decisions;
    let links = request.site.links_name();
    let mut links = links.map(|links| format!("; {links}")).unwrap_or_default();
    if uses_all_ports(request) {
        links.push_str("; over all links of a PE at once");
    }
    format!(
        "{}: {}, {}, {} in flits of {}{links}",
        decisions.title(),
        counted(request.site.tree.count() as u64, "PE", "PEs"),
        counted(outcome.messages, "message", "messages"),
        Bytes(outcome.bytes),
        Bytes(decisions.flit_bytes.into()),
    )
}

/// Returns whether PEs send to all their neighbours at once.
pub fn uses_all_ports(request: &Request) -> bool {
    let operation = request.way.operation;
    operation.has_all_ports() && request.site.own_links || operation == Algorithm::EXCHANGE_AT_ONCE
}

/// Returns the network's node of each PE, unless PEs have names or the numbers of their nodes.
fn nodes(request: &Request) -> Option<Vec<String>> {
    let nodes = request.site.nodes.as_ref();
    let differ = |nodes: &&Vec<u32>| !(0..).zip(*nodes).all(|(pe, node)| pe == *node);
    let has_names = !request.site.placement.names().is_empty();
    let nodes = nodes.filter(|nodes| !has_names && differ(nodes))?;
    Some(nodes.iter().map(u32::to_string).collect())
}

/// A line of the summary: its label and its text.
type Line = (String, String);

fn line(label: &str, text: impl Into<String>) -> Line {
    (label.to_owned(), text.into())
}

/// Describes a round without messages.
pub fn nothing_to_send(is_repeated: bool) -> &'static str {
    match is_repeated {
        true => "nothing to send: everything is there already",
        false => "nothing to send: every message is null",
    }
}

fn summary(request: &Request, outcome: &Outcome, is_repeated: bool, is_full: bool) -> Vec<Line> {
    if outcome.messages == 0 {
        return vec![line("round", nothing_to_send(is_repeated))];
    }
    let mut out = times(request, outcome, is_full);
    // Compression was requested, and may not be worthwhile.
    let reasons = outcome.rounds.decisions.reasons().into_iter();
    let reasons = reasons.filter(|(label, _)| is_full || *label == "compression");
    out.extend(reasons.map(|(label, reason)| line(label, reason)));
    if is_full {
        if !request.is_dry_run() {
            out.extend(waiting(outcome));
        }
        out.extend(preparation(request, outcome));
    }
    let security = request.site.guard.description();
    out.extend(security.map(|security| line("security", security)));
    out.push(match &request.messages.payload {
        _ if request.is_dry_run() => line("dry run", "nothing was sent (--dry-run)"),
        Payload::Files(files) => {
            let matched = on_stdout(Style::Green, "every digest matched");
            let place = match spool::is_output(&files.output) {
                true => "the messages are on standard output".to_owned(),
                false => format!("files are in {}", files.output.display()),
            };
            let synced = match files.durability {
                Durability::Never => "; --sync none: the disk may not have them yet",
                Durability::Message | Durability::File => "",
            };
            line("verified", format!("{matched}; {place}{synced}"))
        }
        Payload::Synthetic { .. } => {
            let matched = on_stdout(Style::Green, "every byte and digest matched");
            line("verified", matched)
        }
    });
    out
}

/// Returns the lines with the times of a round, predicted and measured.
fn times(request: &Request, outcome: &Outcome, is_full: bool) -> Vec<Line> {
    let resent = outcome.pes.iter();
    let resent = resent.map(|pe| (pe.pe, pe.retransmitted_packets));
    let (late, resent) = lateness(outcome.slowdown(), resent);
    let whole = whole_round(request, outcome);
    let mut out = vec![line("round", whole + &late.unwrap_or_default())];
    out.extend(resent.map(|resent| line("resent", resent)));
    let phases = outcome.phases.as_ref().filter(|_| is_full);
    out.extend(phases.into_iter().flat_map(phases_of_files));
    if let Some(within) = outcome.begun_within.filter(|_| is_full) {
        let late = Nanos(within.median);
        let text = format!("all PEs at one time, the last one {late} late");
        out.push(line("begin", text));
    }
    if let late @ 1.. = outcome.late_frames {
        let one = "frame of an earlier round was dropped";
        let many = "frames of earlier rounds were dropped";
        out.push(line("late", counted(late, one, many)));
    }
    if let repeated @ 1.. = outcome.repeated_frames {
        let (one, many) = ("repeated frame was dropped", "repeated frames were dropped");
        out.push(line("repeated", counted(repeated, one, many)));
    }
    if let Some(measured) = outcome.measured.filter(|_| is_full) {
        let rate = Rate {
            bytes: outcome.bytes,
            nanos: measured.median,
        };
        out.push(line("goodput", rate.to_string()));
    }
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
    let mut out = format!("{}{what}", compared(&round));
    if let Some(took) = round.measured {
        if request.rounds > 1 {
            let (min, max) = (Nanos(took.min), Nanos(took.max));
            out.push_str(&format!(" (median of {}, {min} to {max})", request.rounds));
        }
        if took.median > 0 {
            let error = error_pct(round.predicted_ns, took.median);
            out.push_str(&match error.abs().round() {
                0.0 => "; the prediction is right within 1 %".to_owned(),
                percent if error < 0.0 => format!("; the prediction is {percent} % low"),
                percent => format!("; the prediction is {percent} % high"),
            });
        }
    }
    out
}

/// Returns the lines about the phases of a round with files.
fn phases_of_files(phases: &Phases) -> impl Iterator<Item = Line> {
    let disk = "of that, the longest wait of a PE for its files";
    let commit = "more, until all files were durable and visible";
    let all = [
        ("transfer", phases.transfer, "until the last byte arrived"),
        ("disk", phases.disk, disk),
        ("commit", phases.commit, commit),
    ];
    let has_time = |phase: &PredictedVsMeasured| {
        phase.predicted_ns > 0 || phase.measured.is_some_and(|it| it.max > 0)
    };
    let all = all.into_iter().filter(move |(_, phase, _)| has_time(phase));
    all.map(|(label, phase, what)| line(label, format!("{} {what}", compared(&phase))))
}

fn compared(both: &PredictedVsMeasured) -> String {
    let predicted = format!("predicted {}", Nanos(both.predicted_ns));
    match both.measured {
        Some(took) => format!("{predicted}, measured {}", Nanos(took.median)),
        None => predicted,
    }
}

/// Returns the lines about flits that waited in a PE or for a port.
fn waiting(outcome: &Outcome) -> Vec<Line> {
    let buffered = counted(outcome.peak_buffered_flits, "flit", "flits");
    if outcome.rounds.decisions.way.operation.is_static() {
        // One stream waits in memory while another one is received.
        let held = format!("at most {buffered} of others' messages in a PE");
        return vec![line("held", held)];
    }
    let collisions = counted(
        outcome.collisions,
        "flit that waited for a busy port",
        "flits that waited for a busy port",
    );
    let buffered = format!("at most {buffered} of a passing message in a PE");
    vec![line("collisions", collisions), line("buffered", buffered)]
}

/// Returns the lines about the time before the round, and the inputs of the prediction.
fn preparation(request: &Request, outcome: &Outcome) -> Vec<Line> {
    let probing = outcome.rounds.probing.map(|time| time.as_nanos() as u64);
    let start_up = format!(
        "{} started in {}, edges {}",
        counted(request.site.tree.count() as u64, "process", "processes"),
        Nanos(outcome.launching.as_nanos() as u64),
        match probing {
            Some(time) => format!("measured in {}", Nanos(time)),
            None => "as in the profile".to_owned(),
        },
    );
    let mut out = vec![line("start-up", start_up)];
    let alike = || outcome.rounds.measured.alike.iter().flatten();
    if let Some(first) = alike().next() {
        let edges = request.site.tree.count() - 1;
        let whole = edges - alike().count();
        let why = match first.asked {
            true => "of the others only the latencies, and their rates are assumed to be equal",
            false => "the others are on this machine, too, and assumed to be equal",
        };
        let measured = format!("{whole} of {edges} edges measured; {why}");
        out.push(line("", measured));
    }
    let costs = &outcome.rounds.costs;
    let machines = match (costs.keys.len(), request.site.placement.is_spread()) {
        (_, false) => "of this machine".to_owned(),
        (1, true) => "of the machine of all PEs".to_owned(),
        (count, true) => format!("of {count} machines"),
    };
    out.push(line("costs", costs_line(costs.source(), &machines)));
    if let threads @ 1.. = outcome.rounds.busy_threads {
        let busy = counted(threads.into(), "busy thread", "busy threads");
        out.push(line("", format!("beside {busy} of other programs")));
    }
    if let Some(files) = &outcome.rounds.files {
        out.push(line("", costs_line(files.source, "of its files")));
    }
    if let uncertainty @ 1.. = outcome.clock_uncertainty_ns {
        let within = Nanos(uncertainty);
        let text = format!("of several hosts, compared to within {within}");
        out.push(line("clocks", text));
    }
    out
}

/// Describes where the costs in the prediction come from.
fn costs_line(source: CostSource, of_what: &str) -> String {
    let ago = |age: Duration| match age.as_secs() {
        0 => "just now".to_owned(),
        seconds => format!("{} ago", Seconds(seconds)),
    };
    match source {
        CostSource::Measured => format!("{of_what}, measured just now"),
        CostSource::Cached { rounds: 0, age } => format!("{of_what}, measured {}", ago(age)),
        CostSource::Cached { rounds, age } => format!(
            "{of_what}, learned from {} since the measurement {}",
            counted(rounds, "round", "rounds"),
            ago(age),
        ),
        CostSource::Profile => "as in the profile".to_owned(),
        CostSource::Assumed => format!("{of_what}, assumed: they have not been measured"),
    }
}

/// Returns the summary line that names the picture files.
pub fn pictures_line(files: &[&Path]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let files: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
    format!("  pictures     {}\n", files.join(" and "))
}

/// Returns the end of the line with a round's times, and what was retransmitted if that line does not
/// contain it. `times` is the slowdown against the prediction, if it is worth reporting; `resent` is the
/// number of packets that TCP retransmitted at each PE.
fn lateness(
    times: Option<f64>,
    resent: impl Iterator<Item = (PeId, u64)> + Clone,
) -> (Option<String>, Option<String>) {
    let resent = retransmissions(resent);
    let Some(times) = times else {
        return (None, resent);
    };
    let why = resent.as_deref().unwrap_or("slow");
    let end = format!("; {why}, x {times:.1} against the prediction");
    (Some(end), None)
}

/// Describes the retransmitted packets: their number and the PE with most of them; `None` if there
/// were none.
fn retransmissions(resent: impl Iterator<Item = (PeId, u64)> + Clone) -> Option<String> {
    let all: u64 = resent.clone().map(|(_, packets)| packets).sum();
    let (pe, most) = resent.max_by_key(|(pe, packets)| (*packets, Reverse(*pe)))?;
    if all == 0 {
        return None;
    }
    let packets = counted(all, "packet", "packets");
    Some(match most == all {
        true => format!("TCP retransmitted {packets}, at {pe}"),
        false => format!("TCP retransmitted {packets}, most ({most}) at {pe}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lateness_of(times: Option<f64>, resent: &[u64]) -> (Option<String>, Option<String>) {
        lateness(times, (0..).map(PeId).zip(resent.iter().copied()))
    }

    #[test]
    fn retransmissions_name_the_pe_with_most() {
        for (resent, line) in [
            (&[0, 0, 1][..], "TCP retransmitted 1 packet, at P2"),
            (&[0, 41], "TCP retransmitted 41 packets, at P1"),
            (
                &[2, 0, 1, 38],
                "TCP retransmitted 41 packets, most (38) at P3",
            ),
            (&[0, 2, 2], "TCP retransmitted 4 packets, most (2) at P1"),
        ] {
            assert_eq!(lateness_of(None, resent), (None, Some(line.to_owned())));
        }
        assert_eq!(lateness_of(None, &[0, 0, 0]), (None, None));
        assert_eq!(lateness_of(None, &[]), (None, None));
    }

    #[test]
    fn a_late_round_is_slow_only_if_nothing_was_lost() {
        let slow = "; slow, x 4.1 against the prediction";
        let end = |text: &str| (Some(text.to_owned()), None);
        assert_eq!(lateness_of(Some(4.09), &[0, 0]), end(slow));
        let lost = "; TCP retransmitted 3 packets, most (2) at P1, x 4.1 against the prediction";
        assert_eq!(lateness_of(Some(4.09), &[1, 2]), end(lost));
    }
}
