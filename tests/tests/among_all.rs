//! The common behaviour of operations: files arrive with any algorithm, from and at any PE, and a PE that
//! dies in mid-round costs its own messages only.

use flitcast_tests::pairs::Pairs;
use flitcast_tests::{Report, printed, reported, rows};
use serde_json::Value;

/// Slow enough to kill a PE during a round.
const SLOW: &str = "--link rate=40mbit,latency=1ms --flit-size 16KiB --retry 1";

/// Creates messages of which those of one PE are long.
fn with_long(operation: &str, pes: u32, long: u32) -> Pairs {
    let long_bytes = match operation {
        "exchange" => 768 << 10,
        _ => 2 << 20,
    };
    Pairs::filled(operation, pes, |(from, to)| {
        match operation.split(' ').next() {
            Some("gossip" | "exchange") if from != long => 20_000 + 1000 * (from + to) as usize,
            _ => long_bytes,
        }
    })
}

/// Checks that messages of these lengths arrived, and that each PE received as many bytes, as predicted
/// and as measured.
pub fn assert_received(report: &Report, messages: &[u64], received: &[u64]) {
    let sum: u64 = messages.iter().sum();
    assert_eq!(report.number("/round/bytes"), sum, "a message counts once");
    let count = messages.iter().filter(|bytes| **bytes > 0).count();
    assert_eq!(report.number("/round/messages"), count as u64);
    assert_eq!(report.list("/pes").len(), received.len());
    for (pe, bytes) in received.iter().enumerate() {
        let of = |what: &str| format!("/pes/{pe}/{what}");
        assert_eq!(report.number(&of("bytes")), *bytes, "P{pe}");
        if *bytes == 0 {
            assert_eq!(report.value(&of("measured_us")), &Value::Null, "P{pe}");
            continue;
        }
        assert!(report.float(&of("predicted_us")) > 0.0, "P{pe}");
        assert!(report.float(&of("measured_us/median")) > 0.0, "P{pe}");
        let all = report.float("/round/measured_us/max");
        assert!(report.float(&of("measured_us/max")) <= all, "P{pe}");
    }
}

/// Checks that every PE received as many bytes of each other PE.
fn assert_all_have(report: &Report, operation: &str, pes: usize, bytes: u64) {
    assert_eq!(report.value("/operation"), operation);
    let of_all = vec![(pes as u64 - 1) * bytes; pes];
    let (messages, received) = match operation {
        "broadcast" => (1, [vec![0], vec![bytes; pes - 1]].concat()),
        "gossip" => (pes, of_all),
        _ => (pes * (pes - 1), of_all),
    };
    assert_received(report, &vec![bytes; messages], &received);
}

#[test]
fn messages_that_are_no_files_arrive_in_every_round() {
    for [operation, line] in rows(
        "
        broadcast | broadcast --tree kary:2:4
        gossip   | gossip --tree kary:3:4
        gossip   | allgather --network complete:4
        gossip   | gossip --network complete:4 --algorithm dissemination --flit-size 4KiB
        gossip   | gossip --network complete:4 --algorithm direct
        exchange | exchange --tree kary:3:4
        exchange | alltoall --network complete:4
        exchange | exchange --network complete:4 --algorithm shifts --flit-size 4KiB
        exchange | exchange --network complete:4 --algorithm bruck --flit-size 4KiB
        exchange | exchange --network complete:4 --algorithm tree
    ",
    ) {
        let report = reported(&format!("{line} --size 100KiB --rounds 3"));
        assert_all_have(&report, operation, 4, 100 << 10);
        assert_eq!(report.number("/rounds"), 3);
    }
    for operation in ["gossip", "exchange"] {
        let shown = printed(&format!("{operation} --tree path:3 --size 1MiB"));
        let count = shown.matches("  2 MiB  ").count();
        assert_eq!(count, 3, "P0 as all others:\n{shown}");
    }
    for operation in ["broadcast", "gossip", "exchange"] {
        for nothing in ["--tree path:3 --size 0", "--network complete:1 --size 5"] {
            let report = reported(&format!("{operation} {nothing}"));
            assert_eq!(report.number("/round/messages"), 0);
        }
    }
}

/// The busiest port takes the time for its bytes, with any algorithm: in a gossip the messages of all
/// other PEs cross the busiest edge once, in an exchange over a path there are two PEs on both sides of
/// the middle edge.
#[test]
fn links_are_as_slow_as_they_are_to_be() {
    let (bytes, ns_per_byte) = (64 << 10, 40.0);
    for [operation, crossings, way] in rows(
        "
        gossip   | 3 | --tree path:4
        gossip   | 3 | --network complete:4 --algorithm circulate
        gossip   | 3 | --network complete:4 --algorithm dissemination
        gossip   | 3 | --network complete:4 --algorithm direct
        exchange | 4 | --tree path:4
        exchange | 3 | --network complete:4 --algorithm rounds
        exchange | 3 | --network complete:4 --algorithm shifts
    ",
    ) {
        let link = "--link rate=200mbit,latency=1ms";
        let report = reported(&format!("{operation} {way} --lengths equal:64KiB {link}"));
        assert_all_have(&report, operation, 4, bytes);
        for edge in report.list("/edges") {
            for direction in ["up", "down"] {
                assert_eq!(edge["shaped"][direction]["ns_per_byte"], ns_per_byte);
            }
        }
        let crossings: f64 = crossings.parse().expect("a number");
        let least_us = crossings * bytes as f64 * ns_per_byte / 1000.0;
        assert!(report.float("/round/predicted_us") > least_us, "{way}");
    }
}

