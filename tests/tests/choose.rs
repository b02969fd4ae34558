//! The choice of algorithm and tree, where the command line leaves them open: the choice is
//! executed, it has the shortest predicted time, and the report lists the alternatives.

use flitcast_tests::{parsed, printed, refused, rows, scratch};
use serde_json::Value;

const LINK: &str = "--link rate=400mbit,latency=500us";
/// Slower than the software of any machine.
const SLOW_LINK: &str = "--link rate=20mbit,latency=500us";

fn chosen(line: &str) -> Value {
    parsed(&format!("{line} --format json"))
}

#[test]
fn the_choice_is_run() {
    for operation in ["scatter", "gather"] {
        let report = chosen(&format!(
            "{operation} --algorithm auto --tree auto --network complete:6 --lengths ramp:20KiB {LINK}"
        ));
        let choice = &report["choice"];
        let (best, next) = (&choice["chosen"], &choice["runner_up"]);
        assert!(choice["ways"].as_u64() > Some(5), "{choice:#}");
        let time = |way: &Value| way["predicted_us"].as_f64().expect("a time");
        // Everything may be equal within 2 %.
        if !next.is_null() {
            assert!(time(best) <= time(next), "{choice:#}");
            let of = |way: &Value| ["algorithm", "tree"].map(|key| way[key].clone());
            assert_ne!(of(best), of(next));
        }
        assert_eq!(report["tree"], best["tree"]);
        assert_eq!(report["flit_bytes"], best["flit_bytes"]);
        let name = best["algorithm"].as_str().expect("a name");
        assert!(name.starts_with(report["algorithm"].as_str().expect("a name")));
    }
}

/// Stars answer soonest over long links, and pipelines carry most over slow ones. Latencies are long beside
/// what software takes on a busy machine.
#[test]
fn without_a_name_algorithm_and_tree_are_chosen() {
    for [line, link, algorithms, depth] in rows(
        "
        gather --size 1KiB | rate=100mbit,latency=50ms | orders | 1
        broadcast --size 4KiB | rate=100mbit,latency=50ms | rounds | 1
        broadcast --size 2MiB | rate=100mbit | rounds circulant | any
        gossip --size 16KiB | rate=100mbit,latency=50ms | direct | any
        exchange --size 64KiB | rate=100mbit,latency=1ms | rounds shifts | any
        exchange --size 1KiB | setup=20ms | bruck | any
        scatter --size 16KiB | rate=100mbit,latency=50ms | fdf | 1
    ",
    ) {
        let report = chosen(&format!("{line} --network complete:8 --link {link}"));
        let name = report["algorithm"].as_str().expect("a name");
        let is_listed = algorithms.split(' ').any(|one| one == name);
        assert!(is_listed, "{line}: {name}: {:#}", report["choice"]);
        let choice = &report["choice"];
        assert!(choice["ways"].as_u64() > Some(0), "{line}: {choice:#}");
        let depths = report["pes"].as_array().expect("a row for each PE").iter();
        let deepest = depths.map(|pe| pe["depth"].as_u64()).max().flatten();
        let is_as_deep = depth == "any" || deepest == depth.parse().ok();
        assert!(is_as_deep, "{line}: {report:#}");
    }
}

/// The number of PEs is that of `-n` and P0, or that of the entries.
#[test]
fn a_number_of_pes_is_enough() {
    let dir = scratch();
    for pe in 1..=3 {
        dir.put(&format!("in/p{pe}"), "text");
    }
    for line in [
        "scatter -n 3 --size 1KiB",
        "scatter --input @/in --output @/scattered",
        "gather --input @/in --output @/gathered",
    ] {
        let report = dir.report(line);
        assert_eq!(report.list("/pes").len(), 4, "{line}");
        assert!(report.value("/choice/chosen").is_object(), "{line}");
    }
    let map = dir.run("map --input @/in --output @/mapped -- cat").ok();
    let head = "map over 3 PEs: cat on 3 shards";
    assert!(map.stdout.starts_with(head), "{}", map.stdout);
    dir.run("broadcast --input @/in --output @/copies")
        .fails(2, &["no PEs are given; use -n N"]);
}

