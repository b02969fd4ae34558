//! `flitcast calibrate` with real processes, and the use of its profile by other commands.

use std::fs;
use std::path::PathBuf;

use flitcast_tests::files::fill;
use flitcast_tests::run::{CACHE_VARIABLE, start_with};
use flitcast_tests::{Folder, Report, scratch};
use serde_json::{Value, json};

/// The shortest duration; the results are not examined.
const SHORT: &str = "--seconds 0.5";

#[test]
fn a_profile_is_written_and_stands_for_the_measurement() {
    let dir = scratch();
    let line = format!("calibrate --tree kary:2:4 --output @/profile.toml --format json {SHORT}");
    let calibrated = dir.run(&line).ok();
    // The duration is announced first.
    let first = calibrated.stderr.lines().next().expect("there is a line");
    let is_announced = first.contains("measures 3 edges") && first.contains("about 1 s");
    assert!(is_announced, "{first}");
    let found = calibrated.report();
    let edges = found.list("/edges");
    assert_eq!(edges.len(), 3);
    for edge in 0..3 {
        for link in ["down", "up"] {
            for value in ["latency_us", "ns_per_byte"] {
                let of = |part: &str| found.float(&format!("/edges/{edge}/{link}/{value}/{part}"));
                let [low, found, high] = ["low", "value", "high"].map(of);
                assert!(low <= found && found <= high, "{value}");
                assert!(found > 0.0, "{value}");
            }
        }
        // One host, one clock.
        let clock = format!("/edges/{edge}/clock_uncertainty_us");
        assert_eq!(found.float(&clock), 0.0);
    }
    assert!(found.list("/workloads").len() >= 2);
    assert!(found.float("/host/wake_ns") > 0.0);
    assert!((0.0..=1.0).contains(&found.float("/relay/overlap")));

    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --tree kary:2:4 --size 10KiB");
        let measuring = dir.report(&line);
        assert!(measuring.float("/probe_us") > 0.0);
        let knowing = dir.report(&format!("{line} --profile @/profile.toml"));
        assert!(knowing.value("/probe_us").is_null());
        knowing.assert_all_arrived();
        // The calibrated values are used.
        let of = |report: &Report, base: &str| report.float(&format!("/edges/1/up/{base}"));
        assert_eq!(of(&knowing, "ns_per_byte"), of(&found, "ns_per_byte/value"));
    }
}

#[test]
fn without_an_output_it_only_prints() {
    let run = scratch().run(&format!("calibrate --tree path:2 {SHORT}"));
    let run = run.ok();
    let expected = "P0 to P1, P1 to P0, latency, rate, runs , costs, clocks, not kept";
    run.prints(&expected.split(", ").collect::<Vec<_>>());
    // Processes of one machine are fast enough for every workload, and there is no relay on the way.
    for unwanted in ["left out", "relay"] {
        assert!(!run.stdout.contains(unwanted), "{}", run.stdout);
    }
}

struct Cache(Folder);

impl Cache {
    fn folder(&self) -> PathBuf {
        self.0.join("flitcast")
    }

    #[track_caller]
    fn run(&self, line: &str) -> Report {
        let line = format!("{line} --format json");
        let running = start_with(line.split(' '), &[(CACHE_VARIABLE, self.0.path())]);
        running.finish().ok().report()
    }

    /// Returns the source of the costs for a command's prediction, and the number of rounds behind
    /// them.
    #[track_caller]
    fn known(&self, line: &str) -> (String, Option<u64>) {
        let report = self.run(line);
        report.assert_all_arrived();
        let source = report.value("/costs/source").as_str();
        let source = source.expect("each report has it").to_owned();
        (source, report.value("/costs/rounds").as_u64())
    }
}

#[test]
fn costs_of_a_machine_are_measured_once_and_then_updated() {
    let cache = Cache(scratch());
    let line = "scatter --tree star:3 --size 3KiB --rounds 4";
    assert_eq!(cache.known(line), ("measured".to_owned(), None));
    let (source, first) = cache.known(line);
    assert_eq!(source, "cached");
    let first = first.expect("they are counted");
    assert_eq!(cache.known(line).1, Some(first + 4));
    // Shaped links give no information about the machine, and the costs of its disk none about
    // processes.
    cache.known(&format!("{line} --link rate=1gbit"));
    let dir = scratch();
    fill(&dir.join("in/p1"), 3000);
    let files = dir.display();
    let line_of_files = format!("--input {files}/in --output {files}/out");
    cache.run(&format!("scatter --tree star:3 {line_of_files}"));
    assert_eq!(cache.known(line).1, Some(first + 8));
    // A new measurement starts again.
    cache.run("calibrate --host");
    let (source, rounds) = cache.known(line);
    assert_eq!(source, "cached");
    assert!(rounds.expect("they are counted") < first + 12);
}