#[test]
fn all_messages_arrive_with_every_algorithm() {
    for [operation, way, algorithm] in rows(
        "
        gossip | --tree kary:2:6 | flood
        gossip | --tree path:6 --algorithm flood | flood
        gossip | --network ring:6 --algorithm flood | flood
        gossip | --network complete:6 --algorithm circulate | circulate
        gossip | --network complete:6 --algorithm dissemination | dissemination
        gossip | --network complete:6 --algorithm direct | direct
        gossip | --network complete:6 --algorithm flood | flood
        gossip | --network ring:6 --algorithm halves | halves
        gossip | --network mesh:2x3 --algorithm approach1 | approach1
        gossip | --network ring:6 --algorithm circgos:2,3,2 | circgos:2,3,2
        gossip | --network complete:6 --algorithm neighbour | neighbour
        gossip | --tree kary:2:6 --ports multi | flood
        gossip | --network ring:6 --algorithm approach1 --ports multi | approach1
        gossip | --network ring:6 --algorithm halves --ports multi | halves
        gossip | --network mesh:2x3 --algorithm approach2:2 --ports multi | approach2:2
        exchange | --tree kary:2:6 | tree
        exchange | --tree path:6 --algorithm tree | tree
        exchange | --network ring:6 | tree
        exchange | --network complete:6 --algorithm rounds | rounds
        exchange | --network complete:6 --algorithm shifts | shifts
        exchange | --network complete:6 --algorithm bruck | bruck
        exchange | --network complete:6 --algorithm bruck --link setup=2ms | bruck
        exchange | --network complete:6 --algorithm tree | tree
        exchange | --network complete:6 --algorithm at-once | at-once
        exchange | --tree kary:2:6 --ports multi | tree
        scatter | --tree kary:2:6 --algorithm listed | listed
        scatter | --network complete:6 --algorithm adaptive | adaptive
        gather | --network complete:6 --algorithm adaptive | adaptive
        gather | --tree kary:2:6 --pacing scheduled | certification
        gather | --tree kary:2:6 --pacing turns | certification
        gather | --tree kary:2:6 --pacing eager | certification
        broadcast | --tree path:6 --algorithm rounds | rounds
        broadcast | --tree star:6 | rounds
        broadcast | --tree kary:2:6 --algorithm urgent | urgent
        broadcast | --tree kary:2:6 --algorithm child-by-child | child-by-child
        broadcast --from P2 | --tree kary:2:6 | rounds
        broadcast --from P2 | --network complete:6 --algorithm path | rounds
        broadcast --from P2 | --network complete:6 --algorithm circulant | circulant
    ",
    ) {
        let is_of_all = operation == "exchange";
        let files = Pairs::filled(operation, 6, |(from, to)| match is_of_all {
            true => 1 + 10_000 * (from * to) as usize,
            false => 1 + 30_000 * (from + 1) as usize,
        });
        let messages = match operation.split(' ').next() {
            Some("broadcast") => 1,
            Some("gossip") => 6,
            _ => files.all().len() as u64,
        };
        let line = format!("{way} --flit-size 4KiB --format json");
        let report = files.run(&line).ok().report();
        files.assert_there(files.all());
        assert_eq!(report.value("/algorithm"), algorithm, "{operation} {way}");
        let found = report.number("/round/messages");
        assert_eq!(found, messages, "{operation} {way}");
    }
}

/// All messages arrive with any choice, also under the names of MPI.
#[test]
fn auto_chooses_the_quickest_prediction() {
    for [operation, site, is_any] in rows(
        "
        allgather | --tree star:5 | flood
        allgather | --network complete:5 | flood circulate dissemination direct approach1
        alltoall | --tree star:5 | tree
        alltoall | --network complete:5 | tree rounds shifts
    ",
    ) {
        let files = Pairs::filled(operation, 5, |_| 40_000);
        let report = files.run(&format!("{site} --algorithm auto --format json"));
        let report = report.ok().report();
        files.assert_there(files.all());
        let chosen = report.value("/choice/chosen/algorithm");
        assert_eq!(report.value("/algorithm"), chosen);
        let is_meant = is_any.split(' ').any(|name| chosen == name);
        assert!(is_meant, "{operation} {site}: {chosen}");
    }
}

