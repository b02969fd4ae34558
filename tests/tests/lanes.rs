//! Messages over several trees at once: over two rails, and over a cover of a network in which
//! neighbours have separate links. All addresses are on this machine; links are shaped, so that
//! several of them are faster than one.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{self, assert_same_below, fill, record};
use flitcast_tests::processes::until;
use flitcast_tests::report::Report;
use flitcast_tests::{Folder, Running, resume, run, scratch};
use rustix::process::Signal;

/// Names of PEs, which the entries of outputs have.
const RAILS: [&str; 5] = ["a", "b", "c", "d", "e"];
const TORUS: [&str; 9] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
const NUMBERS: [&str; 9] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8"];

/// Describes five PEs in a path of two branches, each with two addresses.
fn rails() -> String {
    let parents = [None, Some("a"), Some("b"), Some("a"), Some("d")];
    let pes = RAILS.iter().zip(parents).zip(1..);
    let pes = pes.map(|((name, parent), at)| {
        let parent = parent.map_or(String::new(), |parent| format!("parent = '{parent}'\n"));
        format!("[[pe]]\nname = '{name}'\naddresses = ['127.0.1.{at}', '127.0.2.{at}']\n{parent}")
    });
    pes.collect()
}

/// Describes a torus of 3 x 3 nodes, each of which has a different address for each neighbour.
fn torus() -> String {
    let near = |node: usize| {
        let (row, column) = (node / 3 * 3, node % 3);
        let in_row = [1, 2].map(|by| row + (column + by) % 3);
        let in_column = [3, 6].map(|by| (row + by) % 9 + column);
        in_row.into_iter().chain(in_column)
    };
    let edges = (0..9).flat_map(|a| near(a).filter(move |b| a < *b).map(move |b| (a, b)));
    let edges: Vec<String> = edges.map(|(a, b)| format!("['n{a}', 'n{b}']")).collect();
    let pes = (0..9).map(|node| {
        let by = near(node).map(|from| format!("['n{from}', '127.1.{node}.{}']", from + 1));
        let by: Vec<String> = by.collect();
        format!(
            "[[pe]]\nname = 'n{node}'\naddress = '127.0.3.{}'\nreached_by = [{}]\n",
            node + 1,
            by.join(", ")
        )
    });
    let pes: String = pes.collect();
    format!("[network]\nedges = [{}]\n{pes}", edges.join(", "))
}

fn place(cluster: &str) -> Folder {
    let dir = scratch();
    dir.put("cluster.toml", cluster);
    dir
}

/// Starts a command on the cluster, with shaped links.
fn start(dir: &Folder, line: &str) -> Running {
    let on = "--link rate=12mbit --cluster @/cluster.toml";
    dir.start(&format!("{line} {on}"))
}

fn report(dir: &Folder, line: &str) -> Report {
    let running = start(dir, &format!("{line} --format json"));
    let report = running.finish().ok().report();
    // A broadcast counts its message once.
    if !line.starts_with("broadcast") {
        report.assert_all_arrived();
    }
    report
}

/// Checks that a round used several trees, which are predicted to be faster than one.
fn assert_several(report: &Report, trees: u64, line: &str) {
    assert_eq!(report.number("/trees/count"), trees, "{line}");
    let of = |what| report.float(&format!("/trees/{what}"));
    assert!(of("predicted_us") < of("one_us"), "{line}");
}

/// Checks what a scatter to `there`, a gather of it and a broadcast of the input have delivered.
fn assert_delivered(dir: &Path, names: &[&str]) {
    let copies = names[1..].iter().map(|name| format!("copies/{name}"));
    for output in copies.chain(["back".to_owned()]) {
        assert_same_below(&dir.join("input"), &dir.join(output));
    }
}

/// Creates messages of all kinds for PEs: a long file, a folder, a byte, an empty file, nothing.
fn fill_input(input: &Path, names: &[&str]) {
    let of = |pe: usize| input.join(names[pe]);
    fill(&of(1), 700_001);
    fill(&of(2).join("folder/file"), 260_000);
    fill(&of(2).join("another"), 1);
    fill(&of(3), 0);
    if names.len() > 5 {
        fill(&of(7), 333_333);
        fill(&of(8).join("file"), 90_000);
    }
}

#[test]
fn files_are_scattered_and_gathered_on_several_trees() {
    for (cluster, option, names, trees) in [
        (rails(), "", &RAILS[..], 2),
        (torus(), "--cover", &TORUS, 4),
    ] {
        let dir = place(&cluster);
        fill_input(&dir.join("input"), names);
        let line = format!("broadcast --input @/input --output @/copies {option}");
        assert_eq!(report(&dir, &line).number("/trees/count"), trees);
        for flits in ["", "--flit-size 4000"] {
            for line in [
                "scatter --input @/input --output @/there",
                "gather --input @/there --output @/back",
            ] {
                let line = format!("{line} {option} {flits} --force");
                assert_several(&report(&dir, &line), trees, &line);
            }
            assert_delivered(&dir, names);
        }
    }
}

