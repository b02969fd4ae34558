//! `flitcast plan` and `flitcast compare` as users run them.

use flitcast_tests::{parsed, printed, rows, scratch};
use serde_json::{Value, json};

/// Three PEs with names, each below the one before.
pub const NAMED: &str = "name = 'three'
[[pe]]
name = 'alpha'
address = '127.0.0.1'
[[pe]]
name = 'beta'
address = '127.0.0.2'
parent = 'alpha'
[[pe]]
name = 'gamma'
address = '127.0.0.3'
parent = 'beta'
";

/// The tables were typed in from the paper; no test writes them. The state machines do what they show.
#[test]
fn tables_are_the_papers_figures() {
    for [figure, line] in rows(
        "
        fig1a | plan scatter --tree path:6 --lengths 0,0,0,4,3
        fig1b | plan scatter --tree path:6 --lengths 0,0,0,4,3 --order given:4,5
        fig1b | plan scatter --tree path:6 --lengths 0,0,0,4,3 --order nearest-first
        fig2 | plan gather --tree path:6 --lengths 2,3,0,2,1 --algorithm shoulder-tap
        fig3 | plan gather --tree path:6 --lengths 9,0,1,0,1 --algorithm shoulder-tap
        fig4 | plan gather --tree path:6 --lengths 2,3,0,2,1 --algorithm certification --sync serial
    ",
    ) {
        let out = printed(&format!("{line} --simulate"));
        let (table, summary) = out.split_once("\n\n").unwrap();
        let table = format!("{table}\n");
        let path = format!("{}/golden/{figure}.txt", env!("CARGO_MANIFEST_DIR"));
        let golden = std::fs::read_to_string(&path).unwrap();
        let both = format!("ours:\n{table}\nthe paper's:\n{golden}");
        assert!(table == golden, "{figure}, {both}");
        for expected in ["lower bound", "every item as planned"] {
            assert!(summary.contains(expected), "{summary}");
        }
        // The paper counts a step 0: both numbers are shown.
        let has_the_papers_count = summary.contains("11 steps (12 by the paper's count");
        assert_eq!(has_the_papers_count, figure == "fig1b", "{summary}");
    }
}

/// A PE without a child may send in the step after its call; its column then shows the call and its first
/// flit in one cell.
#[test]
fn an_order_and_an_own_flit_can_share_a_cell() {
    let out = printed("plan gather --tree path:2 --lengths 2 --algorithm shoulder-tap --simulate");
    let expected = "Step  P0    P1\n   1        (1) m1,1\n   2  m1,1  m1,2\n   3  m1,2\n\n";
    assert!(out.starts_with(expected), "{out}");
}

#[test]
fn json_is_what_scripts_depend_on() {
    let plan = parsed(
        "plan gather --tree path:6 --lengths 2,3,0,2,1 --algorithm certification --sync serial --format json",
    );
    let keys = plan.as_object().unwrap().keys();
    let keys: Vec<&str> = keys.map(String::as_str).collect();
    let expected = "operation algorithm sync parents lengths time_steps lower_bound_steps \
        upper_bound_steps upper_bound_theorem upper_bound_formula upper_bound_printed messages control";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(plan["parents"], json!([null, 0, 1, 2, 3, 4]));
    assert_eq!(plan["lengths"], json!([0, 2, 3, 0, 2, 1]));
    assert_eq!(plan["time_steps"], 21);
    assert_eq!(plan["lower_bound_steps"], 11);
    assert_eq!(plan["upper_bound_steps"], 27);
    assert_eq!(plan["upper_bound_theorem"], "Theorem 3");
    assert_eq!(plan["upper_bound_printed"], "2B + C + M");
    let message = json!({"pe": 1, "flits": 2, "first_step": 14, "arrival_step": 15});
    assert_eq!(plan["messages"][0], message);
    assert_eq!(plan["messages"].as_array().unwrap().len(), 4);
    let control = plan["control"].as_array().unwrap();
    let token = json!({"step": 1, "from": 0, "to": 1, "kind": "token"});
    assert_eq!(control[0], token);
    let certificate = json!({"step": 10, "from": 1, "to": 0, "kind": "certificate", "lag_steps": 3, "stream_flits": 8});
    assert!(control.contains(&certificate));
    let order = json!({"step": 11, "from": 0, "to": 1, "kind": "order", "after_steps": 3});
    assert!(control.contains(&order));

    let scatter = parsed("plan scatter --tree path:6 --lengths 0,0,0,4,3 --format json");
    assert_eq!(scatter["control"], json!([]));
    assert_eq!(scatter["sync"], Value::Null);
    let tap = parsed("plan gather --tree path:3 --lengths 1,1 --format json");
    let wakeup = json!({"step": 2, "from": 1, "to": 2, "kind": "wakeup", "after_steps": 1});
    assert_eq!(tap["control"][1], wakeup);
}

