//! Standard output and standard error of a command: a round continues whether they are read or not;
//! texts from peers cannot imitate the command's own lines; with `--log-format json` each line of
//! stderr is an object.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use flitcast_proto::RoundId;
use flitcast_proto::wire::control::FromPe;
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::impostor::Stage;
use flitcast_tests::processes::eventually;
use flitcast_tests::run::{begin, run_program};
use flitcast_tests::{Finished, flitcast, rows, run, scratch, start};
use rustix::process::Signal;
use serde_json::Value;

/// Waits for the exit status of a command whose output is not read.
fn code_of(mut child: Child) -> Option<i32> {
    let ended = || child.try_wait().expect("it is our child");
    eventually("it has ended", ended).code()
}

/// Creates input for three PEs below P0.
fn shards(folder: &Path, bytes: usize) {
    for pe in 1..4 {
        fill(&folder.join(format!("in/p{pe}/one")), bytes);
    }
}

#[test]
fn a_round_continues_if_nobody_reads_its_log() {
    for level in ["-v", "-vv", "-vvv"] {
        let dir = scratch();
        shards(&dir, 2_000_000);
        let line = "scatter --tree path:4 --link rate=40mbit --input in --output out";
        let child = Command::new(flitcast())
            .args(line.split(' ').chain(["--flit-size", "4KiB", level]))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Its other end stays open, and a pipe holds 64 KiB.
            .stderr(Stdio::piped())
            .spawn()
            .expect("flitcast was built");
        assert_eq!(code_of(child), Some(0), "{level}");
        assert_same_below(&dir.join("in"), &dir.join("out"));
    }
}

#[track_caller]
fn objects(finished: &Finished) -> Vec<(String, String)> {
    let object = |line: &str| {
        let object = serde_json::from_str::<Value>(line);
        let object = object.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        let level = text("/level").expect("it has one").to_owned();
        (
            level,
            text("/fields/message").unwrap_or_default().to_owned(),
        )
    };
    finished.stderr.lines().map(object).collect()
}

#[test]
fn each_line_of_stderr_is_an_object_on_request() {
    let dir = scratch();
    let json = "--log-format json -v";
    let mut running = dir.start(&format!("gather --tree path:3 --size 400GiB {json}"));
    running.wait_for(&["triggered"]);
    running.pe(2).signal(Signal::KILL);
    let failed = running.finish().with_code(1);
    let text = "P2 was killed by signal 9 (SIGKILL)\n  where: P2";
    let is_it = |(level, message): &(String, String)| level == "ERROR" && message.contains(text);
    assert!(objects(&failed).iter().any(is_it), "{}", failed.stderr);
    // Refused before anything is started.
    let refused = dir.run(&format!("gather --tree path:0 --size 1parsec {json}"));
    let refused = refused.with_code(2);
    assert_eq!(objects(&refused).len(), 2, "{}", refused.stderr);
    // Messages and ends of commands.
    shards(&dir, 10);
    let line = "map --tree path:4 --input @/in --output @/out";
    let mut map = dir.words(&format!("{line} {json}"));
    let script = "echo word >&2; echo '{\"a\":1' >&2; exit 3";
    map.extend(["--", "sh", "-c", script].map(str::to_owned));
    let mapped = run(map).with_code(1);
    let messages = objects(&mapped);
    for pe in 1..4 {
        let text = format!("P{pe}: the command ended with exit status 3");
        let is_it =
            |(level, message): &(String, String)| level == "ERROR" && message.starts_with(&text);
        assert!(messages.iter().any(is_it), "{text}: {}", mapped.stderr);
    }
    for text in ["word", "{\"a\":1"] {
        let count = messages
            .iter()
            .filter(|(_, message)| message == text)
            .count();
        assert_eq!(count, 3, "{text}: {}", mapped.stderr);
    }
}

#[test]
fn a_quiet_round_prints_nothing() {
    let quiet = run("exchange -n 3 --size 10KiB -q".split(' ')).ok();
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
}

#[test]
fn errors_of_a_command_line_are_objects() {
    for [line, part] in rows(
        "
        --log-format json | subcommand
        --log-format json scater | unrecognized subcommand 'scater'
        gather --log-format=json --no-such-option | --no-such-option
        gather --no-such-option --log-format json | --no-such-option
        map --log-format json --tree path:3 -- wc | --input <DIR>
        gather --tree --log-format json | --tree <TREE>
        gather --log-format json --tree | --tree <TREE>
        gather --rounds x --log-format json | --rounds <K>
        gather --format prose --log-format json | --format <FORMAT>
        tree --tree path:3 --tree path:4 --log-format json | multiple
    ",
    ) {
        let refused = run(line.split(' ')).with_code(2);
        assert_eq!(refused.stdout, "", "{line}");
        let [(level, message)] = &objects(&refused)[..] else {
            panic!("not one object: {line}: {}", refused.stderr);
        };
        assert_eq!(level, "ERROR", "{line}");
        assert!(message.contains(part), "{line}: {message}");
        let begins = message.starts_with("error") || message.ends_with('\n');
        assert!(!begins, "{line}: {message}");
    }
    // Text is printed without the option, or if the option belongs to a user's command.
    for line in [
        "gather --no-such-option",
        "gather --no-such-option --log-format text",
        "map --no-such-option -- sh --log-format json",
    ] {
        let expected = "error: unexpected argument '--no-such-option' found\n";
        run(line.split(' ')).fails(2, &[expected]);
    }
    let helped = run("gather --help --log-format json".split(' ')).ok();
    assert_eq!(helped.stderr, "");
    helped.prints(&["Usage: flitcast gather"]);
}

