//! Invalid sizes, flits and algorithms, and options that exclude each other.

use flitcast_tests::run::said;

use super::{refused, refused_each, refused_each_in, with_input};

#[test]
fn sizes_that_overflow() {
    refused_each(
        "",
        "
        scatter --tree path:3 --size 17EiB | `17EiB` | 2^64-1
        scatter --tree path:3 --lengths 1,99999999999999999999 | length 2 | 2^64-1
        scatter --tree path:3 --size 15EiB | 9223372036854775807
        gather --tree path:4 --lengths 4EiB,4EiB,4EiB | 9223372036854775807
        gather --tree path:4 --lengths ramp:7EiB | 9223372036854775807
        gather --tree path:4 --lengths halfnull:15EiB | 9223372036854775807
    ",
    );
}

/// All errors are reported at once.
#[test]
fn an_order_that_others_do_not_have() {
    refused_each("scatter", "
        --network complete:4 --algorithm binomial --order search --size much | `much` is not a size | --order search is for a scatter by fdf, not by binomial
        --tree path:3 --order best --size 1 | --order: `best` is not an order: write tail, fdf, search or given:3,1,2
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
    refused_each(
        "gather --tree path:3 --size 1 --flit-size",
        "
        0 | --flit-size | 64 B to 1 MiB
        63 | --flit-size | 64 B to 1 MiB
        1048577 | --flit-size | 64 B to 1 MiB
        8GiB | --flit-size | 64 B to 1 MiB
        big | --flit-size | `big`
    ",
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
    let link = "--link rate=200,latency=2s,delay=1ms";
    let line = format!("scatter --tree path:3 --size 1 --flit-size 1 {link}");
    refused(&line, &all);
    for operation in ["scatter", "gather"] {
        refused_each(
            &format!("{operation} --tree path:3 --size 1 --link"),
            "
            rate=0kbit | --link | rate: 0kbit is not from 1kbit to 100gbit
            rate=1tbit | --link | unknown unit `tbit`
            rate=200gbit | --link | rate: 200gbit is not from 1kbit to 100gbit
            latency=-1ms | --link | `-1ms` is not a time
            latency=1ms,latency=1ms | --link | latency is given twice
            fast | --link | `fast`: write rate=RATE
            rate=1gbit,latency=100ms | --link | 11.9 MiB would be under way
        ",
        );
    }
}

#[test]
fn algorithms_that_do_not_fit() {
    refused_each(
        "",
        "
        gather --size 1 --tree star:4 --algorithm shoulder-tap | shoulder-tap | star:4 | P0 has 3 children
        gather --size 1 --tree kary:2:4 --algorithm shoulder-tap | paths only | P0 has 2 children
        gather --size 1 --tree path:4 --algorithm shoulder-tap --token serial | --token | certification
        gather --tree path:3 --size 1 --algorithm quick | --algorithm | quick
        scatter --tree path:3 --size 1 --algorithm certification | --algorithm
    ",
    );
}

/// A schedule over the edges of a tree has at least one crossing for each edge on the way of each message.
#[test]
fn exchanges_that_are_too_large_to_plan() {
    let all = "exchange over the edges of path:256: 5592320 crossings of edges are too many to plan, the \
               maximum is 1048576; use --network complete:256, or fewer PEs";
    for command in [
        "plan exchange",
        "plan exchange --algorithm auto",
        "compare exchange",
        "exchange --dry-run",
        "exchange",
        "exchange --algorithm tree --ports multi",
        "bench exchange",
    ] {
        refused(&format!("{command} --tree path:256 --size 64KiB"), &[all]);
    }
    let too_many = ["crossings of edges are too many", "--network complete:400"];
    for more in ["", "--link rate=1gbit", "--tree auto"] {
        refused(
            &format!("exchange --network mesh:20x20 --size 1 {more}"),
            &too_many,
        );
    }
}

#[test]
fn options_that_lack_another_or_exclude_it() {
    refused_each_in(
        &with_input(),
        "",
        "
        scatter --tree path:4 --input @/input | --output
        gather --tree path:4 --input @/input | --output
        scatter --tree path:4 --size 1 --input @/input --output @/output | --size | --input
        scatter --tree path:4 --output @/output | --input
        scatter --tree path:4 | --size | --input
        scatter --tree path:3 --size 1 --lengths 1,2 | --size | --lengths
        scatter --tree path:3 --size 1 --spread | --spread
        scatter --tree path:3 --size 1 --rounds 0 | --rounds | 0
        scatter --tree path:3 --size 1 --format xml | --format | xml
        # Nothing would be written there, without any notice.
        scatter --tree path:3 --size 1 --output @/output | --output | --input
        gather --tree path:3 --lengths 1,2 --output @/output | --output | --input
    ",
    );
}

/// The error is printed once, not by every PE.
#[test]
fn a_log_filter_that_is_none() {
    let mut command = std::process::Command::new(flitcast_tests::flitcast());
    command.args(["scatter", "--tree", "path:4", "--size", "1"]);
    let run = said(command.env("RUST_LOG", "info,=x="));
    run.fails(2, &["RUST_LOG info,=x="]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stdout.is_empty());
}

#[test]
fn numbers_of_pes_that_are_none() {
    refused_each(
        "scatter --size 1",
        "
        -n x | 'x' for '--workers <N>': it is not a number of PEs
        -n 0 | '0' for '--workers <N>': at least 1 PE is needed beside P0
        -n 100000 | N is at most 1023 in a run, and 5792 in a plan
        -n 1024 | at most 1024 processes are started on one machine
        -n 2 --retries 17 | --retry: `17` is not an integer from 0 to 16
    ",
    );
}
