//! Tests that a written profile is read back, and that errors are reported.

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::tree::TreeSpec;
use proptest::prelude::*;

use super::*;

fn tree(spec: &str) -> Tree {
    let spec: TreeSpec = spec.parse().unwrap();
    spec.build().unwrap()
}

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
        clocks: vec![
            ClockOffset::SHARED,
            ClockOffset::SHARED,
            remote,
            ClockOffset::SHARED,
        ],
    }
}

#[test]
fn what_is_written_is_read() {
    let profile = profile();
    let text = profile.text();
    assert_eq!(
        Profile::parse(&text, Some(&tree("kary:2:4"))),
        Ok(profile),
        "{text}"
    );
}

/// Checks that `text` is refused, with each of `causes` at its line.
#[track_caller]
fn refused(text: &str, causes: &[(Option<usize>, &str)]) {
    let faults = Profile::parse(text, Some(&tree("kary:2:4"))).unwrap_err();
    let said: Vec<_> = faults
        .iter()
        .map(|f| (f.spot.map(|spot| spot.line), f.fault.to_string()))
        .collect();
    assert_eq!(said.len(), causes.len(), "{said:#?}");
    for ((line, said), (expected_line, cause)) in said.iter().zip(causes) {
        assert_eq!(line, expected_line, "{said}");
        assert!(said.contains(cause), "no `{cause}` in: {said}");
    }
}

/// Returns the text with its `nth` line that contains `from` changed, and that line's number.
#[track_caller]
fn changed(from: &str, nth: usize, to: &str) -> (String, Option<usize>) {
    let text = profile().text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let places = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains(from));
    let place = places
        .map(|(place, _)| place)
        .nth(nth)
        .expect("there is such a line");
    lines[place] = lines[place].replace(from, to);
    (lines.join("\n") + "\n", Some(place + 1))
}

#[test]
fn another_version_or_none_hides_the_rest() {
    let (text, line) = changed("version = 1", 0, "version = 2\nunknown = 1");
    refused(
        &text,
        &[(line, "version `2`: this flitcast reads version 1")],
    );
    let (text, line) = changed("version = 1", 0, "version = \"1\"");
    refused(&text, &[(line, "version `\"1\"`")]);
    refused("", &[(None, "no version")]);
    refused("parents = [0, 0, 1]", &[(None, "no version")]);
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let (text, line) = changed("[host]", 0, "[host");
    let faults = Profile::parse(&text, None).unwrap_err();
    assert_eq!(faults[0].spot.map(|spot| spot.line), line);
    let (text, line) = changed("flit_bytes = 65536", 0, "flit_bytes = 1\nflit_bytes = 2");
    let faults = Profile::parse(&text, None).unwrap_err();
    assert_eq!(
        faults[0].spot.map(|spot| spot.line),
        line.map(|line| line + 1),
        "{faults:?}"
    );
}

#[test]
fn another_tree_is_refused_with_the_difference() {
    let of = |spec: &str| {
        let faults = Profile::parse(&profile().text(), Some(&tree(spec))).unwrap_err();
        assert_eq!(
            (faults.len(), faults[0].spot.map(|spot| spot.line)),
            (1, Some(5)),
            "{faults:?}"
        );
        faults[0].fault.to_string()
    };
    let size = of("kary:2:5");
    assert!(
        size.contains("kary:2:4, with 4 PEs, and this tree has 5"),
        "{size}"
    );
    let shape = of("path:4");
    assert!(
        shape.contains("P2's parent is P0, here it is P1, and one more differs"),
        "{shape}"
    );
    let star = of("star:4");
    assert!(
        star.contains("P3's parent is P1, here it is P0; calibrate"),
        "{star}"
    );
    // No tree was requested.
    assert!(Profile::parse(&profile().text(), None).is_ok());
}

