//! Shards of any name are a queue: any PE runs the command on any of them.

use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};
use std::{ffi::OsStr, fs};

use flitcast_tests::files::names;
use flitcast_tests::processes::until;
use rustix::process::Signal;

use super::Place;

/// A command that would wait for ever ends, so that the test fails.
const LIMIT: &str = "--time-limit 100s";

#[test]
fn more_shards_than_pes_are_all_run() {
    let all: Vec<String> = (0..20).map(|i| format!("shard {i:02}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let place = Place::named(&all[..19]);
    place.put("in put/shard 19/one", "1\n");
    place.put("in put/shard 19/deep/two", "2\n");
    let script = "[ -d deep ] && cat one deep/two || cat; cat \"$0\" > copy 2>/dev/null
        echo \"$FLITCAST_SHARD\" > 'out {}'; mkdir empty; echo \"{} failed\" >&2";
    let mapped = place.run("", &["sh", "-c", script, "{}"]).ok();
    mapped.prints(&[
        "map star:4: ",
        " on 20 shards of ",
        "\n  results      20 of 20, ",
    ]);
    place.assert_results(&all, &[]);
    for (i, name) in all.iter().enumerate() {
        let is = |file: &str, text: &str| assert_eq!(place.result(&format!("{name}/{file}")), text);
        is("stdout", if i < 19 { name } else { "1\n2\n" });
        // A shard that is a file has its name in the current directory, and is not a result.
        is("copy", if i < 19 { name } else { "" });
        is(&format!("out {name}"), &format!("{name}\n"));
        is("stderr", &format!("{name} failed\n"));
        let out = format!("out {name}");
        let files = ["copy", "empty", &out, "stderr", "stdout"];
        assert_eq!(names(&place.output().join(name)), files);
        mapped.stderr_has(&[&format!("{name}| {name} failed\n")]);
    }
    // The shards are unchanged.
    assert_eq!(names(&place.input()), all);
}

#[test]
fn names_may_be_of_any_bytes_and_of_pes_that_there_are_not() {
    let place = Place::named(&["p1", "p9", "lock", "stdout", "-n", "a\nb", "p1.faile"]);
    let odd = OsStr::from_bytes(b"\xff \\ '\"");
    fs::write(place.input().join(odd), "odd").expect("it can be written");
    let script = "cat; test \"$0\" = \"$FLITCAST_SHARD\"; echo $? > same";
    place.run("", &["sh", "-c", script, "{}"]).ok();
    for name in ["p1", "p9", "lock", "stdout", "-n", "a\nb", "p1.faile"] {
        assert_eq!(place.result(&format!("{name}/stdout")), name);
        assert_eq!(place.result(&format!("{name}/same")), "0\n");
    }
    let result = fs::read_to_string(place.output().join(odd).join("stdout"));
    assert_eq!(result.expect("it is there"), "odd");
}

#[test]
fn shards_that_cannot_have_results_are_refused() {
    let place = Place::named(&["a", "a.failed"]);
    let long = "x".repeat(249);
    place.put(&format!("in put/{long}"), "");
    std::os::unix::fs::symlink("a", place.input().join("link")).expect("it can be made");
    let refused = place.run("", &["true"]);
    let expected =
        "--input: `a.failed` would be both a result and the output of a failed command on `a`";
    refused.fails(2, &[expected, "has more than 248 bytes"]);
    for name in ["a.failed", &long] {
        fs::remove_file(place.input().join(name)).expect("it is there");
    }
    let expected = "link` is refused: a message cannot be a symlink itself";
    place.run("", &["true"]).fails(2, &[expected]);
    place.assert_beside(&["in put"]);
}

/// The shard `a` waits for the last one, which waits behind others at the same PE.
#[test]
fn a_slow_shard_does_not_hold_up_the_others() {
    let all = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let place = Place::named(&all);
    let script =
        "case {} in a) until [ -e @/flag ]; do sleep 0.01; done;; i) touch @/flag;; esac; cat";
    place.shell(&format!("{LIMIT} --tree star:3"), script).ok();
    place.assert_results(&all, &["flag"]);
}

#[test]
fn the_report_has_the_slowest_of_many_shards_and_json_has_all() {
    let all: Vec<String> = (10..30).map(|i| i.to_string()).collect();
    let place = Place::named(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let mapped = place.shell("", "echo {}").ok();
    mapped.prints(&[
        "  shard  PE  bytes  exit  ",
        "  and 4 more: --format json lists them all\n",
        ", longest: ",
    ]);
    let options = "--force --format json";
    let mapped = place.shell(options, "echo {}; [ {} != 15 ] || { echo no >&2; exit 7; }");
    let report = mapped.with_code(1).report();
    assert_eq!(report.list("/shards").len(), 20);
    assert_eq!(report.value("/shards/5/shard"), "15");
    assert_eq!(report.number("/shards/5/exit_status"), 7);
    assert_eq!(report.value("/shards/5/last_words/0"), "no");
    assert_eq!(report.number("/shards/6/result_bytes"), 3);
    assert_eq!(report.number("/shards/6/shard_bytes"), 2);
    assert!((1..4).contains(&report.number("/shards/6/pe")));
    assert_eq!(report.list("/failed"), ["15"]);
}

#[test]
fn several_commands_run_at_once_at_each_pe() {
    let place = Place::named(&["a", "b"]);
    let script = "touch @/{}; until [ -e @/a -a -e @/b ]; do sleep 0.01; done; echo $FLITCAST_PE";
    place
        .shell(&format!("{LIMIT} --tree star:2 --jobs 2"), script)
        .ok();
    place.assert_results(&["a", "b"], &["a", "b"]);
    assert_eq!(place.result("b/stdout"), "1\n");
    for jobs in ["0", "x", "1025", "-1"] {
        let refused = place.shell(&format!("--force --jobs={jobs}"), "true");
        refused.fails(2, &["--jobs", "it is not an integer from 1 to 1024"]);
    }
}

#[test]
fn the_output_of_a_failed_command_is_kept_until_it_succeeds() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "cat; for i in 1 2 3 4 5 6; do echo line $i; done; [ {} != b ] || [ -e @/marker ]";
    let failed = place.shell("--retries 1", script).with_code(1);
    let again = "b at P2: the command ended with exit status 1; running it again (1 of 1)\n";
    let last = "; it last printed: line 2 / line 3 / line 4 / line 5 / line 6; its output is in ";
    failed.stderr_has(&[again, "error: b at P", last, "results/b.failed\n"]);
    place.assert_results(&["a", "b.failed", "c"], &[]);
    assert_eq!(
        names(&place.output().join("b.failed")),
        ["stderr", "stdout"]
    );
    assert!(place.result("b.failed/stdout").starts_with("bline 1\n"));
    place.put("marker", "");
    place.shell("--force", script).ok();
    place.assert_results(&["a", "b", "c"], &["marker"]);
}

/// The PE dies while it runs the last shard that is not done: another PE runs that and the others.
#[test]
fn the_shards_of_a_pe_that_dies_are_run_by_another() {
    let all = ["a", "b", "c", "d", "e", "f"];
    let place = Place::named(&all);
    let script = "[ {} != a ] || [ -e @/marker ] || { touch @/marker; sleep 1000; }; cat; echo $FLITCAST_PE > pe";
    let running = place.start("--tree star:3 --retry 1", &["sh", "-c", script]);
    until("the command runs on a", || place.path("marker").exists());
    running.pe(1).signal(Signal::KILL);
    let done = running.finish().ok();
    done.stderr_has(&["a at P1: was killed by signal 9 (SIGKILL); running it again (1 of 1)\n"]);
    place.assert_results(&all, &["marker"]);
    assert_eq!(place.result("a/pe"), "2\n");
}

#[test]
fn a_pe_that_dies_costs_the_shard_that_it_runs() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "[ {} != a ] || { touch @/marker; sleep 1000; }; cat";
    let running = place.start("--tree star:2", &["sh", "-c", script]);
    until("the command runs on a", || place.path("marker").exists());
    running.pe(1).signal(Signal::KILL);
    let failed = running.finish().with_code(1);
    failed.stderr_has(&["error: a at P1: was killed by signal 9 (SIGKILL)\n"]);
    place.assert_results(&["b", "c"], &["marker"]);
}

#[test]
fn no_command_begins_after_enough_failures() {
    let place = Place::named(&["a", "b", "c", "d", "e"]);
    let options = "--tree star:2 --halt soon,fail=2";
    let failed = place.shell(options, "cat; [ {} = a ]").with_code(1);
    failed.stderr_has(&[
        "error: b at P1: the command ended",
        "error: c at P1: the command ended",
        "error: 2 shards were not run, because commands on others failed\n",
    ]);
    place.assert_results(&["a", "b.failed", "c.failed"], &[]);
    for wrong in "soon now,fail=0 now,fail=+1 now,fail=9% later,fail=1".split(' ') {
        let refused = place.shell(&format!("--force --halt {wrong}"), "true");
        let expected = format!("`{wrong}` is not never, soon,fail=N or now,fail=N");
        refused.fails(2, &[&expected]);
    }
}

/// The shard `a` runs until the last one has begun.
#[test]
fn a_command_that_runs_is_not_one_that_has_failed() {
    let place = Place::named(&["a", "b", "c", "d"]);
    let script = "case {} in a) until [ -e @/flag ]; do sleep 0.01; done;; b) exit 3;; d) touch @/flag;; esac";
    let options = format!("{LIMIT} --tree star:3 --halt soon,fail=2");
    place.shell(&options, script).with_code(1);
    place.assert_results(&["a", "b.failed", "c", "d"], &["flag"]);
}

#[test]
fn running_commands_can_be_killed_after_a_failure() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case {} in
        a) touch @/flag; sleep 1000;;
        b) until [ -e @/flag ]; do sleep 0.01; done; exit 3;; esac";
    let options = "--tree star:3 --halt now,fail=1";
    let failed = place.shell(options, script).with_code(1);
    failed.stderr_has(&[
        "error: a at P1: the command was killed, because others failed (--halt)\n",
        "error: b at P2: the command ended with exit status 3",
        "error: 1 shard was not run, because commands on others failed\n",
    ]);
    let row = failed.stdout.lines().find(|line| line.starts_with("  a "));
    assert!(
        row.is_some_and(|row| row.contains(" killed ")),
        "{}",
        failed.stdout
    );
    place.assert_results(&["b.failed"], &["flag"]);
}

