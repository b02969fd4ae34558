//! Messages about commands that PEs run.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use flitcast_proto::wire::control::{End, FromPe, Ran, Run, ToPe};
use flitcast_proto::wire::{MAX_LAST_LINES, MAX_LINE_CHARS, MAX_NOT_TAKEN};

use super::reference::Reference;
use super::{body, refuses, written};

fn ran(end: End) -> FromPe {
    FromPe::Ran(Ran {
        end,
        took_ns: 1 << 40,
        wrote_bytes: 1 << 41,
        last_lines: vec!["no such".to_owned(), "file".to_owned()],
        not_taken: vec!["a fifo".to_owned()],
    })
}

#[test]
fn what_a_pe_says_of_a_command_is_read_as_it_was_meant() {
    const REST: &str = r#"took_ns: 1099511627776 wrote_bytes: 2199023255552
        last_lines: "no such" last_lines: "file" not_taken: "a fifo""#;
    let ended = |end: &str| format!("ran {{ {end} {REST} }}");
    let reference = Reference::new();
    for (word, text) in [
        (ran(End::Exited(3)), ended("code: 3")),
        (ran(End::Signalled(9)), ended("signal: 9")),
        (ran(End::Failed("no".to_owned())), ended(r#"failed: "no""#)),
        (
            FromPe::Line("é".to_owned()),
            r#"line { text: "\303\251" }"#.to_owned(),
        ),
        (
            FromPe::Cleared {
                left: "busy".to_owned(),
            },
            r#"cleared { left: "busy" }"#.to_owned(),
        ),
    ] {
        let ours = written(|out| word.put(out));
        reference.assert_reads("Control", body(&ours), &text);
        let theirs = reference.encode("Control", &text);
        assert_eq!(FromPe::parse(&theirs), Ok(word));
        assert!(ToPe::parse(&theirs).is_err(), "a PE alone says {text}");
    }
}

/// In a oneof a value of 0 is encoded, in contrast to other fields.
#[test]
fn a_command_that_ends_well_is_not_one_of_which_nothing_is_said() {
    let ours = written(|out| ran(End::Exited(0)).put(out));
    assert_eq!(FromPe::parse(body(&ours)), Ok(ran(End::Exited(0))));
}

#[test]
fn what_a_pe_is_told_to_run_is_read_as_it_was_meant() {
    let reference = Reference::new();
    let run = Run {
        words: vec!["wc".into(), OsString::from_vec(b"\xff w".to_vec())],
        work: "/w".into(),
        pes: 8,
        time_limit_ns: 3_000_000_000,
    };
    for (word, text) in [
        (
            ToPe::Run(run),
            r#"run { words: "wc" words: "\377 w" work: "/w" pes: 8 time_limit_ns: 3000000000 }"#,
        ),
        (ToPe::Clear { work: "/w".into() }, r#"clear { work: "/w" }"#),
    ] {
        let ours = written(|out| word.put(out));
        reference.assert_reads("Control", body(&ours), text);
        let theirs = reference.encode("Control", text);
        assert_eq!(ToPe::parse(&theirs), Ok(word));
        assert!(FromPe::parse(&theirs).is_err(), "no PE says {text}");
    }
}

#[test]
fn nonsense_about_a_command_is_refused_with_a_reason() {
    let reference = Reference::new();
    for (text, reason) in [
        (r#"run { work: "/w" }"#, "the command is missing"),
        (r#"run { words: "" work: "/w" }"#, "the command is missing"),
        (r#"run { words: "a\000" work: "/w" }"#, "a zero byte"),
        (r#"run { words: "a" work: "w" }"#, "no absolute path"),
        (r#"run { words: "a" work: "/\000" }"#, "no absolute path"),
        ("clear { }", "no absolute path"),
    ] {
        refuses(
            text,
            ToPe::parse(&reference.encode("Control", text)),
            reason,
        );
    }
    let long = format!(
        r#"ran {{ code: 0 last_lines: "{}" }}"#,
        "x".repeat(MAX_LINE_CHARS + 1)
    );
    let many = r#"last_lines: "x" "#.repeat(MAX_LAST_LINES + 1);
    let many = format!("ran {{ code: 0 {many} }}");
    let refused_long = long.replace("last_lines", "not_taken");
    let refused_many = r#"not_taken: "x" "#.repeat(MAX_NOT_TAKEN + 1);
    let refused_many = format!("ran {{ code: 0 {refused_many} }}");
    for (text, reason) in [
        ("ran { took_ns: 1 }", "how a command ended is missing"),
        (&long, "more last lines than there can be"),
        (&many, "more last lines than there can be"),
        (&refused_long, "more entries that are not taken"),
        (&refused_many, "more entries that are not taken"),
    ] {
        refuses(
            text,
            FromPe::parse(&reference.encode("Control", text)),
            reason,
        );
    }
}
