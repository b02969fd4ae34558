//! A PE that dies during a round, in a scatter and in a gather, at any position: the command fails,
//! names the PE, the delivered and the missing messages, and leaves no process. The messages are
//! synthetic and too long to arrive.

use flitcast_tests::impostor::Stage;
use flitcast_tests::{Finished, Report, Running, numbers, rows, run, start};
use rustix::process::Signal;

const SHORT: u64 = 1024;
const ENDLESS: u64 = 400 << 30;

/// Starts a run with an endless message in transit, as a line with `words` in a PE's log shows.
fn endless(line: &str, lengths: &[u64], words: &[&str]) -> Running {
    let list: Vec<String> = lengths.iter().map(u64::to_string).collect();
    let line = format!("{line} --lengths {} --format json -vv", list.join(","));
    let mut running = start(line.split(' '));
    running.wait_for(&["triggered"]);
    running.wait_for(words);
    assert_eq!(running.pes().len(), lengths.len() + 1);
    running
}

/// The reports about a killed PE.
struct Failure {
    finished: Finished,
    report: Report,
}

impl Failure {
    /// Kills a PE during a round and returns the command's reports.
    fn of_killing(running: Running, pe: u32) -> Failure {
        let victim = running.pe(pe);
        victim.signal(Signal::KILL);
        let finished = running.finish().with_code(1);
        let report = finished.report();
        assert_eq!(report.number("/error/pe"), u64::from(pe));
        assert_eq!(report.number("/error/pid"), victim.pid as u64);
        assert_eq!(report.number("/error/round"), 1);
        let message = report.value("/error/message").as_str().expect("a text");
        let cause = format!("P{pe} was killed by signal 9");
        assert!(message.contains(&cause), "{message}");
        let place = format!("where: P{pe}, process {}", victim.pid);
        finished.stderr_has(&[&format!("error: {cause}"), &place, "when: round 1 of the "]);
        Failure { finished, report }
    }

    /// Returns the delivered messages; text and JSON must agree.
    #[track_caller]
    fn delivered(&self) -> Vec<u64> {
        let list = self.report.list("/error/delivered").iter();
        let delivered: Vec<u64> = list.map(|pe| pe.as_u64().expect("an index")).collect();
        let names: Vec<String> = delivered.iter().map(|pe| format!("P{pe}")).collect();
        let expected = match names.is_empty() {
            true => "delivered: nothing".to_owned(),
            false => format!("messages: {}\n", names.join(", ")),
        };
        self.finished.stderr_has(&[&expected]);
        delivered
    }

    /// Returns the missing messages, and of each whether a part has arrived, which may be unknown if its
    /// destination cannot report that.
    #[track_caller]
    fn lacking(&self, heading: &str) -> String {
        let list = self.report.list("/error/left_without").iter();
        let lacking = list.map(|lacking| {
            let pe = lacking["pe"].as_u64().expect("an index");
            let name = format!("P{pe}");
            let begin = format!("  {heading}: ");
            let stderr = &self.finished.stderr;
            let listed = stderr.lines().filter_map(|line| line.strip_prefix(&begin));
            let named = listed
                .flat_map(|line| line.split(", "))
                .any(|it| it == name);
            assert!(named, "{name} is not {heading} in\n{stderr}");
            let received = &lacking["received_bytes"];
            let is_part = |bytes| bytes < ENDLESS;
            assert!(received.is_null() || received.as_u64().is_some_and(is_part));
            if received.as_u64() > Some(0) {
                self.finished.stderr_has(&["of 400 GiB arrived"]);
            }
            let arrived = match received.as_u64() {
                None => "unknown",
                Some(0) => "whole",
                Some(_) => "in part",
            };
            format!("{pe} {arrived}")
        });
        lacking.collect::<Vec<_>>().join(", ")
    }
}

/// Maximum number of attempts to get equal measurements of edges, which are the rule.
const TRIES: u32 = 20;

/// P2's message comes last, when all others have been delivered.
fn scatter_on_a_binary_tree() -> Running {
    let lengths = [SHORT, ENDLESS, SHORT, SHORT, SHORT, SHORT];

    // For messages with the same distance the measured edges decide the order, and 400 GiB over an
    // edge that seems slow are sent before others: then another attempt is made.
    for _ in 0..TRIES {
        let sends = |pe: u32| format!("of=P{pe} ");
        let of_p2 = ["P0| ", "send message", &sends(2)];
        let mut running = endless("scatter --tree kary:2:7", &lengths, &of_p2);
        let is_before = |pe: u32| running.has_printed(&["P0| ", "send message", &sends(pe)]);
        if [1, 3, 4, 5, 6].into_iter().all(is_before) {
            for pe in 1..=6 {
                running.wait_for(&[&format!("P{pe}| "), &sends(pe), "take message"]);
            }
            return running;
        }
    }
    panic!("P2's message never comes last")
}