#[test]
fn messages_arrive_over_tls() {
    for [operation, way] in rows(
        "
        gossip | --tree kary:2:4
        gossip | --network complete:4
        gossip | --network ring:4 --algorithm halves
        exchange | --tree kary:2:4
        exchange | --network complete:4
        broadcast --from P3 | --tree kary:2:4
        broadcast | --tree path:4 --algorithm urgent
        broadcast | --network complete:4 --algorithm hypercube
        broadcast | --network complete:4 --algorithm circulant
        scatter --from P2 | --tree kary:2:4
        gather --to P1 | --tree kary:2:4
    ",
    ) {
        let files = Pairs::filled(operation, 4, |_| 200_000);
        files.dir().run("ca init @/ca --pes 4").ok();
        let finished = files.run(&format!("{way} --credentials @/ca")).ok();
        finished.prints(&["TLS 1.3 both ways"]);
        files.assert_there(files.all());
    }
}

/// The survivors have each other's messages. A leaf dies (on the ring of five the tree is P3 - P4 - P0 -
/// P1 - P2; of `parents:2,0,0` P3, P0, P2, P1 are one below the other), or a relay, whose PEs below it move
/// up. Missing messages can be delivered later.
#[test]
fn a_dead_pe_is_left_out() {
    assert_survived(
        "
        gossip | 4 of 5 | 2 | --tree kary:2:5
        gossip | 3 of 5 | 2 | --network ring:5 --algorithm halves
        gossip | 1 of 4 | 3 | --tree path:4
        gossip | 1 of 4 | 3 | --network complete:4 --algorithm circulate
        gossip | 1 of 4 | 3 | --network complete:4 --algorithm dissemination
        gossip | 1 of 4 | 3 | --network complete:4 --algorithm neighbour
        exchange | 4 of 5 | 2 | --network complete:5 --algorithm shifts
        exchange | 2 of 5 | 3 | --network complete:5 --algorithm bruck
        exchange | 4 of 5 | 2 | --tree kary:2:5
        exchange | 1 of 4 | 3 | --tree path:4
        exchange | 1 of 4 | 3 | --tree path:4 --ports multi
        exchange | 1 of 4 | 3 | --network complete:4
        exchange | 1 of 4 | 3 | --network complete:4 --algorithm at-once
    ",
    );
}

#[test]
fn a_dead_pe_is_left_out_of_operations_with_a_root() {
    assert_survived(
        "
        broadcast | 4 of 5 | 0 | --tree kary:2:5
        broadcast | 1 of 4 | 0 | --tree path:4
        broadcast | 1 of 4 | 0 | --tree path:4 --algorithm urgent
        broadcast | 1 of 4 | 0 | --network complete:4 --algorithm path
        broadcast | 3 of 8 | 0 | --network complete:8 --algorithm hypercube
        broadcast | 3 of 6 | 0 | --network complete:6 --algorithm circulant
        scatter --from P3 | 0 of 4 | 0 | --tree parents:2,0,0
        scatter --from P3 | 1 of 4 | 0 | --tree parents:2,0,0
        gather --to P3 | 0 of 4 | 0 | --tree parents:2,0,0
        gather --to P3 | 1 of 4 | 0 | --tree parents:2,0,0
    ",
    );
}

/// Checks that in each case of a table the others are served without the PE that dies.
fn assert_survived(cases: &str) {
    for [operation, dies, long, way] in rows(cases) {
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let (dies, pes) = dies.split_once(" of ").expect("both are there");
        let dies = number(dies);
        let files = with_long(operation, number(pes), number(long));
        let finished = files.kill(dies, &format!("{way} {SLOW}")).finish();
        let expected = format!("P{dies} is dead (killed by signal 9");
        finished.stderr_has(&[&expected, "going on without it"]);
        files.assert_resumed(&finished, &files.among(|pe| pe != dies));
    }
}

/// The round is over, and no partial files are left; missing messages can be delivered later.
#[test]
fn without_its_root_a_round_can_only_be_resumed() {
    for [operation, root, way] in rows(
        "
        gossip | 0 of 4 | --network complete:4 --algorithm circulate
        gossip | 0 of 4 | --tree kary:2:4
        gossip | 0 of 4 | --network ring:4 --algorithm approach1
        exchange | 0 of 4 | --tree kary:2:4
        exchange | 0 of 4 | --network complete:4 --algorithm rounds
        broadcast | 0 of 5 | --tree kary:2:5
        broadcast | 0 of 8 | --network complete:8 --algorithm hypercube
        scatter | 0 of 4 | --tree path:4
        scatter --from P3 | 3 of 4 | --tree parents:2,0,0
        gather --to P3 | 3 of 4 | --tree parents:2,0,0
    ",
    ) {
        let (root, pes) = root.split_once(" of ").expect("both are there");
        let files = with_long(operation, pes.parse().expect("a number"), 1);
        let dies = root.parse().expect("a number");
        let finished = files.kill(dies, &format!("{way} {SLOW}")).finish();
        let killed = format!("error: P{root} was killed by signal 9");
        finished.stderr_has(&[&killed, &format!("retry: P{root} is the root")]);
        files.assert_resumed(&finished, &[]);
    }
}
