//! Row 20, and the rounds of row 19: unauthenticated clients in large numbers.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use flitcast_tests::background::Background;
use flitcast_tests::processes::{Process, descriptors, eventually, listener_of, until};
use flitcast_tests::run::run_program;
use flitcast_tests::{run, scratch, start};
use rustix::process::{Resource, getrlimit};

use crate::{alone, slack, timed, within, words};

const STRANGERS: u64 = 10_000;
const THREADS: u64 = 4;
/// Time to connect; then another client connects.
const PATIENCE: Duration = Duration::from_millis(100);

/// Starts `strangers` unauthenticated clients of `address` that connect one after the other and stay while
/// descriptors are left: most send nothing, some send invalid bytes. Each of `share` simultaneous floods uses its
/// part of the descriptors.
fn flood(address: SocketAddr, strangers: u64, share: u64) -> Background {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Two tests run at a time, and both need some descriptors for themselves.
    let ours = limit / 5 * 2;
    let open = ours.min(strangers * share) / share / THREADS;
    Background::start(THREADS, move |shared| {
        let mut staying = VecDeque::new();
        while !shared.is_over() && shared.count(1) < strangers {
            // A client that is not accepted counts as well.
            let Ok(mut stranger) = TcpStream::connect_timeout(&address, PATIENCE) else {
                continue;
            };
            let rubbish: &[u8] = match shared.counted() % 10 {
                0 => &[0; 64],
                1 => &[0xFF; 64],
                // The start of a handshake that never ends.
                2 => &[0, 0, 0],
                _ => &[],
            };
            let _ = stranger.write_all(rubbish);
            staying.push_back(stranger);
            if staying.len() as u64 > open {
                staying.pop_front();
            }
        }
        while !shared.is_over() {
            thread::sleep(PATIENCE);
        }
    })
}

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
    let floods = [first.parent, first.pid].map(|pid| flood(listener_of(pid), STRANGERS, 2));
    until("the floods are under way", || {
        floods.iter().all(|flood| flood.counted() > 1000)
    });
    let is_incomplete = |flood: &Background| flood.counted() < STRANGERS;
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
    let [outside, inside] = floods.each_ref().map(Background::counted);
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
        let besiege = |pe: Process| flood(listener_of(pe.pid), STRANGERS, 3);
        let floods: Vec<Background> = running.pes().into_iter().map(besiege).collect();
        let besieged = median(running.finish());
        let connected: u64 = floods.iter().map(Background::counted).sum();
        assert!(connected > 100, "{connected}");
        besieged / calm
    });
    println!("| 19 | a round beside a flood takes | x {ratio:.3} | x 1.1 |");
    assert!(ratio < limit, "x {ratio:.3}");
}