#[test]
fn a_path_of_a_million_pes_and_other_large_trees_are_planned() {
    for (line, pes) in [
        ("scatter --tree random:100000:1", 100_000),
        (
            "gather --tree random:100000:1 --algorithm certification --sync pipelined",
            100_000,
        ),
        ("gather --tree path:1000000", 1_000_000),
    ] {
        let lengths = "--lengths uniform:0..64:7";
        let summary = parsed(&format!("plan {line} {lengths} --summary --format json"));
        assert_eq!(summary["pes"], pes, "{line}");
        let [steps, flits] = ["time_steps", "flits"].map(|key| summary[key].as_u64());
        assert!(steps >= flits, "{line}");
    }
}

#[test]
fn many_ports_show_what_they_gain() {
    let plan =
        parsed("plan gather --tree star:9 --lengths equal:4 --ports multi --format json --summary");
    assert_eq!(plan["sync"], "parallel");
    let [multi, single] = ["time_steps", "single_port_time_steps"].map(|key| plan[key].as_u64());
    assert!(multi < single, "{plan}");
}

#[test]
fn compare_marks_and_explains_the_best() {
    let gather =
        parsed("compare gather --network mesh:4x4 --lengths uniform:0..64:7 --format json");
    let results = gather["results"].as_array().unwrap();
    let best: Vec<&Value> = results.iter().filter(|row| row["best"] == true).collect();
    assert_eq!(best.len(), 1, "{gather}");
    let steps = results.iter().filter_map(|row| row["time_steps"].as_u64());
    let least = steps.min();
    assert_eq!(best[0]["time_steps"].as_u64(), least);
    assert!(least >= gather["lower_bound_steps"].as_u64());
    let algorithms = "certification, serial|certification, pipelined|linear|linear, window of 4|\
        binomial, combining|adaptive (Träff)";
    for algorithm in algorithms.split('|') {
        let mut rows = results.iter();
        let is_there = rows.any(|row| row["algorithm"] == algorithm);
        assert!(is_there, "{algorithm}");
    }
    let table = printed("compare scatter --tree kary:2:15 --lengths equal:4");
    for expected in [
        "*  kary:2:15  farthest-destination-first",
        "which is the bound",
    ] {
        assert!(table.contains(expected), "{table}");
    }
    let path = printed("compare gather --tree path:8 --lengths equal:4");
    assert!(path.contains("*  path:8  shoulder-tap"), "{path}");
}

#[test]
fn plans_have_the_names_of_pes() {
    let dir = scratch();
    dir.put("c.toml", NAMED);
    for [line, expected] in rows(
        "
        scatter --lengths 1,2 | names        P0 alpha, P1 beta, P2 gamma
        scatter --lengths 1,2 --order search | order           P2 gamma, P1 beta
        scatter --lengths 1,2 --from beta | P2 gamma  P1 beta           2          3
        scatter --lengths 1,2 --from beta | 3 flits in 2 messages from P1 beta
        broadcast --size 2 | P2 gamma  P1 beta
        gossip --lengths 1,2,1 | P2 gamma      1     3
        gather --lengths 1,2 --setup 1 | 1       P1 beta       1          1            3
        gather --lengths 1,2 --setup 1 --algorithm certification | P1 beta     3        2
        gather --size 1KiB | P2 gamma  P1 beta       2
        gather --lengths 1,2 --format svg | >P2 gamma</text>
        exchange --lengths each:1 --format svg | <title>P1 beta</title>
        gossip --lengths 1,1,1 --format json | \"names\":[\"alpha\",\"beta\",\"gamma\"]
    ",
    ) {
        let out = dir
            .run(&format!("plan {line} --cluster @/c.toml"))
            .ok()
            .stdout;
        assert!(out.contains(expected), "{line}: {out}");
    }
    let plan = parsed("plan gossip --tree path:3 --lengths 1,1,1 --format json");
    assert!(plan["names"].is_null(), "without names there is no key");
}

#[test]
fn a_table_of_many_pes_has_the_largest_rows_and_all_with_v() {
    for line in [
        "plan exchange --network complete:40 --lengths each:1",
        "plan broadcast --tree path:40 --size 2",
        "plan gather --tree path:40 --lengths equal:1 --setup 1 --algorithm certification",
        "plan gather --tree path:40 --size 1KiB",
    ] {
        let pes = |out: &str| {
            let lines = out.lines().map(str::trim_start);
            lines
                .filter(|line| line.starts_with('P') && !line.starts_with("PE"))
                .count()
        };
        let short = printed(line);
        assert_eq!(pes(&short), 16, "{short}");
        assert!(
            short.contains("others, neither slowest nor largest: -v lists all"),
            "{short}"
        );
        let all = printed(&format!("{line} -v"));
        assert!((39..=40).contains(&pes(&all)), "{all}");
    }
}