/// A leaf, an inner PE and P0. The part that a dead PE had received is unknown.
#[test]
fn a_pe_dies_in_a_scatter() {
    for [dies, parent, says, delivered, lacking] in rows(
        "
        4 | 1 | child of P1 | 1 3 5 6 | 2 in part, 4 unknown
        2 | 0 | of 400 GiB an unknown part arrived | 1 3 4 5 6 | 2 unknown
        0 | null | where: P0 | 1 3 4 5 6 | 2 in part
    ",
    ) {
        let dies = dies.parse().expect("a PE");
        let failure = Failure::of_killing(scatter_on_a_binary_tree(), dies);
        assert_eq!(failure.report.value("/error/parent").to_string(), parent);
        failure.finished.stderr_has(&[says]);
        assert_eq!(failure.delivered(), numbers(delivered));
        assert_eq!(failure.lacking("left without"), lacking);
    }
}

#[test]
fn a_relay_dies_with_everything_behind_it_under_way() {
    let words = ["P3| ", "of=P3 ", "take message"];
    let running = endless("scatter --tree path:4", &[SHORT, 0, ENDLESS], &words);
    let failure = Failure::of_killing(running, 2);
    assert_eq!(failure.delivered(), [0; 0]);
    // P2 has a null message: it lacks nothing.
    assert_eq!(failure.lacking("left without"), "1 whole, 3 in part");
}

/// On a path, P0 gets P1's message, then P2's, then P3's.
fn gather_on_a_path() -> Running {
    let words = ["P0| ", "of=P3 ", "take message"];
    let line = "gather --algorithm shoulder-tap --tree path:4";
    endless(line, &[SHORT, SHORT, ENDLESS], &words)
}

#[test]
fn a_leaf_or_a_relay_dies_in_a_gather() {
    for pe in [3, 1, 2] {
        let failure = Failure::of_killing(gather_on_a_path(), pe);
        failure.finished.stderr_has(&["round 1 of the gather"]);
        assert_eq!(failure.delivered(), [1, 2], "what was delivered stays so");
        assert_eq!(failure.lacking("not gathered"), "3 in part");
    }
}

#[test]
fn p0_dies_in_a_gather() {
    let failure = Failure::of_killing(gather_on_a_path(), 0);
    assert_eq!(failure.delivered(), [0; 0], "it alone knew");
    let lacking = failure.lacking("not gathered");
    assert_eq!(lacking, "1 unknown, 2 unknown, 3 unknown");
}

#[test]
fn any_pe_dies_in_a_gather_by_certificates() {
    for (pe, sync) in [
        (0, "serial"),
        (2, "serial"),
        (1, "pipelined"),
        (5, "pipelined"),
    ] {
        let line = format!("gather --algorithm certification --sync {sync} --tree kary:2:6");
        let running = endless(&line, &[ENDLESS; 5], &["P0| ", "take message"]);
        let failure = Failure::of_killing(running, pe);
        assert_eq!(failure.delivered(), [0; 0]);
        let lacking = failure.lacking("not gathered");
        let pes = lacking
            .split(", ")
            .filter_map(|lacking| lacking.split(' ').next());
        assert!(pes.eq(["1", "2", "3", "4", "5"]), "{lacking}");
        let is_known = lacking.contains("in part") && !lacking.contains("unknown");
        assert_eq!(is_known, pe > 0, "{lacking}");
    }
}

#[test]
fn stderr_of_a_pe_has_its_name() {
    let finished = run("scatter --tree path:4 --size 1KiB -vv".split(' ')).ok();
    for pe in 0..4 {
        let prefix = format!("P{pe}| ");
        let own = format!("pe{{pe=P{pe}}}:round{{round=1}}");
        let is_it = |line: &str| line.starts_with(&prefix) && line.contains(&own);
        assert!(finished.stderr.lines().any(is_it), "{}", finished.stderr);
    }
    // Without -v, and where there is no terminal.
    let silent = run("scatter --tree path:4 --size 1KiB".split(' ')).ok();
    assert_eq!(silent.stderr, "");
}

/// Two of three processes do nothing, and a signal to the coordinator does not reach them.
#[test]
fn ctrl_c_in_a_launch_leaves_nobody() {
    let stage = Stage::limited(3, 1, 2, "exec sleep 600");
    let running = start(stage.arguments("gather --size 1KiB"));
    let _impostor = stage.enter();
    running.interrupt();
}
