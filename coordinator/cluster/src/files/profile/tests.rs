//! Tests that a written profile is read back, and that errors are reported.

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::tree::TreeSpec;
use proptest::prelude::*;

use super::*;
use crate::files::user_file::PositionedError;

fn estimate(value: f64) -> Estimate {
    Estimate {
        value,
        low: value / 2.0,
        high: value * 2.0,
    }
}

fn link(latency_ns: f64) -> MeasuredLink {
    MeasuredLink {
        latency_ns: estimate(latency_ns),
        setup_ns: estimate(2_500.0),
        ns_per_byte: estimate(0.25),
        burst_bytes: estimate(0.0),
    }
}

/// Returns a profile of kary:2:4.
fn profile() -> Profile {
    let edge = MeasuredEdge {
        down: link(14_000.0),
        up: link(16_000.0),
    };
    let remote = ClockOffset {
        offset_ns: -7_000_000_001,
        uncertainty_ns: 41_000,
    };
    Profile {
        measured: "2026-11-20T13:00:00Z".to_owned(),
        tree_name: "kary:2:4".to_owned(),
        parents: vec![0, 0, 1],
        links: None,
        encrypted: false,
        flit_bytes: 65_536,
        host: Host {
            shared_cores: Some(2),
            ..crate::job::model::assumed_host()
        },
        pacing: Pacing::Turns,
        ports: Ports::PerEdge,
        buffer_bytes: 4 << 20,
        relay: Some(Relay {
            added_latency_ns: 40_500.0,
            overlap: 0.75,
        }),
        fit: Fit {
            workloads: vec![
                "scatter 1000 B each".to_owned(),
                "a \"quoted\" one".to_owned(),
            ],
            median_residual_pct: 3.5,
            worst_residual_pct: 12.0,
        },
        edges: vec![MeasuredEdge::default(), edge, edge, edge],
        clocks: [[ClockOffset::SHARED; 2], [remote, ClockOffset::SHARED]].concat(),
    }
}

/// Returns the errors in `text`, each with its line.
#[track_caller]
fn errors(text: &str) -> Vec<(Option<usize>, String)> {
    let faults = Profile::parse(text, None).unwrap_err();
    let with_line = |fault: PositionedError| (fault.spot.map(|spot| spot.line), fault.fault);
    faults.into_iter().map(with_line).collect()
}

/// Checks that `text` is refused, with each of `causes` at its line.
#[track_caller]
fn refused(text: &str, causes: &[(Option<usize>, &str)]) {
    let errors = errors(text);
    assert_eq!(errors.len(), causes.len(), "{errors:#?}");
    for ((line, message), (expected_line, cause)) in errors.iter().zip(causes) {
        assert_eq!(line, expected_line, "{message}");
        assert!(message.contains(cause), "no `{cause}` in: {message}");
    }
}

/// Returns the text with its first line that contains `from` changed, and that line's number.
#[track_caller]
fn changed(from: &str, to: &str) -> (String, Option<usize>) {
    let text = profile().text();
    let place = text.lines().position(|line| line.contains(from));
    let line = place.expect("there is such a line") + 1;
    (text.replacen(from, to, 1), Some(line))
}

#[test]
fn missing_and_repeated_and_unknown_edges_are_refused() {
    // Lines between the fault's position and the changed line: at its table, or the line itself.
    for (to, above, cause) in [
        ("child = 2", 1, "to P2 is in line"),
        ("child = 9", 1, "no edge to P9: with these parents"),
        ("", 1, "`child` is missing in this [[edge]]"),
        ("child = 0", 0, "child in this [[edge]] must be"),
    ] {
        let (text, line) = changed("child = 3", to);
        let line = line.map(|line| line - above);
        refused(&text, &[(None, "of the edge to P3"), (line, cause)]);
    }
    let text = profile().text();
    let (head, _) = text.split_once("[[edge]]").unwrap();
    refused(head, &[(None, "of the edges to P1, P2, P3")]);
}

