//! The input and the output of a command.

use std::fs;
use std::os::unix::fs::symlink;

use flitcast_tests::Finished;
use flitcast_tests::files::{fill, names};
use flitcast_tests::run::begin;

use super::{Place, map_without_root, mode};

const TEXTS: [(u32, &str); 3] = [
    (1, "to be or not to be\n"),
    (2, ""),
    (3, "that is\n the question\n"),
];

#[test]
fn words_are_counted() {
    let place = Place::new(&TEXTS);
    let counted = place.run("", &["wc", "-w"]).ok();
    assert_eq!(counted.stderr, "");
    for (pe, text) in TEXTS {
        let count = text.split_whitespace().count().to_string();
        assert_eq!(place.result(&format!("p{pe}/stdout")).trim(), count);
        assert_eq!(names(&place.output().join(format!("p{pe}"))), ["stdout"]);
    }
    place.assert_results(&["p1", "p2", "p3"], &[]);
    counted.prints(&[
        "map star:4: wc -w on 3 shards of ",
        "\n  scatter      predicted ",
        "\n  gather       predicted ",
        "\n  results      3 of 3, ",
    ]);
}

#[test]
fn a_shard_may_be_a_folder_and_a_pe_may_have_none() {
    let place = Place::new(&[(3, "a file\n")]);
    place.put("in put/p1/one file", "1\n");
    place.put("in put/p1/be low/two", "2\n");
    let script = "find . -type f | sort; cat; echo \"$FLITCAST_PE of $FLITCAST_PES\"";
    place.shell("", script).ok();
    let expected = "./be low/two\n./one file\n1 of 4\n";
    assert_eq!(place.result("p1/stdout"), expected);
    assert_eq!(place.result("p3/stdout"), "a file\n3 of 4\n");
    place.assert_results(&["p1", "p3"], &[]);
}

#[test]
fn only_changed_and_new_files_are_gathered() {
    let place = Place::new(&[]);
    for name in ["same", "appended", "rewritten", "deep/same", "touched"] {
        place.put(&format!("in put/p2/{name}"), name);
    }
    let script = "
        echo more >> appended
        cp rewritten x; cat x > rewritten; rm x
        mkdir -p 'new folder/a/b' new/empty deep/new
        echo new > 'new folder/a/b/ odd name'
        echo new > deep/new/file
        echo '#!/bin/sh' > tool; chmod 755 tool
        ln -s deep/same link
        rm touched; echo touched > touched
        echo said; echo complained >&2";
    let mapped = place.shell("", script).ok();
    assert_eq!(mapped.stderr, "P2| complained\n");
    let result = place.output().join("p2");
    let all = flitcast_tests::files::snapshot(&result);
    let paths: Vec<String> = all.keys().map(|path| path.display().to_string()).collect();
    let expected = "appended|deep|deep/new|deep/new/file|link|new|new/empty|new folder|new folder/a|\
        new folder/a/b|new folder/a/b/ odd name|rewritten|stderr|stdout|tool|touched";
    assert_eq!(paths.join("|"), expected);
    for (name, text) in [
        ("appended", "appendedmore\n"),
        ("rewritten", "rewritten"),
        ("stdout", "said\n"),
        ("stderr", "complained\n"),
    ] {
        assert_eq!(place.result(&format!("p2/{name}")), text);
    }
    assert_eq!(mode(&result.join("tool")), 0o755);
    let link = fs::read_link(result.join("link")).expect("it is a symlink");
    assert_eq!(link.to_str(), Some("deep/same"));
    // The shards are unchanged.
    assert_eq!(names(&place.input().join("p2")).len(), 5);
}

#[test]
fn files_are_dealt_and_each_pe_has_a_folder_of_its_own() {
    let place = Place::new(&[]);
    for (name, bytes) in [("a", 300_000), ("d/b", 200_000), ("d/c", 100_000), ("e", 1)] {
        fill(&place.input().join(name), bytes);
    }
    let script = "find . -type f ! -name list | sort > list; xargs cat < list | wc -c";
    let options = "--spread --tree kary:2:4";
    place.shell(options, script).ok();
    let lists = [1, 2, 3].map(|pe| place.result(&format!("p{pe}/list")));
    let mut files: Vec<&str> = lists.iter().flat_map(|list| list.lines()).collect();
    files.sort_unstable();
    assert_eq!(files, ["./a", "./d/b", "./d/c", "./e"]);
    let bytes = (1..4).map(|pe| place.result(&format!("p{pe}/stdout")));
    let bytes = bytes.map(|count| count.trim().parse::<u64>().expect("a number"));
    assert_eq!(bytes.sum::<u64>(), 600_001);
}

