//! How TRANSMIT AFTER is obeyed: every pacing of every gather brings every byte, on
//! links as they are and on shaped ones, and the report says which it was.

use std::fs;

use flitcast_tests::files::assert_same_below;
use flitcast_tests::{parsed, printed, refused, run, scratch};

const PACINGS: [&str; 3] = ["scheduled", "turns", "eager"];

#[test]
fn every_pacing_brings_every_byte() {
    // Synthetic messages are checked byte by byte where they arrive.
    for gather in [
        "--tree star:6",
        "--tree kary:2:8",
        "--tree kary:2:8 --sync serial",
        "--tree path:5",
        "--tree path:5 --algorithm certification",
        "--tree random:9:3",
    ] {
        for pacing in PACINGS {
            for links in ["", "--link rate=400mbit,latency=200us"] {
                let report = parsed(&format!(
                    "gather {gather} --pacing {pacing} {links} --flit-size 8KiB \
                     --lengths uniform:0..60000:4 --rounds 3 --format json"
                ));
                assert_eq!(report["pacing"], pacing, "{gather}");
                let round = &report["round"];
                assert!(round["predicted_us"].as_f64() > Some(0.0), "{gather}");
                let messages = round["messages"].as_u64().expect("a count") as usize;
                let pes = report["pes"].as_array().expect("a list").iter();
                let arrived = pes.filter(|pe| pe["measured_us"]["median"].is_f64());
                assert_eq!(arrived.count(), messages, "{gather} {pacing} {links}");
            }
        }
    }
}

#[test]
fn files_come_back_as_they_were_with_every_pacing() {
    let dir = scratch();
    for pe in 1..=4 {
        let shard = dir.path().join(format!("in/p{pe}"));
        fs::create_dir_all(&shard).expect("it can be made");
        fs::write(shard.join("data"), vec![pe; 70_000 * usize::from(pe)]).expect("it can be");
    }
    for pacing in PACINGS {
        let output = dir.path().join(pacing);
        let line = format!(
            "gather --tree kary:2:5 --pacing {pacing} --input {} --output {}",
            dir.path().join("in").display(),
            output.display()
        );
        run(line.split_whitespace()).ok();
        assert_same_below(&dir.path().join("in"), &output);
    }
}

#[test]
fn the_report_says_which_pacing_it_was() {
    let heading = printed("gather --tree star:3 --size 1KiB --pacing turns");
    assert!(
        heading.contains("certification, pipelined, turns;"),
        "{heading}"
    );
    let scatter = parsed("scatter --tree star:3 --size 1KiB --format json");
    assert!(scatter["pacing"].is_null());
    let usual = parsed("gather --tree star:3 --size 1KiB --format json");
    assert_eq!(usual["pacing"], "scheduled");
}

#[test]
fn an_algorithm_without_orders_has_no_pacing() {
    refused(
        "gather --network complete:4 --algorithm linear --pacing turns --size 1KiB",
        &["--pacing belongs to --algorithm shoulder-tap and --algorithm certification"],
    );
}
