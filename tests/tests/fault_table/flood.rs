//! Row 20, and the rounds of row 19: unauthenticated clients in large numbers.

use std::process::Command;

use flitcast_tests::flood::Flood;
use flitcast_tests::processes::{Process, descriptors, eventually, listener_of, until};
use flitcast_tests::run::run_program;
use flitcast_tests::{run, scratch, start};

use crate::{alone, slack, timed, within, words};

const STRANGERS: u64 = 10_000;

/// P0 - P1 - P2; P1 and P2 are delayed until the flood at the coordinator and at P0 has begun.
#[test]
fn row_20_ten_thousand_strangers_connect_during_the_launch() {
    let _alone = alone();
    let dir = scratch();
    let mut text = String::from("name = \"besieged\"\ncoordinator = \"127.0.0.1\"\n");
    let mut gates = Vec::new();
    for pe in 0..3 {
        text += &format!("[[pe]]\nname = \"p{pe}\"\naddress = \"127.0.0.1\"\n");
        if pe > 0 {
            let gate = dir.join(format!("gate{pe}"));
            run_program(Command::new("mkfifo").arg(&gate)).ok();
            text += &format!(
                "parent = \"p{}\"\nrun = [\"sh\", \"-c\", \"read go <$0; exec \\\"$@\\\"\", {:?}]\n",
                pe - 1,
                gate.display().to_string()
            );
            gates.push(gate);
        }
    }
    dir.put("cluster.toml", text);
    let line = "gather --size 1MiB --format json -v --cluster @/cluster.toml";
    let mut running = dir.start(line);
    let first = eventually("P0 runs", || {
        let mut pes = running.pes().into_iter();
        pes.find(|process| process.pe() == Some(0))
    });
    let floods = [first.parent, first.pid].map(|pid| Flood::at(listener_of(pid), STRANGERS, 2));
    until("the floods are under way", || {
        floods.iter().all(|flood| flood.received() > 1000)
    });
    let is_incomplete = |flood: &Flood| flood.received() < STRANGERS;
    assert!(floods.iter().any(is_incomplete), "a flood is not complete");
    let case = "10,000 strangers at the coordinator and at P0: all join";
    timed("20", case, Some(5.0), || {
        for gate in gates {
            std::fs::write(gate, "go\n").expect("it is read");
        }
        // The coordinator holds 1024 of them at most (`node/src/limits.rs`).
        assert!(descriptors(first.parent as u32) < 1100);
        running.wait_for(&["triggered"]);
    });
    let [outside, inside] = floods.each_ref().map(Flood::received);
    running.finish().ok().report().assert_all_arrived();
    println!("| 20 | by then there had come {outside} and {inside} | - | - |");
}

/// Rounds with and without the flood alternate, over links of 200 Mbit/s, so that the comparison is
/// of rounds and not of cores.
#[test]
fn row_19_a_round_beside_a_flood() {
    let _alone = alone();
    let line = "gather --tree path:3 --size 1MiB --link rate=200mbit --rounds 10 --format json -v";
    let median = |finished: flitcast_tests::Finished| {
        finished.ok().report().float("/round/measured_us/median")
    };
    let limit = 1.1 * slack();
    let ratio = within(limit, || {
        let calm = median(run(words(line)));
        let mut running = start(words(line));
        running.wait_for(&["triggered"]);
        let flood = |pe: Process| Flood::at(listener_of(pe.pid), STRANGERS, 3);
        let floods: Vec<Flood> = running.pes().into_iter().map(flood).collect();
        let besieged = median(running.finish());
        let connected: u64 = floods.iter().map(Flood::received).sum();
        assert!(connected > 100, "{connected}");
        besieged / calm
    });
    println!("| 19 | a round beside a flood takes | x {ratio:.3} | x 1.1 |");
    assert!(ratio < limit, "x {ratio:.3}");
}