#[test]
fn a_command_finds_the_environment_of_its_pe() {
    let place = Place::new(&[(1, "x")]);
    place.run("", &["env"]).ok();
    let found = place.result("p1/stdout");
    let value = |name: &str| {
        let mut lines = found.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    assert_eq!(value("FLITCAST_PE"), Some("1"));
    assert_eq!(value("FLITCAST_PES"), Some("4"));
    let path = std::env::var("PATH").expect("tests have a PATH");
    assert_eq!(value("PATH"), Some(path.as_str()));
    let directory = value("PWD").expect("it has one");
    assert!(directory.ends_with("/tasks/p1/directory"), "{directory}");
    assert_eq!(value("OLDPWD"), None, "that of who launched it");
    // The command's environment contains no secret, because the command could disclose it.
    assert!(!found.contains("SECRET"), "{found}");
}

#[test]
fn the_name_of_a_shard_is_in_the_command_and_in_the_environment() {
    let place = Place::new(&[(1, "one"), (3, "three")]);
    let script = "cat {}; ls; echo $FLITCAST_SHARD";
    place.shell("", script).ok();
    assert_eq!(place.result("p3/stdout"), "threep3\np3\n");
    assert_eq!(names(&place.output().join("p1")), ["stdout"]);
    // Files that are spread have no common name.
    let options = "--spread --force";
    place.shell(options, "find . -type f -exec cat {} +").ok();
    let all = ["p1", "p2"].map(|pe| place.result(&format!("{pe}/stdout")));
    assert_eq!(all.concat(), "threeone");
}

/// A shard that is a folder is the directory itself.
#[test]
fn the_directory_in_the_environment_is_that_of_the_command() {
    let place = Place::new(&[(1, "x")]);
    place.put("in put/p2/file", "y");
    let script = "echo \"$PWD\"; env pwd -P; cat \"$PWD\"/fil* < /dev/null || :";
    place.shell("", script).ok();
    for (pe, end) in [(1, "/tasks/p1/directory"), (2, "/in/p2")] {
        let stdout = place.result(&format!("p{pe}/stdout"));
        let mut lines = stdout.lines();
        let (shown, real) = (lines.next(), lines.next());
        assert!(shown.is_some_and(|path| path.ends_with(end)), "{stdout}");
        assert_eq!(shown, real);
    }
    assert!(place.result("p2/stdout").ends_with("\ny"));
}

/// Runs a command in a shell as a user other than root, who is subject to permissions.
fn shell_without_root(place: &Place, script: &str) -> Finished {
    begin(map_without_root(place, script)).finish()
}

#[test]
fn folders_that_may_not_be_written_to_are_results() {
    let place = Place::new(&[(1, "x")]);
    place.put("in put/p2/there/file", "before");
    let script = "mkdir -p d/e; echo deep > d/e/file; chmod 555 d/e d; echo keep > keep
        mkdir bare; chmod 500 bare
        [ $FLITCAST_PE != 2 ] || { echo after > there/file; chmod 555 there; }";
    shell_without_root(&place, script).ok();
    for pe in [1, 2] {
        let result = |name: &str| place.result(&format!("p{pe}/{name}"));
        assert_eq!([result("keep"), result("d/e/file")], ["keep\n", "deep\n"]);
        let is = |name: &str| mode(&place.output().join(format!("p{pe}/{name}")));
        assert_eq!([is("d"), is("d/e"), is("bare")], [0o555, 0o555, 0o500]);
    }
    assert_eq!(place.result("p2/there/file"), "after\n");
    place.assert_results(&["p1", "p2"], &[]);
}

#[test]
fn an_unreadable_result_loses_only_that_entry() {
    let place = Place::new(&[(1, "x"), (3, "y")]);
    let script = "echo keep > keep; [ $FLITCAST_PE = 3 ] || {
        mkdir -p d locked; echo secret | tee d/secret > locked/file; echo open > d/open
        chmod 000 d/secret locked; }";
    let failed = shell_without_root(&place, script).with_code(1);
    for lost in ["d/secret", "locked"] {
        let expected =
            format!("error: P1: not in its result: cannot read `{lost}`: Permission denied");
        failed.stderr_has(&[&expected]);
    }
    assert_eq!(names(&place.output().join("p1")), ["d", "keep", "stdout"]);
    assert_eq!(names(&place.output().join("p1/d")), ["open"]);
    assert_eq!(place.result("p3/keep"), "keep\n");
    place.assert_results(&["p1", "p3"], &[]);
}

