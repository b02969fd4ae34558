//! `--network` with `--root` and `--spanning`, and `flitcast tree`: their output can be parsed, is
//! consistent, and can be run.

use flitcast_tests::{Folder, parsed, printed, refused, scratch};
use serde_json::Value;

#[track_caller]
fn tree_json(arguments: &str) -> Value {
    parsed(&format!("tree {arguments} --format json"))
}

fn edges_file(dir: &Folder, text: &str) -> String {
    format!("edges:{}", dir.put("net.txt", text).display())
}

#[test]
fn a_broadcast_tree_is_quicker_than_a_breadth_first_one() {
    for (network, bfs, broadcast) in [
        ("complete:16", 15, 4),
        ("torus:5x5", 6, 5),
        ("mesh:4x4 --root 5", 5, 4),
        ("hypercube:6 --root 9", 6, 6),
    ] {
        let steps = |spanning: &str| {
            let json = tree_json(&format!("--network {network} --spanning {spanning}"));
            json["broadcast_steps"].as_u64()
        };
        assert_eq!(steps("bfs"), Some(bfs), "{network}");
        assert_eq!(steps("broadcast"), Some(broadcast), "{network}");
    }
}

#[test]
fn the_tree_file_reads_back_to_the_same_tree() {
    let dir = scratch();
    for tree in [
        "--tree path:1",
        "--tree random:500:7",
        "--network mesh:5x4x3 --root 17 --spanning broadcast",
    ] {
        let toml = printed(&format!("tree {tree} --format toml"));
        let path = dir.put("tree.toml", toml);
        let read = tree_json(&format!("--tree file:{}", path.display()));
        for key in ["pes", "parents", "depth", "max_degree", "broadcast_steps"] {
            assert_eq!(read[key], tree_json(tree)[key], "{tree}");
        }
    }
}

#[test]
fn a_large_tree_is_not_drawn() {
    let large = printed("tree --tree path:100000");
    assert!(large.contains("depth       99999\n"), "{large}");
    assert!(large.lines().count() < 12, "{large}");
}

#[test]
fn drawings_have_every_pe_and_every_edge() {
    let svg = printed("tree --network mesh:6x10 --root 3 --format svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<circle ").count(), 60);
    assert_eq!(svg.matches("class=\"edge\"").count(), 59);
    assert!(!svg.contains("NaN") && !svg.contains("href") && !svg.contains("<script"));
}

#[test]
fn runs_use_the_tree_that_spans_the_network() {
    let dir = scratch();
    let edges = edges_file(&dir, "# a triangle with a tail\n0 1\n1 2\n2 0\n2 3\n");
    for (command, network, spanning) in [
        ("scatter", "mesh:2x2", ""),
        ("gather", "torus:2x2", "--spanning broadcast"),
        ("gather", "ring:4", "--spanning bfs"),
        ("scatter", edges.as_str(), ""),
    ] {
        let line = format!("{command} --network {network} --root 3 {spanning}");
        let run = parsed(&format!("{line} --size 1KiB --format json"));
        let tree = run["tree"].as_str().expect("it is a name");
        let kind = spanning.split(' ').nth(1).unwrap_or("bfs");
        let name = format!("{} root 3 {kind}", network.trim_start_matches("edges:"));
        assert!(tree.ends_with(&name), "{tree}");
        assert_eq!(run["nodes"], serde_json::json!([3, 0, 1, 2]));
        let shown = tree_json(&format!("--network {network} --root 3 --spanning {kind}"));
        assert_eq!(run["parents"], shown["parents"], "{tree}");
        assert_eq!(run["tree"], shown["name"]);
    }
    let table = printed("gather --network ring:4 --root 2 --spanning broadcast --size 1KiB");
    let heading = "gather on ring:4 over a broadcast tree from 2 by ";
    assert!(table.starts_with(heading), "{table}");
    assert!(table.contains("PE  node  parent"), "{table}");
}

#[test]
fn all_faults_of_an_edge_file_and_of_the_options_are_reported_at_once() {
    let dir = scratch();
    let edges = edges_file(&dir, "0 1\n1 1\n\nx 2\n1 2 3\n");
    let line = |number: u32| format!("net.txt:{number}: ");
    let expected = [&line(2), &line(4), &line(5), "`x`", "--flit-size"];
    refused(
        &format!("scatter --network {edges} --size 1 --flit-size 1"),
        &expected,
    );
    let edges = edges_file(&dir, "0 1\n2 3\n3 14\n");
    let expected =
        "not connected: nodes 2, 3, 4, 5, 6, 7, 8, 9 and 5 more cannot be reached from node 0";
    refused(&format!("gather --network {edges} --size 1"), &[expected]);
}
