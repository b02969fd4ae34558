//! Rows 1, 2, 9 and 10: processes that end.

use flitcast_tests::{Folder, hosts, scratch, start};
use rustix::process::Signal;

use crate::{alone, endless, failing, timed, words};

const GATHER: &str = "gather --tree kary:2:7 --size 400GiB --format json";

/// Returns lines of a gather and a scatter that do not end, in the clear and over TLS, each with its description.
pub fn both_guards(dir: &Folder) -> [(String, String); 4] {
    dir.run("ca init @/ca --pes 7").ok();
    let tls = format!(" --credentials {}", dir.shown("ca"));
    let all = [
        ("gather", ""),
        ("scatter", ""),
        ("gather, TLS", &*tls),
        ("scatter, TLS", &*tls),
    ];
    all.map(|(case, more)| {
        let operation = case.trim_end_matches(", TLS");
        (case.to_owned(), GATHER.replace("gather", operation) + more)
    })
}

/// A leaf, and a PE that has others below it.
#[test]
fn row_01_and_02_a_pe_is_killed() {
    let _alone = alone();
    for (case, line) in both_guards(&scratch()) {
        for (row, pe, expected, below) in [
            ("1", 3, "child of P1", &[][..]),
            ("2", 1, "cut off with it: P3, P4\n", &[3, 4]),
        ] {
            let case = format!("SIGKILL P{pe}, {case}");
            let finished = failing(row, &case, Some(1.0), endless(words(&line)), |running| {
                running.pe(pe).signal(Signal::KILL);
            });
            let cause = format!("error: P{pe} was killed by signal 9");
            finished.stderr_has(&[&cause, expected, "400 GiB"]);
            let report = finished.report();
            assert_eq!(report.number("/error/pe"), u64::from(pe));
            assert_eq!(report.value("/error/phase"), "round");
            assert_eq!(report.list("/error/below"), below);
            let address = report.value("/error/address").as_str().expect("an address");
            assert!(address.starts_with("127.0.0.1:"), "{address}");
        }
    }
}

#[test]
fn row_09_the_coordinator_is_killed() {
    let _alone = alone();
    let running = endless(words(GATHER));
    let case = "SIGKILL the coordinator, all PEs gone";
    timed("9", case, Some(4.0), || running.kill());
}

#[test]
fn row_10_a_child_ends_by_itself() {
    let _alone = alone();
    let dir = scratch();
    let ends = "parent = 'a'\nrun = ['sh', '-c', 'echo no such library >&2; exit 127']";
    dir.put("c.toml", hosts(&["", ends]));
    let line = "scatter --size 1KiB --format json --cluster @/c.toml";
    let finished = timed("10", "a child exits 127", Some(1.0), || dir.run(line));
    finished.fails(1, &["P1 b ended with exit status 127", "no such library"]);
    let report = finished.report();
    assert_eq!(report.value("/error/phase"), "launch");
    assert_eq!(report.number("/error/pe"), 1);
    assert_eq!(report.value("/error/host"), "b");

    // As the system does when memory runs out.
    let case = "a child is killed, and has said something";
    let finished = failing("10", case, Some(1.0), endless(words(GATHER)), |running| {
        running.pe(4).signal(Signal::KILL);
    });
    finished.stderr_has(&["P4 was killed by signal 9 (SIGKILL); it last printed: "]);
}

#[test]
fn row_x_ctrl_c_twice_ends_it_at_once() {
    let _alone = alone();
    let mut running = start(words(GATHER).into_iter().chain(["-v".to_owned()]));
    running.wait_for(&["triggered"]);
    running.pe(2).signal(Signal::STOP);
    timed("-", "Ctrl-C twice, a PE stopped", Some(4.0), || {
        // The first signal waits for P2, which does not react.
        running.signal(Signal::INT);
        running.wait_for(&["interrupted"]);
        running.interrupt();
    });
}
