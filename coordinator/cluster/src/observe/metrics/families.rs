//! The metrics, in the text format of Prometheus, version 0.0.4. A PE reports its own counters; a command reports
//! the counters of all its PEs under the same names, and those of the rounds that it conducted.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use flitcast_node::Tally;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{Counts, EdgeCounts};

use crate::observe::live::{BOUNDS_S, Histogram, RoundKind, Totals};

/// Returns the metrics page of a command.
pub fn coordinator(totals: &Totals) -> String {
    let mut page = Exposition::default();
    build_info(&mut page);
    let help = "Rounds that were triggered and have ended, by how they ended.";
    let mut family = page.family("flitcast_rounds_total", "counter", help);
    for ((kind, end), rounds) in &totals.rounds {
        let [operation, algorithm] = labels(kind);
        family.sample(&[operation, algorithm, ("outcome", &end.name())], rounds);
    }
    let help = "From the trigger of a round until P0 has told that it is done.";
    histograms(&mut page, "flitcast_round_seconds", help, &totals.measured);
    let help = "What the rounds of flitcast_round_seconds were predicted to take.";
    let name = "flitcast_round_predicted_seconds";
    histograms(&mut page, name, help, &totals.predicted);
    errors(&mut page, &totals.errors);
    pes(&mut page, &totals.pes);
    page.text()
}

/// Returns the metrics page of a PE.
pub fn node(pe: PeId, tally: &Tally) -> String {
    let mut page = Exposition::default();
    build_info(&mut page);
    errors(&mut page, &tally.errors());
    pes(&mut page, &BTreeMap::from([(pe, tally.counts())]));
    page.text()
}

fn build_info(page: &mut Exposition) {
    let help = "1; what this is, is in the labels.";
    let mut family = page.family("flitcast_build_info", "gauge", help);
    family.sample(&[("version", &env!("CARGO_PKG_VERSION"))], 1);
}

fn errors(page: &mut Exposition, errors: &BTreeMap<&'static str, u64>) {
    let help = "What ended a launch or a round, by kind.";
    let mut family = page.family("flitcast_errors_total", "counter", help);
    for (kind, count) in errors {
        family.sample(&[("kind", kind)], count);
    }
}

