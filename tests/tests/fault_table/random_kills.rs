//! Kills of any PE at any moment of rounds of 112 MiB of files, one of which is written past the page cache: no
//! wrong byte, no hang, no process and no file is left, except what `resume` continues to the end. A kill counts
//! if it ended the round; `FLITCAST_KILLS=100` sets the number of kills.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::files::{Tree, assert_same, fill, messages, names, snapshot};
use flitcast_tests::{resume, scratch, start};
use rustix::process::Signal;

use crate::{alone, words};

const PES: u64 = 7;
const MIB: usize = 1 << 20;
/// Limit of ineffective kills for each effective one: about one of ten comes after the round. With
/// more, the moments are badly chosen and the test is meaningless.
const MISSED: u64 = 5;

fn line(operation: &str, from: &Path, to: &Path) -> Vec<String> {
    let (from, to) = (from.display(), to.display());
    let files = format!("--input {from} --output {to}");
    words(&format!("{operation} --tree kary:2:{PES} -v {files}"))
}

#[test]
fn random_kills_leave_whole_messages_and_nothing_else() {
    let _alone = alone();
    let kills = std::env::var("FLITCAST_KILLS");
    let kills: u64 = kills.map_or(6, |kills| {
        kills.parse().expect("FLITCAST_KILLS is a number")
    });
    let dir = scratch();
    let input = dir.join("input");
    for (pe, mib) in (1..PES).zip([68, 4, 10, 10, 16, 4]) {
        fill(&input.join(format!("p{pe}/one")), mib * MIB - 70_000);
        fill(&input.join(format!("p{pe}/folder/two")), 70_000);
    }
    let whole = dir.join("whole");
    let mut running = start(line("scatter", &input, &whole));
    running.wait_for(&["triggered"]);
    let triggered = Instant::now();
    running.finish().ok();
    let usual = triggered.elapsed();
    let expected = snapshot(&input);

    let mut random = SplitMix64::new(5);
    let (mut landed, mut survived, mut delivered, mut slowest) = (0, 0, 0, Duration::ZERO);
    while landed < kills {
        let number = landed + survived;
        let has_missed = survived > MISSED * kills;
        assert!(!has_missed, "only {landed} of {number} kills ended a round");
        let operation = ["scatter", "gather"][number as usize % 2];
        let victim = random.below(PES);
        let moment = usual.mul_f64(random.below(1000) as f64 / 1000.0);
        let output = dir.join("output");
        let mut running = start(line(operation, &input, &output));
        running.wait_for(&["triggered"]);
        let triggered = Instant::now();
        while triggered.elapsed() < moment {
            std::hint::spin_loop();
        }
        // The process may have ended already.
        let mut pes = running.pes().into_iter();
        let process = pes.find(|pe| pe.pe() == Some(victim as u32));
        let killed = Instant::now();
        process.inspect(|process| process.signal(Signal::KILL));
        // Asserts that no process is left, and that it ends at all.
        let finished = running.finish();
        slowest = slowest.max(killed.elapsed());
        match finished.code {
            Some(0) => survived += 1,
            Some(1) => {
                let cause = format!("error: P{victim} was killed by signal 9");
                finished.stderr_has(&[&cause]);
                landed += 1;
            }
            other => panic!("{other:?}: {}", finished.stderr),
        }
        let there = messages(&output);
        delivered += there.len();
        for name in &there {
            assert!(name.starts_with('p'), "run {number} has left {name}");
        }
        let is_there = |path: &PathBuf| there.iter().any(|name| path.starts_with(name));
        let of_these = |mut tree: Tree| {
            tree.retain(|path, _| is_there(path));
            tree
        };
        assert_same(&of_these(expected.clone()), &of_these(snapshot(&output)));
        let is_record = |name: &String| name.starts_with(".flitcast-round-");
        if let Some(record) = names(&output).into_iter().find(is_record) {
            resume(&output.join(record), "--revive").ok();
            assert_same(&expected, &snapshot(&output));
        }
        std::fs::remove_dir_all(&output).expect("it is ours");
    }
    println!(
        "{landed} random kills ended a round, {survived} came too late for one; {delivered} of {} \
         messages delivered whole; the slowest ended {:.2} s after the kill",
        (landed + survived) * (PES - 1),
        slowest.as_secs_f64(),
    );
}