#[test]
fn costs_of_encrypted_connections_are_measured_separately() {
    let cache = Cache(scratch());
    let dir = scratch();
    dir.run("ca init @/keys --pes 3").ok();
    let plain = "scatter --tree star:3 --size 3KiB";
    let encrypted = format!("{plain} --credentials {}", dir.shown("keys"));
    assert_eq!(cache.known(&encrypted).0, "measured");
    assert_eq!(cache.known(plain).0, "measured");
    for line in [plain, &encrypted] {
        assert_eq!(cache.known(line).0, "cached");
    }
}

/// A cache is a convenience: without one, or with a broken one, commands run as well.
#[test]
fn a_cache_that_is_broken_or_cannot_be_written_is_none() {
    let line = "scatter --tree star:3 --size 3KiB";
    let cache = Cache(scratch());
    cache.run("calibrate --host");
    for entry in fs::read_dir(cache.folder()).expect("it was made") {
        let path = entry.expect("it can be listed").path();
        fs::write(path, "{\"key\": 1e999}").expect("it is ours");
    }
    assert_eq!(cache.known(line).0, "measured");
    assert_eq!(cache.known(line).0, "cached");

    let cache = Cache(scratch());
    fs::write(cache.folder(), "no folder").expect("it is ours");
    for _ in 0..2 {
        assert_eq!(cache.known(line).0, "measured");
    }
}

/// If PEs have different addresses, the costs of each machine are measured by one of its PEs,
/// stored separately, and learned. The limits of a container or a cpuset count as a machine.
#[test]
fn each_machine_of_a_cluster_is_measured_and_learned() {
    let dir = scratch();
    let pe = |name: &str, run: &str, more: &str| {
        format!("[[pe]]\nname = '{name}'\naddress = '127.0.0.1'\nrun = [{run}]\n{more}")
    };
    let one_core = "'taskset', '-c', '0'";
    let below = "parent = 'a'\n";
    let text = pe("a", one_core, "") + &pe("b", "'env'", below) + &pe("c", one_core, below);
    let file = dir.put("cluster.toml", text);
    let cache = Cache(scratch());
    let file = file.display();
    let line = format!("scatter --cluster {file} --size 3KiB --rounds 3");
    let report = cache.run(&line);
    report.assert_all_arrived();
    assert_eq!(report.value("/costs/source"), "measured");
    let machines = report.list("/costs/machines").iter();
    let of = |key: &str| {
        machines
            .clone()
            .map(|machine| machine[key].clone())
            .collect()
    };
    let [pes, of_cores]: [Value; 2] = ["pes", "cores"].map(of);
    let cores = std::thread::available_parallelism();
    match cores.expect("Linux has it").get() {
        1 => assert_eq!(pes, json!([[0, 1, 2]])),
        cores => {
            assert_eq!(pes, json!([[0, 2], [1]]));
            assert_eq!(of_cores, json!([1, cores]));
        }
    }
    let (source, first) = cache.known(&line);
    assert_eq!(source, "cached");
    let rounds = first.map(|first| first + 3).expect("they are counted");
    assert_eq!(cache.known(&line), ("cached".to_owned(), Some(rounds)));
}

/// A link on which each flit takes 2 ms in addition to its bytes, which take much less: this is
/// attributed neither to the rate nor to the latency.
#[test]
fn the_fixed_cost_of_a_flit_is_found() {
    let dir = scratch();
    let line = "calibrate --tree path:2 --link rate=400mbit,setup=2ms";
    let report = dir.report(&format!("{line} --output @/profile.toml"));
    for way in ["down", "up"] {
        let of = |what: &str| report.float(&format!("/edges/0/{way}/{what}/value"));
        // A busy machine adds less than this.
        assert!((1_000.0..4_000.0).contains(&of("setup_us")), "{way}");
        assert!(of("latency_us") < 1_000.0, "{way}");
    }
}