#[test]
fn equal_errors_of_many_shards_are_one_line() {
    let names: Vec<String> = (1..=12).map(|name| name.to_string()).collect();
    let place = Place::named(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let failed = place.run("--tree star:3", &["nosuchcmd"]).with_code(1);
    let expected = "error: 12 shards (1, 2, 3 and 9 more): `nosuchcmd` cannot be started: ";
    failed.stderr_has(&[expected]);
    assert_eq!(failed.stderr.matches("nosuchcmd").count(), 1);
    let place = Place::named(&["a", "b", "c", "d", "e"]);
    let failed = place.shell("--tree star:3", "[ $FLITCAST_SHARD = c ] || exit 4");
    let output = place.output();
    failed.with_code(1).stderr_has(&[&format!(
        "error: 4 shards (a, b, d and 1 more): the command ended with exit status 4; the output of \
         each is in {}/NAME.failed\n",
        output.display()
    )]);
    place.assert_results(&["a.failed", "b.failed", "c", "d.failed", "e.failed"], &[]);
}

/// Numbers in names count by their values, in the table and in JSON.
#[test]
fn shards_are_listed_in_the_order_of_their_numbers() {
    let place = Place::named(&["1", "10", "2", "a9", "a10", "11"]);
    let done = place.run("--tree star:3", &["true"]).ok();
    let rows = done
        .stdout
        .lines()
        .skip_while(|line| !line.contains(" shard "));
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    let listed: Vec<&str> = rows
        .filter_map(|row| row.split_whitespace().next())
        .collect();
    assert_eq!(listed, ["1", "2", "10", "11", "a9", "a10"]);
}

/// Runs a map with a script on a terminal of this width and returns the lines that it prints.
fn on_a_terminal(place: &Place, columns: usize, script: &str) -> Vec<String> {
    let [program, input, output] = [
        flitcast_tests::flitcast().to_owned(),
        place.input(),
        place.output(),
    ];
    let line = format!(
        "stty rows 50 cols {columns}; exec '{}' map -n 2 --retry 1 --force --input '{}' --output '{}' -- \
         sh -c '{script}'",
        program.display(),
        input.display(),
        output.display()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    let done = script.stdin(Stdio::null()).output();
    let done = done.expect("`script` of util-linux runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    let lines = text.lines().map(|line| line.trim_end().to_owned());
    lines.collect()
}

#[test]
fn the_progress_has_an_estimate_of_the_time_left() {
    let place = Place::named(&["a", "b", "c", "d"]);
    let shown = on_a_terminal(&place, 100, "sleep 0.3").join("\n");
    // Several commands may end between two pictures.
    let some = [1, 2, 3].map(|done| shown.find(&format!("{done} of 4 done  ")));
    let begin = some.into_iter().flatten().next();
    let begin = begin.unwrap_or_else(|| panic!("{shown}"));
    let left = &shown[begin..][..40];
    assert!(left.contains("s left"), "{shown}");
    assert!(
        !shown.contains("0 of 4 done  "),
        "no command has ended: {shown}"
    );
}

#[test]
fn a_long_name_is_shortened_before_columns_are_left_out() {
    const LONG: &str =
        "a_very_long_name_of_a_shard_that_people_do_have_in_practice_2026-11-28.tar.gz";
    for (columns, begin, end) in [
        (80, "  a_very_long_name", "-11-28.tar.gz"),
        (60, "  a_", ".gz"),
    ] {
        let place = Place::named(&[LONG, "b"]);
        let again = place.dir.shown("again");
        let script =
            format!("[ $FLITCAST_SHARD != b ] || [ -e {again} ] || {{ touch {again}; exit 1; }}");
        let lines = on_a_terminal(&place, columns, &script);
        let shown = lines.join("\n");
        let head = lines.iter().position(|line| line.starts_with("  shard "));
        let head = head.unwrap_or_else(|| panic!("no table: {shown}"));
        let headings: Vec<&str> = lines[head].split_whitespace().collect();
        let all = ["shard", "PE", "runs", "bytes", "exit", "time", "results"];
        assert_eq!(headings, all, "{shown}");
        let row = &lines[head + 1];
        let name = row.split("  ").find(|cell| !cell.is_empty());
        assert!(row.starts_with(begin) && row.contains('…'), "{shown}");
        assert!(name.is_some_and(|name| name.ends_with(end)), "{shown}");
        // The path of the output is not shortened.
        let is_path = |line: &&String| line.starts_with("  results ");
        for line in lines[head..].iter().filter(|line| !is_path(line)) {
            assert!(line.chars().count() <= columns, "{columns}: {shown}");
        }
    }
}

/// The processors of this host are as many as PEs by default.
#[test]
fn without_options_there_are_no_more_pes_than_shards() {
    let place = Place::named(&["only"]);
    let (input, output) = (place.dir.shown("in put"), place.dir.shown("results"));
    let words = ["map", "--input", &input, "--output", &output, "--", "env"];
    flitcast_tests::run(words).ok();
    assert!(place.result("only/stdout").contains("FLITCAST_PES=2\n"));
}
