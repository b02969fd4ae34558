//! `flitcast plan` and `flitcast compare` in bytes and seconds: they predict what the real command
//! predicts, count the steps of a plan in flits, and start nothing.

use flitcast_tests::{parsed, printed, rows, scratch};
use serde_json::Value;

fn planned(line: &str) -> Value {
    parsed(&format!("plan {line} --format json"))
}

/// With a profile, the model of a plan is that of the run.
#[test]
fn a_plan_predicts_what_the_run_predicts() {
    let dir = scratch();
    dir.run("calibrate --tree star:5 --output @/profile.toml --seconds 0.5")
        .ok();
    let profile = dir.shown("profile.toml");
    for line in [
        "scatter --tree star:5 --lengths 9KiB,0,300KiB,1",
        "gather --tree star:5 --size 200KiB --pacing turns",
        "gather --network complete:5 --size 20KiB",
        "broadcast --tree star:5 --size 1MiB",
        "gossip --tree star:5 --size 64KiB",
        "exchange --tree star:5 --size 20KiB",
    ] {
        let line = format!("{line} --profile {profile} --flit-size 16KiB");
        let (plan, run) = (planned(&line), parsed(&format!("{line} --format json")));
        for key in "operation algorithm sync pacing tree flit_bytes".split(' ') {
            assert_eq!(plan[key], run[key], "{line}: {key}");
        }
        assert_eq!(plan["predicted_us"], run["round"]["predicted_us"], "{line}");
        let times = |all: &Value| -> Vec<Value> {
            let all = all["pes"].as_array().expect("a row for each PE").iter();
            all.map(|pe| pe["predicted_us"].clone()).collect()
        };
        assert_eq!(times(&plan), times(&run), "{line}");
    }
}

#[test]
fn rows_have_parents_where_there_is_a_tree() {
    for [line, headings] in rows(
        "
        gather --tree star:3 --size 1KiB | PE  parent  depth  bytes  predicted
        gossip --tree path:3 --size 1KiB --algorithm flood | PE  parent  depth  bytes  predicted
        gossip --network complete:3 --size 1KiB --algorithm direct | PE  bytes  predicted
        exchange --network complete:3 --lengths equal:1KiB | PE  bytes  predicted
    ",
    ) {
        let out = printed(&format!("plan {line}"));
        let head = out.lines().find(|line| line.starts_with("  PE "));
        let found = head.map(|head| head.split_whitespace().collect::<Vec<_>>());
        let expected = headings.split_whitespace().collect::<Vec<_>>();
        assert_eq!(found, Some(expected), "{out}");
    }
}

#[test]
fn steps_are_those_of_the_plan_in_flits() {
    let link = "--link rate=1gbit --flit-size 16KiB";
    for [operation, tree, size, lengths] in rows(
        "
        scatter | --tree kary:2:8 | --size 48KiB | --lengths equal:3
        gather | --tree kary:2:8 | --size 48KiB | --lengths equal:3
        gather | --tree path:6 | --size 32KiB | --lengths equal:2
        broadcast | --tree kary:3:9 | --size 160KiB | --size 10
        gossip | --tree kary:2:7 | --size 16KiB | --lengths equal:1
        exchange | --tree kary:2:7 | --size 16KiB | --lengths each:1
    ",
    ) {
        let timed = planned(&format!("{operation} {tree} {size} {link}"));
        let plan = planned(&format!("{operation} {tree} {lengths}"));
        let steps = [timed, plan].map(|plan| plan["time_steps"].clone());
        assert_eq!(steps[0], steps[1], "{operation} {tree}");
    }
}

#[test]
fn a_comparison_has_every_algorithm_and_begins_with_the_best() {
    let line = "--network complete:6 --size 100KiB --link rate=100mbit,latency=1ms";
    for (operation, names) in [
        ("scatter", "fdf linear binomial adaptive"),
        ("broadcast", "rounds urgent"),
        ("gossip", "circulate dissemination direct neighbour flood"),
        ("exchange", "rounds shifts bruck tree"),
    ] {
        let compared = parsed(&format!("compare {operation} {line} --format json"));
        let rows = compared["results"].as_array().expect("rows");
        let time = |row: &Value| row["predicted_us"].as_f64().expect("a time");
        // Predictions within 2 % count as equal, and come in another order.
        let least = rows.iter().map(time).fold(f64::MAX, f64::min);
        let is_equal = |row: &&Value| time(row) <= 1.02 * least;
        let others = rows.iter().skip_while(is_equal);
        assert!(others.is_sorted_by_key(time), "{compared:#}");
        assert!(is_equal(&&rows[0]), "{compared:#}");
        assert!(rows.iter().all(|row| row["time_steps"].as_u64() > Some(0)));
        for name in names.split(' ') {
            let is_there = rows.iter().any(|row| row["algorithm"] == name);
            assert!(is_there, "{operation}: {name}");
        }
        let plan = planned(&format!("{operation} {line}"));
        let chosen = plan["choice"]["chosen"]["predicted_us"].as_f64();
        let most = 1.02 * least;
        assert!(chosen <= Some(most), "{operation}: {plan:#}");
    }
}

#[test]
fn times_between_hosts_that_were_not_measured_are_refused() {
    let dir = scratch();
    let text = "coordinator = '127.0.0.1:7119'\ntree = 'star:2'\nlaunch.kind = 'join'\n";
    dir.put("cluster.toml", text);
    for line in [
        "plan gather --cluster @/cluster.toml --insecure --size 1MiB",
        "gather --cluster @/cluster.toml --insecure --size 1MiB --algorithm auto",
        "gossip --hosts 10.119.0.[1-3] --size 1MiB --algorithm auto",
        "broadcast --hosts 10.119.0.[1-3] --size 1MiB --tree auto",
    ] {
        let refused = dir.run(line);
        refused.fails(2, &["the links between these hosts are not known"]);
        assert_eq!(refused.stdout, "");
    }
}