#[test]
fn an_invalid_filter_and_the_address_of_metrics_are_objects() {
    let with_filter = |filter: &str, line: &str| {
        let mut command = Command::new("env");
        command.arg(format!("RUST_LOG={filter}")).arg(flitcast());
        command.args(line.split(' '));
        begin(command).finish()
    };
    let json = "tree --tree path:3 --log-format json";
    for (filter, line, count) in [
        ("info,=x=", json, 1),
        ("info,=x=", "tree --no-such-option --log-format json", 2),
        // A filter hides no message.
        ("off", "tree --no-such-option --log-format json", 1),
    ] {
        let refused = with_filter(filter, line).with_code(2);
        let messages = objects(&refused);
        assert_eq!(
            messages.len(),
            count,
            "{filter}, {line}: {}",
            refused.stderr
        );
    }
    let served = "gather --tree path:3 --size 1KiB --metrics 127.0.0.1:0 --log-format json";
    let messages = objects(&run(served.split(' ')).ok());
    let mut texts = messages.iter().map(|(_, text)| text);
    let is_reported = texts.any(|text| text.starts_with("metrics at http://"));
    assert!(is_reported, "{messages:?}");
}

#[test]
fn a_reader_that_closes_its_pipe_is_no_error() {
    let dir = scratch();
    let text =
        "name = 'a'\ncoordinator = '127.0.0.1'\npe = [{name = 'a', address = '127.0.1.1'}]\n";
    dir.put("good.toml", text);
    dir.put("bad.toml", "nonsense = 1\n");
    for [line, code] in rows(
        "
        plan gather --tree path:6 --lengths 2,3,0,2,1 --format json | 0
        compare gather --network mesh:4x4 --lengths uniform:0..64:7 | 0
        tree --tree kary:2:64 | 0
        completions bash | 0
        gather --tree star:3 --size 1KiB --format json | 0
        bench gather --tree star:3 --lengths equal:1KiB --rounds 2 --format csv | 0
        check @/good.toml | 0
        check --format json @/bad.toml | 2
    ",
    ) {
        let (reader, writer) = std::io::pipe().expect("it can be made");
        drop(reader);
        let finished = run_program(
            Command::new(flitcast())
                .args(dir.words(line))
                .stdout(writer),
        );
        assert_eq!(finished.code, code.parse().ok(), "{finished:?}");
        assert!(!finished.stderr.contains("ipe"), "{finished:?}");
    }
}

#[test]
fn text_of_a_peer_cannot_imitate_a_line_of_the_command() {
    let forged = "out of order\nerror: P0 has failed\n2026-01-01T00:00:00Z ERROR forged\x1b[2J";
    let stage = Stage::path(2, 1);
    let running = start(stage.arguments("gather --size 1KiB -vv"));
    let impostor = stage.enter();
    let _ = impostor.assignment();
    impostor.send(&FromPe::Fault {
        round: RoundId(0),
        peer: None,
        reason: forged.to_owned(),
        bad_input: false,
        output_stands: false,
        hung_up: false,
        changed: Vec::new(),
    });
    let impostor = std::thread::spawn(move || impostor.serve());
    let failed = running.finish();
    impostor.join().expect("it can be played");
    failed.fails(1, &["error: P1: out of order\n    error: P0 has failed\n"]);
    for line in failed.stderr.lines() {
        let is_forged = line.starts_with("error: P0") || line.starts_with("2026-01-01");
        assert!(!is_forged && !line.contains('\x1b'), "{}", failed.stderr);
    }
}

/// Runs a command under a limit of 500 KB for each file.
#[track_caller]
fn limited(folder: &Path, line: &str) -> Finished {
    let mut command = Command::new("bash");
    command
        .args(["-c", "ulimit -f 500; exec \"$@\"", "bash"])
        .arg(flitcast())
        .args(line.split(' '))
        .current_dir(folder);
    begin(command).finish()
}

#[test]
fn the_limit_of_a_file_s_size_is_named() {
    let dir = scratch();
    shards(&dir, 900_000);
    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --tree path:4 --input in --output {operation}");
        let expected = "the limit of a file's size is 512000 bytes; raise it with `ulimit -f`";
        limited(&dir, &line).fails(1, &[expected]);
    }
    // A user's command is killed by SIGXFSZ as usual.
    let small = scratch();
    shards(&small, 10);
    let write = "dd if=/dev/zero of=big bs=1000000 count=1";
    let map = format!("map --tree path:4 --input in --output out -- {write}");
    let expected = "the command was killed by signal 25 (SIGXFSZ)";
    let failed = limited(&small, &map);
    failed.fails(1, &[expected, "longer than `ulimit -f` allows"]);
}
