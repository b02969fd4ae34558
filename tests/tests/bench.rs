//! `flitcast bench` with real processes: the algorithms that it times on each tree, its output for
//! scripts, the files that it writes, the requests that it rejects, and early ends.

use flitcast_tests::{parsed, printed, refused, rows, run, scratch, start};
use rustix::process::Signal;
use serde_json::Value;

const OURS: [&str; 6] = [
    "certification-serial",
    "certification-serial-turns",
    "certification-serial-eager",
    "certification-pipelined",
    "certification-pipelined-turns",
    "certification-pipelined-eager",
];
const TAPS: [&str; 3] = ["shoulder-tap", "shoulder-tap-turns", "shoulder-tap-eager"];
const ORDERS: [&str; 3] = ["orders", "orders-turns", "orders-eager"];
const GATHER_BASELINES: [&str; 4] = ["linear", "window", "binomial", "adaptive"];

fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list").iter();
    list.map(|entry| entry[key].as_str().expect("a name"))
        .collect()
}

fn keys(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn float(value: &Value) -> f64 {
    let number = value.as_f64();
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

/// Baselines have a tree of their own where all PEs can reach each other.
#[test]
fn all_that_work_on_a_tree_or_a_network_are_timed() {
    fn listed(names: &str) -> Vec<&str> {
        let of_word = |word| match word {
            "OURS" => OURS.to_vec(),
            "TAPS" => TAPS.to_vec(),
            "ORDERS" => ORDERS.to_vec(),
            "BASELINES" => GATHER_BASELINES.to_vec(),
            name => vec![name],
        };
        names.split_whitespace().flat_map(of_word).collect()
    }
    for [line, timed, skipped, messages] in rows(
        "
        gather --tree path:5 | OURS TAPS | ORDERS BASELINES | 4
        gather --tree kary:2:6 | OURS | TAPS ORDERS BASELINES | 5
        gather --tree star:5 | OURS ORDERS BASELINES | TAPS | 4
        gather --network complete:6 | OURS BASELINES | TAPS ORDERS | 5
        scatter --tree path:5 | fdf | linear binomial adaptive | 4
        scatter --tree kary:2:6 | fdf | linear binomial adaptive | 5
        scatter --tree star:5 | fdf linear binomial adaptive | | 4
        scatter --network complete:6 | fdf linear binomial adaptive | | 5
        broadcast --tree kary:2:4 | rounds urgent child-by-child | circulant hypercube | 1
        broadcast --network complete:4 | rounds urgent circulant hypercube child-by-child | | 1
        gossip --tree path:4 | flood | circulate dissemination direct | 4
        allgather --network complete:4 | flood circulate dissemination direct approach1 neighbour | | 4
        gossip --network ring:5 | flood approach1 halves | circulate dissemination direct | 5
        exchange --network complete:4 | tree rounds shifts bruck at-once | | 12
        alltoall --tree star:4 | tree | rounds shifts bruck at-once | 12
    ",
    ) {
        let more = "--size 9kB --rounds 1 --flit-size 4KiB --warm-up 1 --format json";
        let bench = parsed(&format!("bench {line} {more}"));
        let messages: u64 = messages.parse().expect("a number");
        assert_eq!(bench["bytes"], 9000 * messages, "{line}");
        assert_eq!(names(&bench["results"], "algorithm"), listed(timed), "{line}");
        assert_eq!(names(&bench["skipped"], "algorithm"), listed(skipped), "{line}");
        for result in list(&bench["results"]) {
            assert_consistent(result, float(&bench["bytes"]));
        }
        if matches!(bench["operation"].as_str(), Some("gather" | "scatter")) {
            let reasons = names(&bench["skipped"], "reason");
            assert!(reasons.iter().all(|reason| reason.starts_with("for ")), "{reasons:?}");
            assert_eq!(bench["tree"].as_str(), line.rsplit(' ').next());
            assert_eq!(bench["lengths"], "equal:9kB");
        }
    }
}

fn assert_consistent(result: &Value, bytes: f64) {
    let measured = ["min", "median", "p95", "max"].map(|key| float(&result["measured_us"][key]));
    assert!(measured[0] > 0.0 && measured.is_sorted(), "{result:#}");
    let [min, median, p95, _] = measured;
    let near = |key: &str, expected: f64| {
        let difference = (float(&result[key]) - expected).abs();
        let is_near = difference <= expected.abs() * 1e-9;
        assert!(is_near, "{key}: {expected}, {result:#}");
    };
    let predicted = float(&result["predicted_us"]);
    assert!(predicted > 0.0, "{result:#}");
    near("error_pct", (predicted - median) / median * 100.0);
    near("goodput_bytes_per_s", bytes / median * 1e6);
    near("spread_pct", (p95 - min) / median * 100.0);
    let name = result["algorithm"].as_str().expect("a name");
    match [&OURS[..], &ORDERS, &TAPS].concat().contains(&name) {
        true => {
            let slip = ["median", "max"].map(|key| float(&result["slip_us"][key]));
            assert!(slip.is_sorted(), "{result:#}");
        }
        false => assert!(result["slip_us"].is_null(), "{result:#}"),
    }
}

#[test]
fn json_is_what_scripts_depend_on() {
    let bench = parsed(
        "bench gather --tree star:4 --lengths equal:16KiB --rounds 7 --warm-up 0 \
         --algorithms window,certification-serial,window --format json",
    );
    let fixed = ["operation", "tree", "lengths", "rounds", "results"];
    assert_eq!(keys(&bench)[..5], fixed);
    assert_eq!(bench["operation"], "gather");
    assert_eq!(bench["tree"], "star:4");
    assert_eq!(bench["lengths"], "equal:16KiB");
    assert_eq!(bench["rounds"], 7);
    assert_eq!(bench["bytes"], 3 << 14);
    let results = names(&bench["results"], "algorithm");
    assert_eq!(results, ["window", "certification-serial"], "each once");
    assert_eq!(bench["skipped"], serde_json::json!([]));
    let fixed = "algorithm predicted_us measured_us error_pct goodput_bytes_per_s collisions \
                 peak_buffered_flits";
    for result in list(&bench["results"]) {
        assert_eq!(keys(result)[..7].join(" "), fixed);
        let of_measured = keys(&result["measured_us"]);
        assert_eq!(of_measured, ["min", "median", "p95", "max"]);
        assert!(result["collisions"].is_u64(), "{result:#}");
        assert_eq!(result["peak_buffered_flits"], 0, "a star relays nothing");
    }
}

/// A line of a CSV text, by its header.
type Record = std::collections::HashMap<String, String>;

#[track_caller]
fn records(text: &str) -> Vec<Record> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let records: Result<_, _> = reader.deserialize().collect();
    records.unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

/// Microseconds with three decimals, as nanoseconds.
#[track_caller]
fn nanos(record: &Record, column: &str) -> u64 {
    let text = &record[column];
    let (_, decimals) = text.split_once('.').expect("microseconds have decimals");
    assert_eq!(decimals.len(), 3, "{column}: {text}");
    text.replace('.', "").parse().expect("digits")
}

/// A bench of three algorithms that writes its samples to a file.
const INTO_A_FILE: &str = "bench gather --tree star:4 --lengths 10000,0,30000 --flit-size 4KiB \
    --rounds 8 --algorithms linear,certification-pipelined,binomial --raw @/raw.csv";

/// Returns the median, and the 95th percentile by nearest rank.
fn median_and_p95(values: &mut [u64]) -> (u64, u64) {
    values.sort_unstable();
    let n = values.len();
    let median = u64::midpoint(values[(n - 1) / 2], values[n / 2]);
    (median, values[(95 * n).div_ceil(100) - 1])
}

#[test]
fn csv_agrees_with_the_samples() {
    let dir = scratch();
    let bench = dir.run(&format!("{INTO_A_FILE} --format csv"));
    let lines = records(&bench.ok().stdout);
    let raw = dir.read("raw.csv");
    let command = " bench gather --tree star:4 --lengths 10000,0,30000 ";
    let header = [
        ("# commit: ", ""),
        ("# host: ", " core"),
        ("# command: ", command),
    ];
    for (line, (field, part)) in raw.lines().zip(header) {
        let content = line.strip_prefix(field).unwrap_or_default();
        assert!(!content.is_empty() && line.contains(part), "{line}");
    }
    let samples = records(&raw);
    assert_eq!(samples.len(), 3 * 8);
    let algorithms: Vec<&String> = lines.iter().map(|line| &line["algorithm"]).collect();
    let timed = ["linear", "certification-pipelined", "binomial"];
    assert_eq!(algorithms, timed);
    for line in &lines {
        assert_eq!(line["tree"], "star:4");
        assert_eq!(line["lengths"], "10000,0,30000");
        let is_own = |sample: &&Record| sample["algorithm"] == line["algorithm"];
        let own: Vec<&Record> = samples.iter().filter(is_own).collect();
        let all = |column: &str| -> Vec<&str> { own.iter().map(|it| &*it[column]).collect() };
        assert_eq!(all("round").join(" "), "1 2 3 4 5 6 7 8");
        assert_eq!(all("pass").join(" "), "1 1 2 2 2 3 3 3");
        let of = |column| own.iter().map(move |sample| nanos(sample, column));
        let mut measured: Vec<u64> = of("measured_us").collect();
        let (median, p95) = median_and_p95(&mut measured);
        assert_eq!(nanos(line, "median_us"), median);
        assert_eq!(nanos(line, "p95_us"), p95);
        assert_eq!(nanos(line, "min_us"), measured[0]);
        assert_eq!(nanos(line, "max_us"), measured[7]);
        // The first sample of each pass.
        let mut predicted = [0, 2, 5].map(|place| nanos(own[place], "predicted_us"));
        let (predicted, _) = median_and_p95(&mut predicted);
        assert_eq!(nanos(line, "predicted_us"), predicted);
        let number = |column: &str| line[column].parse::<f64>().expect("a number");
        let error = (predicted as f64 - median as f64) / median as f64 * 100.0;
        assert!((number("error_pct") - error).abs() <= 0.0501, "{line:?}");
        let goodput = 40_000.0 / median as f64 * 1e9;
        let difference = number("goodput_bytes_per_s") - goodput;
        assert!(difference.abs() <= 0.501, "{line:?}");
        let collisions = own.iter().map(|sample| &sample["collisions"]);
        let collisions = collisions.map(|text| text.parse::<u64>().expect("a count"));
        assert_eq!(number("collisions"), collisions.max().unwrap_or(0) as f64);
        if !OURS.contains(&&*line["algorithm"]) {
            assert_eq!((&*line["slip_median_us"], &*line["slip_max_us"]), ("", ""));
            continue;
        }
        // It is due after the round's beginning, and starts before the round's end.
        for sample in &own {
            assert!(nanos(sample, "slip_median_us") <= nanos(sample, "slip_max_us"));
            assert!(nanos(sample, "slip_max_us") < nanos(sample, "measured_us"));
        }
        assert_eq!(Some(nanos(line, "slip_max_us")), of("slip_max_us").max());
    }
}

#[test]
fn json_agrees_with_the_samples() {
    let dir = scratch();
    let bench = dir.report(INTO_A_FILE);
    let samples = records(&dir.read("raw.csv"));
    for result in bench.list("/results") {
        let own = samples
            .iter()
            .filter(|sample| result["algorithm"] == sample["algorithm"]);
        let mut measured: Vec<u64> = own.map(|sample| nanos(sample, "measured_us")).collect();
        assert_eq!(measured.len(), 8);
        let (median, p95) = median_and_p95(&mut measured);
        assert_eq!(float(&result["measured_us"]["median"]), median as f64 / 1e3);
        assert_eq!(float(&result["measured_us"]["p95"]), p95 as f64 / 1e3);
    }
}

#[test]
fn omissions_in_a_csv_are_reported() {
    let line = "bench gather --tree kary:2:4 --size 1KiB --rounds 1 --format csv";
    let finished = run(line.split_whitespace()).ok();
    assert_eq!(records(&finished.stdout).len(), OURS.len());
    let expected = "skipped: shoulder-tap is for paths only";
    finished.stderr_has(&[expected, "skipped: window is "]);
}

#[test]
fn a_table_has_the_quickest_first_and_marks_it() {
    let text = printed("bench gather --network complete:5 --size 20kB --rounds 3");
    let mut lines = text.lines();
    let heading = "gather complete:5, equal:20kB: 5 PEs, 4 messages, 78.13 KiB in flits of 64 KiB";
    assert_eq!(lines.next(), Some(heading));
    let rounds = "3 rounds of each in 3 passes, 5 more to warm up in each pass";
    assert_eq!(lines.next(), Some(rounds));
    let columns = lines.nth(1).expect("a header").split_whitespace();
    let columns: Vec<&str> = columns.collect();
    assert_eq!(columns[..3], ["algorithm", "predicted", "median"]);
    let rows: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let names = rows.iter().map(|row| row.trim_start_matches([' ', '*']));
    let mut timed: Vec<&str> = names.filter_map(|row| row.split(' ').next()).collect();
    assert!(rows[0].starts_with("  * "), "{text}");
    let plain = |row: &&str| row.starts_with("    ");
    assert!(rows[1..].iter().all(plain), "{text}");
    timed.sort_unstable();
    let mut expected = [&OURS[..], &GATHER_BASELINES].concat();
    expected.sort_unstable();
    assert_eq!(timed, expected);
    let skipped = "  skipped     shoulder-tap, ";
    for note in ["  *  ", "  tree  ", skipped, "  verified  "] {
        let is_there = lines.clone().any(|line| line.starts_with(note));
        assert!(is_there, "{note}: {text}");
    }
}

#[test]
fn all_errors_of_a_bench_are_reported_at_once() {
    let dir = scratch();
    let raw = dir.shown("no/raw.csv");
    let line = "bench gather --tree kary:2:8 --lengths 1,2 --flit-size 1";
    let line = format!("{line} --algorithms fdf,window,shoulder-tap --raw {raw}");
    let faults = [
        "there is no gather called `fdf`; there are certification-serial, ",
        "window is for PEs that can all reach each other, which kary:2:8 does not guarantee",
        "shoulder-tap is for paths only, and in kary:2:8 P0 has 2 children",
        "7 needed",
        "--flit-size",
        "/no: No such file",
    ];
    refused(&line, &faults);
    assert!(!dir.join("no").exists());
}

#[test]
fn samples_are_not_overwritten() {
    let dir = scratch();
    dir.put("raw.csv", "dear");
    let line = format!(
        "bench gather --tree path:3 --size 1 --raw {}",
        dir.shown("raw.csv")
    );
    refused(&line, &["not overwritten"]);
    assert_eq!(dir.read("raw.csv"), "dear");
}

/// Interrupted in the first round of the first algorithm, which would not end.
#[test]
fn ctrl_c_ends_all() {
    let line = "bench gather --tree kary:2:4 --size 400GiB -vv";
    let mut running = start(line.split_whitespace());
    running.wait_for(&["P0| ", "take message"]);
    let finished = running.interrupt();
    finished.stderr_has(&["interrupted"]);
    assert_eq!(finished.stdout, "");
}

/// Interrupted in a later, short round; earlier measurements are kept.
#[test]
fn ctrl_c_in_a_later_algorithm_ends_all_and_keeps_the_samples() {
    let dir = scratch();
    let line = "bench gather --tree path:3 --size 1KiB --rounds 600 --warm-up 0 -v";
    let mut running = dir.start(&format!("{line} --raw @/raw.csv"));
    running.wait_for(&["timing", "shoulder-tap", "pass=1"]);
    running.interrupt().stderr_has(&["raw.csv"]);
    let samples = records(&dir.read("raw.csv"));
    for name in OURS {
        let own = samples.iter().filter(|sample| sample["algorithm"] == name);
        assert_eq!(own.count(), 200, "{name}");
    }
}

#[test]
fn a_failing_algorithm_is_named() {
    let line = "bench gather --tree path:3 --size 400GiB --format json -vv";
    let mut running = start(line.split_whitespace());
    running.wait_for(&["P0| ", "take message"]);
    running.pe(2).signal(Signal::KILL);
    let finished = running.finish();
    let expected = "error: certification-serial: P2 was killed by signal 9";
    finished.fails(1, &[expected]);
    let report = finished.report();
    assert_eq!(report.value("/error/algorithm"), "certification-serial");
    assert_eq!(report.number("/error/pe"), 2);
}
