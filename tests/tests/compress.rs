//! Compression of flits on the way, `--compress`, and the time at which files are durable, `--sync`.
//! `fault_table::slow` records what is synced.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::processes::eventually;
use flitcast_tests::scrape::{address, scrape};
use flitcast_tests::{Folder, from_to, refused, rows, run, scratch};

/// Fills a folder with a file of text, one that cannot be compressed, one of zeros and a short one.
fn fill_folder(folder: &Path) {
    fill(&folder.join("random"), 200_000);
    fill(&folder.join("short"), 100);
    let text: String = (0..30_000)
        .map(|line| format!("{line}: a line\n"))
        .collect();
    fs::write(folder.join("text"), text).expect("it is written");
    fs::write(folder.join("zeros"), [0; 100_000]).expect("it is written");
}

#[test]
fn files_arrive_whatever_is_compressed() {
    for [line, copies] in rows(
        "
        scatter --tree path:3 | p1=p1 p2=p2
        scatter --tree path:3 --flit-size 1MiB | p2=p2
        scatter --tree path:3 --flit-size 2000B | p2=p2
        scatter --tree star:3 --ports multi | p1=p1 p2=p2
        scatter --tree path:3 --link rate=200mbit | p2=p2
        gather --tree path:3 --bwlimit 200mbit | p1=p1 p2=p2
        gather --tree star:3 --pacing turns | p1=p1 p2=p2
        broadcast --tree kary:2:4 | =p1 =p2 =p3
        gossip --network complete:2 | p0=p1/p0 p1=p0/p1
        exchange --network ring:3 | p0/p1=p1/p0 p2/p0=p0/p2
    ",
    ) {
        let dir = scratch();
        let (input, output) = (dir.join("in"), dir.join("out"));
        let copies = from_to(copies);
        for (entry, _) in &copies {
            fill_folder(&input.join(entry));
        }
        // Compression is quicker on slow links.
        let slow = match line.contains("--link") || line.contains("--bwlimit") {
            true => "",
            false => "--bwlimit 50mbit",
        };
        for format in ["lz4", "zstd"] {
            let compress = format!("--compress={format} --force");
            let run = dir.run(&format!(
                "{line} {slow} {compress} --input @/in --output @/out"
            ));
            run.ok()
                .prints(&[&format!("\n  compression  {format}, to ")]);
        }
        for (entry, copy) in copies {
            assert_same_below(&input.join(entry), &output.join(copy));
        }
    }
}

/// Returns the mean length in bytes of the frames of flits from P0 to P1 and from P1 to P2.
fn frame_bytes(dir: &Folder, more: &str) -> [f64; 2] {
    let files = "--input @/in --output @/out --rounds 100000 --metrics 127.0.0.1:0";
    let line = format!("scatter --tree path:3 --link rate=50mbit --sync none {files} {more}");
    let mut running = dir.start(&line);
    let at = address(&mut running);
    let lengths = eventually("flits have crossed both edges", || {
        let page = scrape(at)?;
        let of = |pe: u32, what| {
            let edge = format!("{{pe=\"P{pe}\",peer=\"P{}\"}}", pe + 1);
            page.get(&format!("flitcast_edge_sent_{what}_total{edge}"))
        };
        let length = |pe| Some((of(pe, "bytes")?, of(pe, "flits")?));
        let lengths = [length(0)?, length(1)?];
        let has_begun = lengths.iter().all(|(_, flits)| *flits > 50.0);
        has_begun.then_some(lengths.map(|(bytes, flits)| bytes / flits))
    });
    running.interrupt();
    lengths
}

/// The counters of an edge have what crosses it.
#[test]
fn fewer_bytes_cross_an_edge() {
    let dir = scratch();
    let text: String = (0..100_000)
        .map(|line| format!("{line}: a line\n"))
        .collect();
    fs::create_dir_all(dir.join("in")).expect("it is created");
    fs::write(dir.join("in/p2"), text).expect("it is written");
    for bytes in frame_bytes(&dir, "") {
        assert!(bytes > 60_000.0, "{bytes} bytes");
    }
    let [lz4, zstd] =
        ["lz4", "zstd"].map(|format| frame_bytes(&dir, &format!("--force --compress={format}")));
    for (lz4, zstd) in lz4.into_iter().zip(zstd) {
        assert!((500.0..30_000.0).contains(&lz4), "{lz4} bytes");
        assert!((500.0..lz4).contains(&zstd), "{zstd} of {lz4} bytes");
    }
    fill(&dir.join("in/p2"), 2 << 20);
    for bytes in frame_bytes(&dir, "--force --compress") {
        assert!((60_000.0..66_000.0).contains(&bytes), "{bytes} bytes");
    }
}

#[test]
fn only_files_are_compressed() {
    let cause = "--compress goes with --input, which is not there";
    refused("scatter --tree star:2 --size 1 --compress", &[cause]);
    let cause = "`gzip` is not a compression: lz4 or zstd";
    refused("scatter --tree star:2 --input . --compress=gzip", &[cause]);
}

#[test]
fn files_arrive_whatever_is_synced() {
    let dir = scratch();
    // More than are synced one by one, a long one, and a message that is a file.
    for file in 0..20 {
        fill(&dir.join(format!("in/p1/d/{file}")), 1000 * file);
    }
    fill(&dir.join("in/p1/long"), 3 << 20);
    fill(&dir.join("in/p2"), 100);
    for sync in ["message", "file", "none"] {
        for line in ["scatter --tree path:3", "gather --tree star:3"] {
            let output = format!("{sync}-{}", &line[..6]);
            let files = format!("--input @/in --output @/{output} --sync {sync}");
            let finished = dir.run(&format!("{line} {files}")).ok();
            assert_same_below(&dir.join("in"), &dir.join(&output));
            let is_mentioned = finished
                .stdout
                .contains("; --sync none: the disk may not have them yet");
            assert_eq!(is_mentioned, sync == "none", "{}", finished.stdout);
        }
    }
}

/// `serial` and `pipelined` were words of `--sync` before `--token`.
#[test]
fn old_and_new_options_take_the_modes_of_certification() {
    let gather = "gather --tree star:3 --size 1 --algorithm certification";
    for mode in ["serial", "pipelined"] {
        for option in ["sync", "token"] {
            let line = format!("{gather} --{option} {mode} --format json");
            let report = run(line.split(' ')).report();
            assert_eq!(report.value("/sync"), mode, "{line}");
        }
    }
}