/// A counter of one edge, as one of its ends sees it: its name, its help and its value.
type OfEdge = (&'static str, &'static str, fn(&EdgeCounts) -> u64);
/// A metric of one PE: its name, its type, its help and its value.
type OfPe = (&'static str, &'static str, &'static str, fn(&Counts) -> u64);

const OF_EDGES: [OfEdge; 4] = [
    (
        "flitcast_edge_received_bytes_total",
        "Frames of rounds received from a neighbour, with their lengths and seals.",
        |edge| edge.received_bytes,
    ),
    (
        "flitcast_edge_sent_bytes_total",
        "Frames of rounds sent to a neighbour, with their lengths and seals.",
        |edge| edge.sent_bytes,
    ),
    (
        "flitcast_edge_received_flits_total",
        "Flits received from a neighbour.",
        |edge| edge.received_flits,
    ),
    (
        "flitcast_edge_sent_flits_total",
        "Flits sent to a neighbour.",
        |edge| edge.sent_flits,
    ),
];

const OF_PES: [OfPe; 9] = [
    (
        "flitcast_pe_rounds_begun_total",
        "counter",
        "Rounds of which the PE has received anything.",
        |counts| counts.rounds_begun,
    ),
    (
        "flitcast_pe_rounds_done_total",
        "counter",
        "Rounds that the PE has completed.",
        |counts| counts.rounds_done,
    ),
    (
        "flitcast_round_moved_bytes",
        "gauge",
        "Payload of the latest round that the PE sent as its own, or received as its own.",
        |counts| counts.moved_bytes,
    ),
    (
        "flitcast_collisions_total",
        "counter",
        "Flits that had to wait for a busy port.",
        |counts| counts.collisions,
    ),
    (
        "flitcast_late_frames_total",
        "counter",
        "Frames of earlier rounds, which were dropped.",
        |counts| counts.late_frames,
    ),
    (
        "flitcast_repeated_frames_total",
        "counter",
        "Repeated frames, which were dropped.",
        |counts| counts.repeated_frames,
    ),
    (
        "flitcast_buffered_flits",
        "gauge",
        "Flits of passing messages in the PE's memory.",
        |counts| counts.buffered_flits,
    ),
    (
        "flitcast_peak_buffered_flits",
        "gauge",
        "The most flits of passing messages that were in the PE's memory.",
        |counts| counts.peak_buffered_flits,
    ),
    (
        "flitcast_resident_memory_bytes",
        "gauge",
        "The resident set of the PE's process.",
        |counts| counts.resident_bytes,
    ),
];

fn pes(page: &mut Exposition, pes: &BTreeMap<PeId, Counts>) {
    for (name, help, value) in OF_EDGES {
        let mut family = page.family(name, "counter", help);
        for (pe, counts) in pes {
            for edge in &counts.edges {
                family.sample(&[("pe", pe), ("peer", &edge.peer)], value(edge));
            }
        }
    }
    for (name, kind, help, value) in OF_PES {
        let mut family = page.family(name, kind, help);
        for (pe, counts) in pes {
            family.sample(&[("pe", pe)], value(counts));
        }
    }
    let help = "How late own messages began, where a schedule says when they are to.";
    let mut family = page.family("flitcast_slip_seconds", "summary", help);
    for (pe, counts) in pes {
        let slip = Duration::from_nanos(counts.slip_ns).as_secs_f64();
        family.part("_sum", &[("pe", pe)], slip);
        family.part("_count", &[("pe", pe)], counts.slips);
    }
}

fn labels(kind: &RoundKind) -> [(&'static str, &dyn Display); 2] {
    [
        ("operation", &kind.operation),
        ("algorithm", &kind.algorithm),
    ]
}

fn histograms(
    page: &mut Exposition,
    name: &'static str,
    help: &str,
    histograms: &BTreeMap<RoundKind, Histogram>,
) {
    let mut family = page.family(name, "histogram", help);
    for (kind, histogram) in histograms {
        let kind = labels(kind);
        let mut bucket = |bound: &dyn Display, times: u64| {
            family.part("_bucket", &[kind[0], kind[1], ("le", bound)], times);
        };
        let mut below = 0;
        for (bound, within) in BOUNDS_S.iter().zip(histogram.within) {
            below += within;
            bucket(bound, below);
        }
        bucket(&"+Inf", histogram.count);
        family.part("_sum", &kind, histogram.sum.as_secs_f64());
        family.part("_count", &kind, histogram.count);
    }
}

/// A page of metrics.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

impl Exposition {
    /// Starts a metric family of a type of Prometheus; its samples follow.
    pub fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: self, name }
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// The metrics of one name.
#[derive(Debug)]
pub struct Family<'a> {
    page: &'a mut Exposition,
    name: &'static str,
}

impl Family<'_> {
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.part("", labels, value);
    }

    /// Writes one sample of a histogram or a summary; `suffix` is appended to the metric's name.
    pub fn part(&mut self, suffix: &str, labels: Labels<'_>, value: impl Display) {
        let text = &mut self.page.0;
        let _ = write!(text, "{}{suffix}", self.name);
        for (i, (name, value)) in labels.iter().enumerate() {
            let value = value.to_string();
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let value = value.replace('\n', "\\n");
            let before = if i == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{name}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_contain_any_text() {
        let mut page = Exposition::default();
        let mut family = page.family("a_total", "counter", "Two\nlines, one \\.");
        family.sample(&[], 1);
        family.sample(&[("pe", &"P1"), ("kind", &"a \"b\"\\\n")], 0.5);
        let expected = concat!(
            "# HELP a_total Two\\nlines, one \\\\.\n# TYPE a_total counter\n",
            "a_total 1\na_total{pe=\"P1\",kind=\"a \\\"b\\\"\\\\\\n\"} 0.5\n"
        );
        assert_eq!(page.text(), expected);
    }
}