/// A named tree runs the papers' algorithm, and a named algorithm its usual tree.
#[test]
fn given_options_are_not_chosen() {
    for line in [
        "gather --tree kary:2:7 --size 9KiB",
        "gather --tree path:4 --size 9KiB",
        "gather --network complete:6 --algorithm certification --size 9KiB",
        "broadcast --network complete:6 --algorithm rounds --size 9KiB",
        "scatter --network complete:6 --spanning bfs --size 9KiB",
        "scatter --network complete:6 --packets 2 --size 9KiB",
    ] {
        assert!(chosen(line)["choice"].is_null(), "{line}");
    }
}

#[test]
fn on_one_tree_the_algorithm_alone_is_chosen() {
    let line = format!("gather --algorithm auto --tree path:4 --size 9KiB {SLOW_LINK}");
    let report = chosen(&line);
    assert_eq!(report["tree"], "path:4");
    // Serial and pipelined, and Shoulder-Tap: three pacings each, and further flit sizes of the best.
    let choice = &report["choice"];
    assert_eq!(choice["alternatives"], 9);
    assert!(choice["ways"].as_u64() > Some(3), "{choice:#}");
    // Token and certificates take longer than all of a gather by Shoulder-Tap.
    assert_eq!(choice["excluded"], 6);
    assert_eq!(choice["skipped"], 0);
    let report = chosen(&format!("{line} --flit-size 4KiB --pacing turns"));
    assert_eq!(report["choice"]["alternatives"], 3);
    assert_eq!(report["choice"]["ways"], 1);
    assert_eq!(report["pacing"], "turns");
    assert_eq!(report["flit_bytes"], 4096);
}

/// A gather one after the other and a windowed one are choices where no switch can drop their packets, and
/// orders where links are slower than the software, or far.
#[test]
fn on_one_machine_baselines_are_choices() {
    let line = "gather --algorithm auto --tree star:4 --size 9KiB --flit-size 4KiB";
    let alternatives = |line: &str| chosen(line)["choice"]["alternatives"].as_u64();
    let local = alternatives(line);
    let (baselines, orders) = (2, 3);
    for link in [SLOW_LINK, "--link rate=5gbit,latency=1ms"] {
        let on_links = alternatives(&format!("{line} {link}"));
        assert_eq!(
            local.map(|all| all - baselines),
            on_links.map(|all| all - orders),
            "{link}"
        );
    }
}

/// On one machine, buffers hold short messages, and no PE waits for its turn.
#[test]
fn short_messages_are_gathered_at_once_on_one_machine() {
    for options in [
        "--network ring:8 --size 16KiB",
        "--network ring:8 --size 256KiB",
        "--network complete:12 --size 16KiB",
    ] {
        let report = chosen(&format!("gather {options}"));
        assert_eq!(
            report["pacing"], "eager",
            "{options}: {:#}",
            report["choice"]
        );
    }
}

/// Processes that store nothing for others take less time on one machine, and less memory on any links.
#[test]
fn a_long_gossip_stores_nothing_for_others() {
    for link in ["", "--link rate=200mbit"] {
        let report = chosen(&format!("gossip --network complete:5 --size 4MiB {link}"));
        let choice = &report["choice"];
        assert_eq!(report["algorithm"], "direct", "{choice:#}");
        assert_eq!(report["round"]["peak_buffered_flits"], 0);
        assert!(
            report["flit_bytes"].as_u64() <= Some(124 << 10),
            "{choice:#}"
        );
    }
}

/// Messages of many flits take long to predict: the time for a choice must suffice for what is quick.
#[test]
fn a_long_exchange_does_not_go_over_a_tree() {
    for more in ["", "--flit-size 124KiB", "--flit-size 16KiB"] {
        let report = chosen(&format!(
            "exchange --network complete:8 --size 12MiB {more}"
        ));
        let choice = &report["choice"];
        let time = |forecast: &Value| forecast["predicted_us"].as_f64();
        assert_ne!(report["algorithm"], "tree", "{more}: {choice:#}");
        let runner_up = &choice["runner_up"];
        let is_quickest = runner_up.is_null() || time(&choice["chosen"]) <= time(runner_up);
        assert!(is_quickest, "{more}: {choice:#}");
    }
}