#[test]
fn every_byte_of_messages_that_are_no_files_arrives_in_every_round() {
    for (cluster, option, lengths) in [
        (rails(), "", "1,300001,0,65537"),
        (torus(), "--cover", "1,0,65536,65537,0,400001,7,99999"),
        (torus(), "--cover", "0,0,0,0,0,0,0,1000001"),
    ] {
        let dir = place(&cluster);
        for operation in ["scatter", "gather", "gather --sync serial --pacing eager"] {
            let line = format!("{operation} {option} --flit-size 4KiB --rounds 3");
            let report = report(&dir, &format!("{line} --lengths {lengths}"));
            assert!(report.number("/trees/count") > 1, "{line} {lengths}");
        }
        let line = format!("broadcast {option} --size 200001 --rounds 2 --algorithm urgent");
        assert!(report(&dir, &line).number("/trees/count") > 1, "{line}");
    }
}

/// Starts an operation on files that take long, and waits until a message arrives.
fn under_way(dir: &Folder, names: &[&str], more: &str) -> Running {
    for (name, bytes) in names[1..]
        .iter()
        .zip([2_500_000, 1_900_000, 2_200_000, 1_900_001])
    {
        fill(&dir.join("input").join(name), bytes);
    }
    let line = format!("scatter --input @/input --output @/out {more}");
    let running = start(dir, &line);
    let output = dir.join("out");
    let arrives = |name: &String| name.starts_with('.') && !name.contains("-round-");
    until("a message arrives", || {
        output.is_dir() && files::names(&output).iter().any(arrives)
    });
    running
}

/// Checks that the messages of these PEs have arrived whole, named like the PEs.
fn assert_there(dir: &Folder, names: &[&str], pes: &[usize]) {
    for &pe in pes {
        let [from, to] = ["input", "out"].map(|of| dir.join(format!("{of}/{}", names[pe])));
        let is_same = fs::read(from).unwrap() == fs::read(to).unwrap();
        assert!(is_same, "{}", names[pe]);
    }
}

/// The explanation of a round over one tree.
const ONE_CARD: &str = "trees        one: a PE has one network card";

/// Only the messages for the dead PE are missing; the retry uses one tree. After P0's death, delivered messages
/// stay, and the rest can be delivered later, over several trees again.
#[test]
fn a_dead_pe_is_left_out_on_several_trees() {
    for (cluster, option, names) in [(rails(), "", &RAILS[..]), (torus(), "--cover", &TORUS)] {
        for (dies, more) in [(3, "--retry 1"), (0, "")] {
            let dir = place(&cluster);
            let running = under_way(&dir, names, &format!("{option} {more}"));
            running.pe(dies).signal(Signal::KILL);
            running.finish().with_code(1);
            if dies == 0 {
                let resumed = resume(&record(&dir.join("out")), "--revive --format json");
                assert!(resumed.ok().report().number("/trees/count") > 1);
            }
            assert_there(&dir, names, &[1, 2, 4]);
            assert_eq!(dir.join("out").join(names[3]).exists(), dies == 0);
        }
    }
}

/// Without a cluster file, links of a chosen rate are emulated between all neighbours of a network.
#[test]
fn a_cover_of_emulated_links_needs_no_cluster_file() {
    let dir = scratch();
    fill_input(&dir.join("input"), &NUMBERS);
    for line in [
        "scatter --input @/input --output @/there",
        "gather --input @/there --output @/back",
        "broadcast --input @/input --output @/copies",
    ] {
        let site = "--network torus:3x3 --cover --link rate=12mbit,latency=1ms";
        assert_several(&dir.report(&format!("{line} {site}")), 4, line);
    }
    assert_delivered(&dir, &NUMBERS);
    // A network card for all neighbours is still one port.
    let line =
        "gather --network mesh:3x3 --cover --size 50KiB --link rate=12mbit --ports single -v";
    run(line.split(' ')).ok().prints(&[ONE_CARD]);
}

#[test]
fn a_cover_needs_a_network_and_reports_when_it_gains_nothing() {
    let line = "scatter --network torus:3x3 --size 100KiB --cover -v";
    run(line.split(' ')).ok().prints(&[ONE_CARD]);
    let dir = place(&torus());
    // Deeper trees have no advantage for so little data.
    let one = report(&dir, "scatter --cover --lengths 1,0,0,0,0,0,0,0");
    assert_eq!(one.number("/trees/count"), 1);
    let line = "scatter --cover --size 100KiB --from P3 --format json";
    let from = start(&dir, line);
    let from = from.finish().ok().report();
    let why = from.value("/trees/why_one").as_str().unwrap_or_default();
    assert!(why.contains("a cover is one from P0"), "{why}");
}
