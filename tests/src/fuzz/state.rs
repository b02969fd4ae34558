//! Targets that are neither messages nor files of users: files of `flitcast calibrate` and
//! `flitcast up`, which may have been changed, and requests to the metrics page.

use flitcast_cluster::parsers;

use super::PART;
use super::target::{Target, parse_text};

/// `--profile FILE`.
pub(super) const PROFILE: Target = Target {
    name: "profile",
    feed: profile,
    examples: || vec![PROFILE_OF_TWO.as_bytes().to_vec()],
    words: "[[edge]]|[edge.up]|child = |clock = |parents = |tree = |\"kary:2:4\"|ns_per_byte = |\
            uncertainty_ns = |-1|1e308|nan|inf|9223372036854775807|0.0000001|[|]|{|}",
};

/// A request to `--metrics ADDR`.
pub(super) const REQUEST: Target = Target {
    name: "request",
    feed: request,
    examples: || {
        let lines = ["GET /metrics", "GET /metrics?a=b", "POST /metrics", "GET /"];
        let whole = |line| format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes();
        lines.map(whole).to_vec()
    },
    words: "\r\n|\r\n\r\n| |?|/metrics|HTTP/1.1|GET ",
};

/// `cluster.json` of a running cluster.
pub(super) const KEPT_CLUSTER: Target = Target {
    name: "kept-cluster",
    feed: |text| parse_text(text, parsers::kept_cluster),
    examples: || {
        let text = r#"{"name": "two", "file": "/c.toml", "digest": "00ff", "root": "a",
            "spanning": "bfs", "pes": 3, "coordinator": "127.0.0.1:17001",
            "guard": "credentials", "credentials": "/keys", "since_s": 1800000000}"#;
        let insecure = text.replace("\"credentials\"", "\"insecure\"");
        vec![text.into(), insecure.into()]
    },
    words: JSON_WORDS,
};

/// `pes.json` of a running cluster.
pub(super) const KEPT_PES: Target = Target {
    name: "kept-pes",
    feed: |text| parse_text(text, parsers::kept_pes),
    examples: || {
        let text = r#"{"keeper": 4711, "pes": [
            {"pe": 0, "process": 12, "since_s": 1800000000, "starts": 1, "ends": 0, "end": null},
            {"pe": 1, "process": null, "since_s": 0, "starts": 2, "ends": 2, "end": "killed"}]}"#;
        vec![text.into()]
    },
    words: JSON_WORDS,
};

/// `rounds.jsonl` of a running cluster.
pub(super) const KEPT_ROUNDS: Target = Target {
    name: "kept-rounds",
    feed: kept_rounds,
    examples: || {
        let line = r#"{"at_s": 1800000000, "what": "scatter", "rounds": 3, "outcome": "done"}"#;
        vec![line.into(), format!("{line}\n{line}\n").into(), "\n".into()]
    },
    words: JSON_WORDS,
};

const JSON_WORDS: &str =
    "null|18446744073709551615|4294967296|-1|1e400|\"\\u0000\"|\"since_s\":|\"pes\":|[|]|{|}|\n";

/// Checks that a valid profile is written to one that is parsed to the same value.
fn profile(text: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(text);
    let Ok(written) = parsers::profile(&text) else {
        return parse_text(text.as_bytes(), parsers::profile);
    };
    match parsers::profile(&written) {
        Ok(again) if again == written => Ok("a profile".to_owned()),
        Ok(again) => Err(format!("{written}\nis written as\n{again}")),
        Err(faults) => Err(format!("{written}\nis refused: {faults:?}")),
    }
}

/// Checks that each line is parsed independently of the others.
fn kept_rounds(text: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(text);
    let read = |text: &str| parsers::kept_rounds(text).map_err(|faults| faults.join("; "));
    let is_round = |line: &str| Ok(read(line)? != read("")?);
    let lines = text.lines().map(is_round);
    let lines = lines.collect::<Result<Vec<bool>, String>>()?;
    if lines.contains(&true) == (read(&text)? == read("")?) {
        return Err("lines are read otherwise than one by one".to_owned());
    }
    let answers = lines.iter().map(|is_round| match is_round {
        true => "a round",
        false => "no round",
    });
    Ok(answers.collect::<Vec<_>>().join(PART))
}

/// Checks that only one request is granted, and that the answer to others is one line.
fn request(bytes: &[u8]) -> Result<String, String> {
    match parsers::request(bytes) {
        Ok(_) if !bytes.starts_with(b"GET /metrics") => Err("no GET, and granted".to_owned()),
        Ok(granted) => Ok(granted),
        Err(answer) if answer.iter().any(|line| line.contains(['\r', '\n'])) => {
            Err(format!("a second header line: {answer:?}"))
        }
        Err(answer) => Ok(answer.join(" ")),
    }
}

const PROFILE_OF_TWO: &str = r#"version = 1
measured = 2026-11-20T14:24:33Z
tree = "path:2"
parents = [0]
flit_bytes = 65536
pacing = "scheduled"
[host]
shared_cores = 2
wake_ns = 15000
control_ns = 9764
flit_ns = 4519
send_ns_per_byte = 0.09435
receive_ns_per_byte = 0.09455
end_ns_per_byte = 0.04723
message_ns = 15250
ports = "single"
buffer_bytes = 4194304
[relay]
added_latency_us = 24.038
overlap = 1
[fit]
median_residual_pct = 0.309
worst_residual_pct = 0.532
workloads = ["scatter equal:1031"]
[[edge]]
child = 1
clock = { offset_ns = -7000000001, uncertainty_ns = 41000 }
[edge.down]
latency_us = [1031.943, 1029.261, 1033.712]
ns_per_byte = [40.099, 40.063, 40.205]
burst_bytes = [0, 0, 0]
[edge.up]
latency_us = [1031.943, 1029.261, 1033.712]
ns_per_byte = [40.099, 40.063, 40.205]
burst_bytes = [3200, 3000, 3400]
"#;