#[test]
fn the_report_has_the_results_of_each_pe() {
    let place = Place::new(&[(1, "one two\n"), (3, "three\n")]);
    let script = "cat; echo no >&2; test $FLITCAST_PE != 3 || exit 7";
    let mapped = place.shell("--format json", script).with_code(1);
    let report = mapped.report();
    assert_eq!(report.value("/operation"), "map");
    assert_eq!(report.value("/command/0"), "sh");
    assert_eq!(report.list("/pes").len(), 3);
    assert_eq!(report.number("/pes/0/exit_status"), 0);
    let bytes = "one two\nno\n".len() as u64;
    assert_eq!(report.number("/pes/0/result_bytes"), bytes);
    assert!(report.value("/pes/1/shard_bytes").is_null(), "P2 has none");
    assert_eq!(report.number("/pes/2/exit_status"), 7);
    assert!(report.value("/pes/2/result_bytes").is_null());
    let error = "the command ended with exit status 7";
    assert_eq!(report.value("/pes/2/error"), error);
    assert_eq!(report.value("/pes/2/last_words/0"), "no");
    assert_eq!(report.list("/failed"), [3]);
    assert!(report.float("/pes/0/seconds") > 0.0);
    for what in ["scatter", "gather"] {
        assert!(report.float(&format!("/{what}/predicted_us")) > 0.0);
        assert!(report.float(&format!("/{what}/measured_us")) > 0.0);
    }
    assert!(report.float("/run/seconds") > 0.0);
    assert!(report.value("/work").is_null());
}

#[test]
fn without_shards_there_is_nothing_to_do() {
    let place = Place::new(&[]);
    let mapped = place.run("", &["false"]).ok();
    mapped.prints(&["  results      none\n"]);
    place.assert_beside(&["in put"]);
}

#[test]
fn errors_are_reported_before_anything_is_written() {
    let place = Place::new(&TEXTS);
    place.put("results/p1", "mine");
    let refused = place.run("--work here --retry x", &["true"]);
    let expected = "results: it holds files already; --force replaces those";
    refused.fails(2, &[expected, "--work here: give the path from the root"]);
    let refused = place.run("--force --retry x", &["true"]);
    refused.stderr_has(&["`x` is not an integer"]);
    place.assert_results(&["p1"], &[]);
    assert_eq!(place.result("p1"), "mine");
    place.run("--force", &["cat"]).ok();
    assert_eq!(place.result("p1/stdout"), TEXTS[0].1);
    place.assert_results(&["p1", "p2", "p3"], &[]);
}

/// The output of an earlier map is not the only error, nor the first.
#[test]
fn a_missing_input_is_named_before_an_output_that_exists() {
    let place = Place::new(&[]);
    place.put("results/old", "mine");
    let (input, output) = (place.dir.shown("nope"), place.dir.shown("results"));
    for pes in [&["-n", "2"][..], &[], &["--tree", "star:4"]] {
        let files = ["--input", &input, "--output", &output, "--", "true"];
        let refused = flitcast_tests::run([&["map"], pes, &files].concat());
        let first = format!("error: --input: cannot read the directory `{input}`: No such file");
        refused.fails(
            2,
            &[&first, "it holds files already; --force replaces those"],
        );
        assert!(refused.stderr.starts_with(&first), "{}", refused.stderr);
        assert_eq!(refused.stderr.matches(&first).count(), 1);
    }
}

#[test]
fn the_working_folder_is_private_and_can_be_kept() {
    let place = Place::new(&TEXTS);
    let kept = place.run("--keep-work --work @/work", &["cat"]).ok();
    let (message, path) = kept.stderr.trim().split_once(": ").expect("it is printed");
    assert_eq!(message, "the working folder is kept");
    let path = std::path::Path::new(path);
    assert!(path.starts_with(place.path("work")), "{path:?}");
    assert_eq!(mode(path), 0o700);
    let shard = fs::read_to_string(path.join("in/p1"));
    assert_eq!(shard.expect("the shard"), TEXTS[0].1);
}

#[test]
fn links_in_a_shard_stay_links() {
    let place = Place::new(&[]);
    place.put("in put/p1/file", "1");
    symlink("file", place.input().join("p1/link")).expect("it can be made");
    place.shell("", "readlink link").ok();
    assert_eq!(place.result("p1/stdout"), "file\n");
    assert_eq!(names(&place.output().join("p1")), ["stdout"]);
}
