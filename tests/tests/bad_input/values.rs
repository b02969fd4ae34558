//! Invalid sizes, flits and algorithms, and options that exclude each other.

use super::{TO_OUTPUT, refused, refused_each, refused_in, with_input};

#[test]
fn sizes_that_overflow() {
    let too_many = ["9223372036854775807"];
    refused_each(
        "scatter --tree path:3",
        "
        --size 17EiB | `17EiB` | 2^64-1
        --lengths 1,99999999999999999999 | length 2 | 2^64-1
    ",
    );
    refused("scatter --tree path:3 --size 15EiB", &too_many);
    refused("gather --tree path:4 --lengths 4EiB,4EiB,4EiB", &too_many);
    refused("gather --tree path:4 --lengths ramp:7EiB", &too_many);
    refused("gather --tree path:4 --lengths halfnull:15EiB", &too_many);
}

/// All errors are reported at once.
#[test]
fn an_order_that_others_do_not_have() {
    refused_each("scatter", "
        --network complete:4 --algorithm binomial --order search --size much | `much` is not a size | --order search is for a scatter by fdf, not by binomial
        --tree path:3 --order best --size 1 | invalid value 'best' | search
    ");
}

#[test]
fn sizes_that_are_none() {
    refused_each(
        "",
        "
        scatter --tree path:3 --size much | `much` is not a size
        scatter --tree path:3 --size -1 | -1
        scatter --tree path:3 --lengths 1,5XB | length 2 | unknown unit `XB`
        scatter --tree path:3 --lengths bell:1 | neither a size nor a pattern
        scatter --tree path:4 --lengths 1,2 | 2 length | 3 needed | P3
        gather --tree path:3 --lengths 1,2,3 | 3 length | 2 needed | P2
        gather --tree path:3 --lengths uniform:2..1:7 | is more than
    ",
    );
}

#[test]
fn flits_that_are_none() {
    for size in ["0", "63", "1048577", "8GiB"] {
        let line = format!("gather --tree path:3 --size 1 --flit-size {size}");
        refused(&line, &["--flit-size", "64 B to 1 MiB"]);
    }
    refused(
        "gather --tree path:3 --size 1 --flit-size big",
        &["--flit-size", "`big`"],
    );
}

#[test]
fn links_that_cannot_be_had() {
    let all = [
        "--link: rate: `200` has no unit; the units are kbit, mbit, gbit",
        "--link: latency: 2s is more than 1s",
        "--link: `delay=1ms`: write rate=RATE, latency=TIME or both",
        "--flit-size 1 B",
    ];
    refused(
        "scatter --tree path:3 --size 1 --flit-size 1 --link rate=200,latency=2s,delay=1ms",
        &all,
    );
    for (link, cause) in [
        ("rate=0kbit", "rate: 0kbit is not from 1kbit to 100gbit"),
        ("rate=1tbit", "unknown unit `tbit`"),
        ("rate=200gbit", "rate: 200gbit is not from 1kbit to 100gbit"),
        ("latency=-1ms", "`-1ms` is not a time"),
        ("latency=1ms,latency=1ms", "latency is given twice"),
        ("fast", "`fast`: write rate=RATE"),
        ("rate=1gbit,latency=100ms", "11.9 MiB would be under way"),
    ] {
        for operation in ["scatter", "gather"] {
            refused(
                &format!("{operation} --tree path:3 --size 1 --link {link}"),
                &["--link", cause],
            );
        }
    }
}

#[test]
fn algorithms_that_do_not_fit() {
    let line = "gather --size 1 --algorithm shoulder-tap --tree";
    refused(
        &format!("{line} star:4"),
        &["shoulder-tap", "star:4", "P0 has 3 children"],
    );
    refused(
        &format!("{line} kary:2:4"),
        &["paths only", "P0 has 2 children"],
    );
    refused(
        &format!("{line} path:4 --sync serial"),
        &["--sync", "certification"],
    );
    refused_each(
        "",
        "
        gather --tree path:3 --size 1 --algorithm quick | --algorithm | quick
        scatter --tree path:3 --size 1 --algorithm certification | --algorithm
    ",
    );
}

#[test]
fn options_that_lack_another_or_exclude_it() {
    let dir = with_input();
    refused_in(
        dir.path(),
        "scatter --tree path:4 --input @/input",
        &["--output"],
    );
    refused_in(
        dir.path(),
        "gather --tree path:4 --input @/input",
        &["--output"],
    );
    refused_each(
        "scatter --tree",
        "
        path:4 --output @/output | --input
        path:4 | --size | --input
        path:3 --size 1 --lengths 1,2 | --size | --lengths
    ",
    );
    let line = format!("scatter --tree path:4 --size 1 {TO_OUTPUT}");
    refused_in(dir.path(), &line, &["--size", "--input"]);
    refused_each(
        "scatter --tree path:3 --size 1",
        "
        --spread | --spread
        --rounds 0 | --rounds | 0
        --format xml | --format | xml
    ",
    );
}

/// Nothing would be written there, without any notice.
#[test]
fn an_output_for_messages_that_are_not_files() {
    refused_each(
        "",
        "
        scatter --tree path:3 --size 1 --output @/output | --output | --input
        gather --tree path:3 --lengths 1,2 --output @/output | --output | --input
    ",
    );
}

/// The error is printed once, not by every PE.
#[test]
fn a_log_filter_that_is_none() {
    let output = std::process::Command::new(flitcast_tests::flitcast())
        .env("RUST_LOG", "info,=x=")
        .args(["scatter", "--tree", "path:4", "--size", "1"])
        .output()
        .expect("the binary runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("RUST_LOG info,=x="), "{stderr}");
    assert!(output.stdout.is_empty());
}
