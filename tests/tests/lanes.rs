//! Messages over several trees at once: over two rails, and over a cover of a network in which
//! neighbours have separate links. All addresses are on this machine; links are shaped, so that
//! several of them are faster than one.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::processes::eventually;
use flitcast_tests::report::Report;
use flitcast_tests::{Finished, Running, refused_each, run, scratch, start};
use rustix::process::Signal;
use tempfile::TempDir;

/// Describes five PEs in a path of two branches, each with two addresses.
fn rails() -> String {
    let parents = [None, Some("a"), Some("b"), Some("a"), Some("d")];
    let pes = ["a", "b", "c", "d", "e"].iter().zip(parents).zip(1..);
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

/// A cluster, and files.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(cluster: &str) -> Place {
        let dir = scratch();
        fs::write(dir.path().join("cluster.toml"), cluster).unwrap();
        Place { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn line(&self, line: &str) -> Vec<String> {
        let cluster = self.path("cluster.toml").display().to_string();
        let words = line.split_whitespace().map(str::to_owned);
        let link = ["--link", "rate=12mbit", "--cluster"].map(str::to_owned);
        words.chain(link).chain([cluster]).collect()
    }

    fn run(&self, line: &str) -> Finished {
        run(self.line(line))
    }

    /// Returns the command line of an operation on files below the place.
    fn files(&self, operation: &str, [from, to]: [&str; 2], more: &str) -> String {
        let [from, to] = [from, to].map(|name| self.path(name));
        let (from, to) = (from.display(), to.display());
        format!("{operation} --input {from} --output {to} {more}")
    }

    fn report(&self, line: &str) -> Report {
        let report = self.run(&format!("{line} --format json")).ok().report();
        // A broadcast counts its message once.
        if !line.starts_with("broadcast") {
            report.assert_all_arrived();
        }
        report
    }
}

/// Creates messages of all kinds for PEs: a long file, a folder, a byte, an empty file, nothing.
fn fill_input(input: &Path, pes: usize) {
    fill(&input.join("p1"), 700_001);
    fill(&input.join("p2/folder/file"), 260_000);
    fill(&input.join("p2/another"), 1);
    fill(&input.join("p3"), 0);
    if pes > 5 {
        fill(&input.join("p7"), 333_333);
        fill(&input.join("p8/file"), 90_000);
    }
}

#[test]
fn files_go_there_and_back_on_several_trees() {
    for (cluster, option, pes, trees) in [(rails(), "", 5, 2), (torus(), "--cover", 9, 4)] {
        let place = Place::new(&cluster);
        fill_input(&place.path("input"), pes);
        for flits in ["", "--flit-size 4000"] {
            for (operation, ways) in [
                ("scatter", ["input", "there"]),
                ("gather", ["there", "back"]),
            ] {
                let more = format!("{option} {flits} --force");
                let report = place.report(&place.files(operation, ways, &more));
                assert_eq!(report.number("/trees/count"), trees, "{operation} {more}");
                assert!(
                    report.float("/trees/predicted_us") < report.float("/trees/one_us"),
                    "{operation} {more}"
                );
            }
            assert_same_below(&place.path("input"), &place.path("back"));
        }
        let report = place.report(&place.files("broadcast", ["input", "copies"], option));
        assert_eq!(report.number("/trees/count"), trees);
        for pe in 1..pes {
            let copy = place.path(&format!("copies/p{pe}"));
            assert_same_below(&place.path("input"), &copy);
        }
    }
}

#[test]
fn every_byte_of_messages_that_are_no_files_arrives_in_every_round() {
    for (cluster, option, lengths) in [
        (rails(), "", "--lengths 1,300001,0,65537"),
        (
            torus(),
            "--cover",
            "--lengths 1,0,65536,65537,0,400001,7,99999",
        ),
        (torus(), "--cover", "--lengths 0,0,0,0,0,0,0,1000001"),
    ] {
        let place = Place::new(&cluster);
        for operation in ["scatter", "gather", "gather --sync serial --pacing eager"] {
            let line = format!("{operation} {option} {lengths} --flit-size 4KiB --rounds 3");
            let report = place.report(&line);
            assert!(report.number("/trees/count") > 1, "{line}");
        }
        let line = format!("broadcast {option} --size 200001 --rounds 2 --algorithm urgent");
        assert!(place.report(&line).number("/trees/count") > 1, "{line}");
    }
}

/// Starts an operation on files, and waits until a message arrives.
fn under_way(place: &Place, line: &str) -> Running {
    let running = start(place.line(line));
    let output = place.path("out");
    eventually("a message arrives", || {
        let arrives = |name: &String| name.starts_with('.') && !name.contains("-round-");
        let there = output.is_dir() && names(&output).iter().any(arrives);
        there.then_some(())
    });
    running
}

/// Creates long messages for P1 to P4, so that there is time for faults.
fn fill_long(input: &Path) {
    for (pe, bytes) in [
        (1, 20_000_000),
        (2, 15_000_000),
        (3, 17_000_000),
        (4, 15_000_001),
    ] {
        fill(&input.join(format!("p{pe}")), bytes);
    }
}

/// Only the messages for the dead PE are missing; the retry uses one tree.
#[test]
fn who_dies_on_several_trees_is_left_out() {
    for (cluster, option) in [(rails(), ""), (torus(), "--cover")] {
        let place = Place::new(&cluster);
        fill_long(&place.path("input"));
        let line = place.files("scatter", ["input", "out"], &format!("{option} --retry 1"));
        let running = under_way(&place, &line);
        running.pe(3).signal(Signal::KILL);
        let finished = running.finish();
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        for name in ["p1", "p2", "p4"] {
            let [from, to] = ["input", "out"].map(|of| place.path(&format!("{of}/{name}")));
            assert!(fs::read(from).unwrap() == fs::read(to).unwrap(), "{name}");
        }
        assert!(!place.path("out/p3").exists());
    }
}

/// Delivered messages stay, and the rest can be delivered later, over several trees again.
#[test]
fn what_a_dead_pe_would_have_got_can_be_had_later() {
    for (cluster, option) in [(rails(), ""), (torus(), "--cover")] {
        let place = Place::new(&cluster);
        fill_long(&place.path("input"));
        let line = place.files("scatter", ["input", "out"], option);
        let running = under_way(&place, &line);
        running.pe(0).signal(Signal::KILL);
        assert_eq!(running.finish().code, Some(1));
        let mut record = names(&place.path("out"));
        record.retain(|name| name.starts_with(".flitcast-round-"));
        let record = place.path("out").join(&record[0]).display().to_string();
        let report = run(["resume", &record, "--revive", "--format", "json"]).ok();
        assert!(report.report().number("/trees/count") > 1);
        for name in ["p1", "p2", "p3", "p4"] {
            let [from, to] = ["input", "out"].map(|of| place.path(&format!("{of}/{name}")));
            assert!(fs::read(from).unwrap() == fs::read(to).unwrap(), "{name}");
        }
    }
}

/// Without a cluster file, links of a chosen rate are emulated between all neighbours of a network.
#[test]
fn a_cover_of_emulated_links_needs_no_cluster_file() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fill_input(&dir.path().join("input"), 9);
    let site = "--network torus:3x3 --cover --link rate=12mbit,latency=1ms --format json";
    for (operation, from, to) in [
        ("scatter", "input", "there"),
        ("gather", "there", "back"),
        ("broadcast", "input", "copies"),
    ] {
        let files = format!("--input {} --output {}", path(from), path(to));
        let report = run(format!("{operation} {site} {files}").split(' ')).ok();
        let report = report.report();
        assert_eq!(report.number("/trees/count"), 4, "{operation}");
        let [several, one] =
            ["predicted_us", "one_us"].map(|it| report.float(&format!("/trees/{it}")));
        assert!(several < one, "{operation}: {several} and {one}");
    }
    assert_same_below(&dir.path().join("input"), &dir.path().join("back"));
    for pe in 1..9 {
        let copy = dir.path().join(format!("copies/p{pe}"));
        assert_same_below(&dir.path().join("input"), &copy);
    }
    // A network card for all neighbours is still one port.
    let line = "gather --network mesh:3x3 --cover --size 50KiB --link rate=12mbit --ports single";
    let shown = run(line.split(' ')).ok().stdout;
    assert!(
        shown.contains("trees        one: a PE has one network card"),
        "{shown}"
    );
}

#[test]
fn a_cover_needs_a_network_and_says_when_it_gains_nothing() {
    refused_each(
        "scatter",
        "
        --tree star:4 --size 1 --cover | --cover: trees that share no link
        --network torus:3x3 --size 1 --cover --algorithm linear | --cover is for a scatter by fdf
    ",
    );
    let line = "scatter --network torus:3x3 --size 100KiB --cover";
    let shown = run(line.split(' ')).ok().stdout;
    assert!(
        shown.contains("trees        one: a PE has one network card"),
        "{shown}"
    );
    let place = Place::new(&torus());
    // Deeper trees have no advantage for so little data.
    let one = place.report("scatter --cover --lengths 1,0,0,0,0,0,0,0");
    assert_eq!(one.number("/trees/count"), 1);
    let from = place.run("scatter --cover --size 100KiB --from P3 --format json");
    let from = from.ok().report();
    let why = from.value("/trees/why_one").as_str().unwrap_or_default();
    assert!(why.contains("a cover is one from P0"), "{why}");
}
