//! The jobs of a user's day in a row, on this machine, without a tree, a number of PEs or a
//! cluster file where the input gives them.

use std::fs;

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::{Folder, rows, scratch};

/// Runs a command that must succeed, and checks that all of these texts are on stdout.
#[track_caller]
fn job(dir: &Folder, line: &str, prints: &[&str]) {
    dir.run(line).ok().prints(prints);
}

/// Sends shards to workers, and brings results back.
fn shards_are_scattered_and_gathered(dir: &Folder) {
    for pe in 1..=8 {
        fill(&dir.join(format!("shards/p{pe}/part")), 10_000 * pe);
    }
    let verified = "verified     every digest matched; files are in ";
    job(
        dir,
        "scatter --input @/shards --output @/there",
        &["8 messages", verified],
    );
    job(dir, "gather --input @/there --output @/back", &[verified]);
    assert_same_below(&dir.join("shards"), &dir.join("back"));
    // Too few workers: the error says what fits.
    let few = "scatter -n 7 --input @/shards --output @/few";
    dir.run(few).fails(2, &["use -n 8"]);
}

/// Collects logs of all PEs by a pattern.
fn logs_are_collected(dir: &Folder) {
    for pe in 0..4 {
        dir.put(&format!("host/p{pe}/var/app.log"), format!("log of {pe}\n"));
        dir.put(&format!("host/p{pe}/var/app.db"), "large");
    }
    job(
        dir,
        "gather --input @/host/p*/var/*.log --output @/logs",
        &["3 messages"],
    );
    assert_eq!(names(&dir.join("logs/p3")), ["app.log"]);
}

/// Divides one file over the workers, and runs a command on each part.
fn a_file_is_divided_and_counted(dir: &Folder) {
    let text: String = (0..3000).map(|line| format!("line {line}\n")).collect();
    dir.put("text", &text);
    job(
        dir,
        "scatter --split 3 --lines --input @/text --output @/parts",
        &[],
    );
    let counted = dir
        .run("map --input @/parts --output @/counted -- wc -l")
        .ok();
    counted.prints(&["\n  results      3 of 3, "]);
    let count = |pe| dir.read(&format!("counted/p{pe}/stdout"));
    let counts = [1, 2, 3].map(|pe| count(pe).trim().parse::<u32>().expect("a number"));
    assert_eq!(counts.iter().sum::<u32>(), 3000);
}

/// Runs a queue of jobs of which one fails, and continues it.
fn a_queue_fails_and_is_resumed(dir: &Folder) {
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        dir.put(&format!("jobs/{name}"), name);
    }
    let map = "map -n 2 --input @/jobs --output @/done --joblog @/log";
    let words = |more: &[&str]| -> Vec<String> {
        let more = more.iter().map(|word| (*word).to_owned());
        dir.words(map).into_iter().chain(more).collect()
    };
    let script = format!(
        "[ {{}} != c.txt ] || [ -e '{}' ] || {{ echo no licence >&2; exit 3; }}; cat {{}}",
        dir.shown("licence")
    );
    let failed = flitcast_tests::run(words(&["--", "sh", "-c", &script]));
    failed.fails(1, &["error: c.txt at P", "no licence"]);
    assert_eq!(dir.read("done/c.txt.failed/stderr"), "no licence\n");
    dir.put("licence", "");
    flitcast_tests::run(words(&["--resume", "--", "sh", "-c", &script])).ok();
    assert_eq!(dir.read("done/c.txt/stdout"), "c.txt");
    assert!(!dir.join("done/c.txt.failed").exists());
    // One line for each command that ran, below the headings.
    assert_eq!(dir.read("log").lines().count(), 6);
}

/// Copies a folder to all, and a second time without sending anything.
fn a_folder_is_copied_to_all(dir: &Folder) {
    fill(&dir.join("model/weights"), 1_000_000);
    let broadcast = "broadcast -n 3 --input @/model --output @/copies";
    job(dir, broadcast, &["1 message"]);
    assert_same_below(&dir.join("model"), &dir.join("copies/p3"));
    dir.run(broadcast).ok();
}

/// Predicts a run, and runs it with machine-readable, no and all output.
fn programs_read_what_people_do_not(dir: &Folder) {
    let line = "exchange -n 3 --size 10KiB";
    job(dir, &format!("{line} --dry-run"), &["nothing was sent"]);
    assert_eq!(dir.report(line).number("/round/messages"), 12);
    let quiet = dir.run(&format!("{line} -q")).ok();
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    job(
        dir,
        &format!("{line} -v"),
        &["goodput", "costs", "verified"],
    );
}

/// Checks the errors of mistyped command lines.
fn errors_name_the_mistake(dir: &Folder) {
    for [line, expected] in rows(
        "
        scater --size 1KiB | 'scatter'
        scatter --sze 1KiB | '--size'
        gather --input @/nowhere --output @/out | No such file or directory
    ",
    ) {
        dir.run(line).fails(2, &[expected]);
    }
}

#[test]
fn a_days_jobs() {
    let dir = scratch();
    shards_are_scattered_and_gathered(&dir);
    logs_are_collected(&dir);
    a_file_is_divided_and_counted(&dir);
    a_queue_fails_and_is_resumed(&dir);
    a_folder_is_copied_to_all(&dir);
    programs_read_what_people_do_not(&dir);
    errors_name_the_mistake(&dir);
    let hidden = fs::read_dir(&*dir).expect("it is there").flatten();
    let mut hidden =
        hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with(".flitcast"));
    assert!(hidden.next().is_none(), "nothing hidden is left");
}