/// Lines of a profile with nonsense, and parts of the faults that they cause.
const NONSENSE: &str = r#"
wake_ns = 1e99                                  | not `1e99`
wake_ns = "fast"                                | not `"fast"`
wake_ns = [30, 40]                              | not `[30, 40]`
end_ns_per_byte = 1e6                           | from 0 to 1000
shared_cores = 0                                | from 1 to 65536, not `0`
shared_cores = 1.5                              | a whole number from 1
buffer_bytes = 1                                | buffer_bytes in host
flit_bytes = 63                                 | flit_bytes must be a whole number from 64 to 1048576
ports = "two"                                   | "single" or "per-edge"
pacing = "slow"                                 | "scheduled", "turns" or "eager"
overlap = 1.5                                   | overlap in relay must be a number from 0 to 1
worst_residual_pct = -3                         | worst_residual_pct in fit
measured = "today"                              | measured must be a date and time
measured = 12:00:00                             | measured must be a date and time
latency_us = [-1, 0, 1]                         | latency_us in down of the edge to P1
latency_us = [14, 15, 16]                       | 14 does not lie between 15 and 16
latency_us = [14, 15]                           | three numbers, [value, low, high]
latency_us = 14                                 | latency_us must be a list
latency_us = [6.1e7, 0, 7e7]                    | from 0 to 60000000
ns_per_byte = [0, 0, 1]                         | ns_per_byte in down of the edge to P1 must be
ns_per_byte = [1, 0, inf]                       | not `inf`
burst_bytes = [1e12, 0, 1e12]                   | burst_bytes in down
clock = { offset_ns = 1.5, uncertainty_ns = 0 } | offset_ns in clock of the edge to P1
clock = { offset_ns = 0, uncertainty_ns = -1 }  | uncertainty_ns in clock
clock = { offset_ns = 0 }                       | `uncertainty_ns` is missing in clock of the edge to P1
child = 1_000_000                               | child in this [[edge]] must be a whole number
"#;

#[test]
fn numbers_that_make_no_sense() {
    for row in NONSENSE.trim().lines() {
        let (wrong, cause) = row.split_once(" | ").unwrap();
        let key = &wrong[..wrong.find('=').unwrap() + 2];
        let text = profile().text();
        // The first line with this key is replaced.
        let place = text.lines().position(|line| line.starts_with(key)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines[place] = wrong;
        let errors = errors(&lines.join("\n"));
        let is_reported =
            |(line, message): &(_, String)| *line == Some(place + 1) && message.contains(cause);
        assert!(errors.iter().any(is_reported), "{row}: {errors:?}");
    }
}

#[test]
fn unknown_and_missing_keys_everywhere() {
    for (after, inside) in [
        ("version = 1", "measured"),
        ("[host]", "wake_ns"),
        ("[relay]", "overlap"),
        ("[fit]", "workloads"),
        ("[[edge]]", "child"),
        ("[edge.down]", "latency_us"),
    ] {
        let (text, line) = changed(after, &format!("{after}\nspeed = 3"));
        let line = line.map(|line| line + 1);
        refused(&text, &[(line, "unknown key `speed`; known here: ")]);
        let errors = errors(&text);
        assert!(errors[0].1.contains(inside), "{errors:?}");
    }
    let (text, _) = changed("tree = \"kary:2:4\"", "");
    refused(&text, &[(None, "`tree` is missing")]);
    let (_, host) = changed("[host]", "");
    let (text, line) = changed("wake_ns = ", "# ");
    assert!(line > host);
    refused(&text, &[(host, "`wake_ns` is missing in host")]);
}

fn any_estimate(whole: bool, least: f64, most: f64) -> impl Strategy<Value = Estimate> {
    (least..most, 0.0..1.0f64, 1.0..3.0f64).prop_map(move |(value, below, above)| {
        let all = [value, value * below, value * above];
        let [value, low, high] = if whole { all.map(f64::round) } else { all };
        Estimate { value, low, high }
    })
}

fn any_link() -> impl Strategy<Value = MeasuredLink> {
    let parts = (
        any_estimate(true, 0.0, 1e10),
        any_estimate(true, 0.0, 1e9),
        any_estimate(false, 1e-3, 1e6),
        any_estimate(false, 0.0, 1e8),
    );
    parts.prop_map(
        |(latency_ns, setup_ns, ns_per_byte, burst_bytes)| MeasuredLink {
            latency_ns,
            setup_ns,
            ns_per_byte,
            burst_bytes,
        },
    )
}

proptest! {
    #[test]
    fn any_profile_that_is_written_is_read(
        links in prop::option::of("[ -~\n\t]{0,20}"),
        encrypted: bool,
        costs in prop::array::uniform8(0.0..1000.0f64),
        cores in prop::option::of(1..9u32),
        offset_ns: i64,
        uncertainty_ns in 0..1u64 << 60,
        edges in prop::collection::vec((any_link(), any_link()), 3),
    ) {
        let mut all = profile();
        all.links = links;
        all.encrypted = encrypted;
        all.host = Host {
            shared_cores: cores,
            ..Host::NONE.with_costs(costs)
        };
        all.clocks[2] = ClockOffset { offset_ns, uncertainty_ns };
        for (edge, (down, up)) in all.edges[1..].iter_mut().zip(edges) {
            *edge = MeasuredEdge { down, up };
        }
        let text = all.text();
        let tree = "kary:2:4".parse::<TreeSpec>().unwrap().build().unwrap();
        prop_assert_eq!(Profile::parse(&text, Some(&tree)), Ok(all), "{}", text);
    }

    #[test]
    fn any_text_is_a_profile_or_an_error(text in "version = 1\n[ -~\n]{0,200}") {
        let _ = Profile::parse(&text, None);
    }
}