/// A named algorithm runs on the best tree that it works on, a baseline on its own.
#[test]
fn with_a_tree_to_choose_the_named_algorithm_runs() {
    for [operation, algorithms] in rows(
        "
        scatter | fdf linear binomial adaptive
        gather | certification linear window binomial adaptive
    ",
    ) {
        for algorithm in algorithms.split(' ') {
            for link in ["", LINK] {
                let line =
                    format!("{operation} --algorithm {algorithm} --tree auto --network complete:5");
                let choice = &chosen(&format!("{line} --size 2KiB {link}"))["choice"];
                let name = choice["chosen"]["algorithm"].as_str().expect("a name");
                assert!(name.starts_with(algorithm), "{line}: {name}");
            }
        }
    }
}

#[test]
fn one_line_explains_the_choice() {
    let line = "scatter --tree auto --network complete:5 --size 8KiB";
    let text = printed(&format!("{line} {LINK} -v"));
    let is_choice = |line: &&str| line.starts_with("  chosen  ");
    let line = text.lines().find(is_choice).expect("a line");
    for part in [" predicted, the least of ", " predictions in "] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_profile_decides_and_is_used_for_the_tree_that_was_chosen() {
    let dir = scratch();
    let calibrate = "calibrate --tree star:4 --output @/profile.toml --seconds 0.5";
    dir.run(calibrate).ok();
    let line = "gather --algorithm certification --tree auto --network complete:4 --size 9KiB";
    let report = dir.report(&format!("{line} --profile @/profile.toml"));
    // The choice used the same model, so the times are equal to the nanosecond.
    let chosen = report.value("/choice/chosen/predicted_us");
    assert_eq!(report.value("/round/predicted_us"), chosen);
    let pacing = report.value("/pacing").as_str().expect("a pacing");
    let text = dir.read("profile.toml");
    assert!(text.contains(&format!("pacing = \"{pacing}\"")), "{text}");
}

#[test]
fn there_must_be_something_to_choose_from() {
    let dir = scratch();
    let calibrate = "calibrate --tree star:3 --output @/profile.toml --seconds 0.5";
    dir.run(calibrate).ok();
    let profile = dir.shown("profile.toml");
    for [line, expected] in rows(
        "
        auto | --tree auto chooses among the trees over a network
        auto --network complete:4 --profile @ | --profile: it was measured on 3 PEs, not on 4
        star:3 --link latency=1ms --profile @ | --profile: it was measured on links as they are, not on links of
    ",
    ) {
        let line = format!("gather --size 1KiB --tree {line}").replace('@', &profile);
        refused(&line, &[expected]);
    }
}

/// A message that would be one flit of the usual size, over several slow links.
#[test]
fn the_best_flit_size_is_chosen_and_explained() {
    // So slow that no other program on the machine matters.
    let line = "broadcast --tree path:5 --size 64KiB --link rate=5mbit";
    let report = chosen(line);
    let why = &report["flit_choice"];
    let time = |key: &str| why[key].as_f64().expect("a time");
    assert!(report["flit_bytes"].as_u64() < Some(32 << 10), "{why:#}");
    assert!(time("predicted_us") <= 0.8 * time("usual_us"), "{why:#}");
    assert_eq!(why["predicted_us"], report["round"]["predicted_us"]);
    let text = printed(&format!("{line} -v"));
    let is_size = |line: &&str| line.starts_with("  flits        of ");
    let line = text.lines().find(is_size).expect("a line");
    assert!(line.contains(" instead of "), "{line}");
    assert!(line.ends_with(" at 64 KiB"), "{line}");
}

#[test]
fn a_given_flit_size_is_used() {
    // Where no size is quicker, the default stays.
    for more in [
        "64KiB --link rate=50mbit --flit-size 64KiB",
        "2KiB --link latency=5ms",
    ] {
        let report = chosen(&format!("broadcast --tree path:5 --size {more}"));
        assert_eq!(report["flit_bytes"], 65_536);
        assert!(report["flit_choice"].is_null());
    }
}