#[test]
fn edges_that_are_missing_twice_or_nobodys() {
    // Lines between the fault's position and the changed line: at its table, or the line itself.
    for (to, above, cause) in [
        ("child = 2", 1, "to P2 stands in line"),
        ("child = 9", 1, "no edge to P9: with these parents"),
        ("", 1, "`child` is missing in this [[edge]]"),
        ("child = 0", 0, "child in this [[edge]] must be"),
    ] {
        let (text, line) = changed("child = 3", 0, to);
        let line = line.map(|line| line - above);
        refused(&text, &[(None, "of the edge to P3"), (line, cause)]);
    }
    let text = profile().text();
    let (head, _) = text.split_once("[[edge]]").unwrap();
    refused(head, &[(None, "of the edges to P1, P2, P3")]);
}

/// Lines of a profile with nonsense, and parts of the faults that they cause.
const NONSENSE: &str = r#"
wake_ns = -1                                    | wake_ns in host must be a number from 0 to 1000000000, not `-1`
wake_ns = nan                                   | not `nan`
wake_ns = inf                                   | not `inf`
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
        let faults = Profile::parse(&lines.join("\n"), None).unwrap_err();
        let told = |fault: &&PositionedError| fault.fault.to_string().contains(cause);
        let found = faults.iter().find(told);
        let found = found.unwrap_or_else(|| panic!("{row}: {faults:?}"));
        assert_eq!(found.spot.map(|spot| spot.line), Some(place + 1), "{row}");
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
        let (text, line) = changed(after, 0, &format!("{after}\nspeed = 3"));
        let line = line.map(|line| line + 1);
        let cause = "unknown key `speed`; known here: ";
        refused(&text, &[(line, cause)]);
        let faults = Profile::parse(&text, None).unwrap_err();
        assert!(faults[0].fault.to_string().contains(inside), "{faults:?}");
    }
    let (text, _) = changed("tree = \"kary:2:4\"", 0, "");
    refused(&text, &[(None, "`tree` is missing")]);
    let (text, line) = changed("wake_ns = ", 0, "# ");
    let host = text
        .lines()
        .position(|line| line == "[host]")
        .map(|place| place + 1);
    assert!(line > host);
    refused(&text, &[(host, "`wake_ns` is missing in host")]);
}

#[test]
fn all_faults_are_told_at_once() {
    let text = profile().text();
    let text = text.replace("flit_bytes = 65536", "flit_bytes = 1\nspeed = 9");
    let text = text.replace("overlap = 0.75", "overlap = -1");
    let text = text.replace("child = 2", "child = 1");
    let faults = Profile::parse(&text, Some(&tree("path:4"))).unwrap_err();
    let lines: Vec<_> = faults
        .iter()
        .map(|fault| fault.spot.map(|spot| spot.line))
        .collect();
    assert_eq!(faults.len(), 6, "{faults:?}");
    assert!(lines.is_sorted());
}

#[test]
fn a_file_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let said = |name: &str| {
        Profile::load(&dir.path().join(name), None)
            .unwrap_err()
            .to_string()
    };
    assert!(said("none.toml").contains("cannot read the profile"));
    assert!(said("").contains("cannot read the profile"));
    std::fs::write(dir.path().join("binary"), [0xff, 0xfe, 0]).unwrap();
    assert!(said("binary").contains("UTF-8"));
    let long = std::fs::File::create(dir.path().join("long")).unwrap();
    long.set_len(FILE.max_bytes + 1).unwrap();
    assert!(
        said("long").contains("has more than 1048576 bytes"),
        "{}",
        said("long")
    );
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
            busy_threads: 0,
            wake_ns: costs[0],
            control_ns: costs[1],
            flit_ns: costs[2],
            send_ns_per_byte: costs[3],
            receive_ns_per_byte: costs[4],
            end_ns_per_byte: costs[5],
            message_ns: costs[6],
            first_ns: costs[7],
        };
        all.clocks[2] = ClockOffset { offset_ns, uncertainty_ns };
        for (edge, (down, up)) in all.edges[1..].iter_mut().zip(edges) {
            *edge = MeasuredEdge { down, up };
        }
        let text = all.text();
        prop_assert_eq!(Profile::parse(&text, None), Ok(all), "{}", text);
    }

    #[test]
    fn any_text_is_a_profile_or_an_error(text in "version = 1\n[ -~\n]{0,200}") {
        let _ = Profile::parse(&text, None);
    }
}
