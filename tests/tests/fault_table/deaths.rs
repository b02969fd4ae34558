//! Rows 1, 2, 9 and 10: processes that end.

use flitcast_tests::{Report, hosts, scratch, start};
use rustix::process::Signal;

use crate::{alone, endless, failing, timed, words};

const GATHER: &str = "gather --tree kary:2:7 --size 400GiB --format json";
const SCATTER: &str = "scatter --tree kary:2:7 --size 400GiB --format json";

#[test]
fn row_01_a_leaf_is_killed() {
    let _alone = alone();
    for (line, case) in [(GATHER, "mid-gather"), (SCATTER, "mid-scatter")] {
        let case = format!("SIGKILL a leaf, {case}");
        let finished = failing("1", &case, Some(1.0), endless(words(line)), |running| {
            running.pe(3).signal(Signal::KILL);
        });
        finished.says(&["error: P3 was killed by signal 9", "child of P1", "400 GiB"]);
        let report = finished.report();
        assert_eq!(report.number("/error/pe"), 3);
        assert_eq!(report.value("/error/phase"), "round");
        assert!(report.list("/error/below").is_empty());
        assert_address(&report);
    }
}

#[track_caller]
fn assert_address(report: &Report) {
    let address = report.value("/error/address").as_str().expect("it is told");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
}

#[test]
fn row_02_an_interior_pe_is_killed() {
    let _alone = alone();
    for line in [GATHER, SCATTER] {
        let case = format!("SIGKILL an interior PE, {}", &line[..7].trim());
        let finished = failing("2", &case, Some(1.0), endless(words(line)), |running| {
            running.pe(1).signal(Signal::KILL);
        });
        let cut_off = "cut off with it: P3, P4\n";
        finished.says(&["error: P1 was killed by signal 9", cut_off, "child of P0"]);
        let report = finished.report();
        assert_eq!(report.list("/error/below"), [3, 4]);
        assert_eq!(report.number("/error/parent"), 0);
        assert_address(&report);
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
    let pes = hosts(&["", ends]);
    let text = format!("name = 'two'\ncoordinator = '127.0.0.1'\n{pes}");
    dir.put("c.toml", text);
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
    finished.says(&["P4 was killed by signal 9 (SIGKILL); it last printed: "]);
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
