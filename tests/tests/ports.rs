//! Scatter and gather with a port of P0 for each of its neighbours.

use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{parsed, reported, scratch};

/// A tree of three branches whose links all differ: a leaf, a path of two, a PE with two children.
const TREE: &str = "parents = [0, 0, 2, 0, 4, 4]\n\
    [[edges]]\nchild = 1\nrate = \"24mbit\"\nlatency = \"3ms\"\n\
    [[edges]]\nchild = 2\nrate = \"72mbit\"\nup = { rate = \"36mbit\" }\n\
    [[edges]]\nchild = 3\nrate = \"48mbit\"\nlatency = \"1ms\"\n\
    [[edges]]\nchild = 4\nrate = \"60mbit\"\nlatency = \"2ms\"\n\
    [[edges]]\nchild = 5\nrate = \"90mbit\"\n\
    [[edges]]\nchild = 6\nrate = \"30mbit\"\nlatency = \"1ms\"\n";

/// Creates messages of all kinds: long ones for each branch, a folder, a byte, an empty file, nothing.
fn fill_input(input: &Path) {
    fill(&input.join("p1"), 150_001);
    fill(&input.join("p2/folder/file"), 90_000);
    fill(&input.join("p2/another"), 1);
    fill(&input.join("p3"), 60_000);
    fill(&input.join("p4"), 0);
    fill(&input.join("p6"), 70_003);
}

#[test]
fn files_are_scattered_and_gathered_over_all_links_at_once() {
    let dir = scratch();
    dir.put("tree.toml", TREE);
    fill_input(&dir.join("input"));
    for more in ["", "--flit-size 4000", "--packets 3", "--rounds 2"] {
        for line in [
            "scatter --input @/input --output @/there",
            "gather --input @/there --output @/back",
        ] {
            let line = format!("{line} --tree file:@/tree.toml --force {more}");
            let took = |ports: &str| {
                let report = dir.report(&format!("{line} --ports {ports}"));
                report.assert_all_arrived();
                assert_eq!(report.value("/ports"), ports);
                report.float("/round/predicted_us")
            };
            let multi = took("multi");
            if more.is_empty() {
                let single = took("single");
                assert!(multi < single, "{line}: {multi} and {single}");
            }
        }
        assert_same_below(&dir.join("input"), &dir.join("back"));
    }
}

/// Every way to obey orders, every order of a scatter, any root: everything arrives.
#[test]
fn every_other_choice_can_be_combined_with_the_ports() {
    let links = "--lengths uniform:0..300000:7 --link rate=80mbit";
    for line in [
        "scatter --tree kary:3:10 --order search",
        "scatter --tree kary:3:10 --order fdf --packets auto",
        "scatter --tree kary:2:10 --from P4",
        "scatter --network complete:6 --algorithm auto",
        "gather --tree kary:3:10 --pacing turns",
        "gather --tree kary:3:10 --pacing eager --packets 4",
        "gather --tree kary:2:10 --to P4",
        "gather --tree path:5 --algorithm certification",
        "gather --tree star:6 --algorithm auto",
        "gather --network torus:3x3 --algorithm auto",
    ] {
        let report = reported(&format!("{line} {links} --ports multi"));
        assert_eq!(report.value("/ports"), "multi", "{line}");
        if line.starts_with("gather") {
            assert_eq!(report.value("/sync"), "multi-port", "{line}");
        }
    }
}

/// The figures of spec-exchange, section 9.
#[test]
fn a_gather_by_all_ports_is_planned_with_the_time_that_it_takes() {
    for (tree, lengths, steps) in [
        ("path:6", "2,3,0,2,1", 20),
        ("star:9", "equal:4", 7),
        ("kary:2:15", "equal:3", 28),
    ] {
        let line = format!("plan gather --tree {tree} --lengths {lengths} --ports multi");
        let plan = parsed(&format!("{line} --format json --summary"));
        assert_eq!(plan["port_each_time_steps"], steps, "{tree}");
    }
}
