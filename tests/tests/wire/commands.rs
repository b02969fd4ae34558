//! Messages about commands that PEs run.

use flitcast_proto::wire::control::{End, FromPe, Ran, ToPe};
use flitcast_proto::wire::{MAX_LAST_LINES, MAX_LINE_CHARS, MAX_NOT_TAKEN};
use flitcast_tests::rows;
use flitcast_tests::wire_examples::written;

use super::reference::Reference;
use super::{body, refuses};

/// In a oneof a value of 0 is encoded, in contrast to other fields.
#[test]
fn an_exit_status_of_0_is_encoded() {
    let ran = FromPe::Ran(Ran {
        end: End::Exited(0),
        took_ns: 0,
        wrote_bytes: 0,
        last_lines: Vec::new(),
        not_taken: Vec::new(),
        shard: "a".into(),
        kept_output: false,
    });
    let ours = written(|out| ran.put(out));
    assert_eq!(FromPe::parse(body(&ours)), Ok(ran));
}

#[test]
fn nonsense_about_a_command_is_refused_with_a_reason() {
    let reference = Reference::new();
    for [text, reason] in rows(
        r#"
        run { work: "/w" } | the command is missing
        run { words: "" work: "/w" } | the command is missing
        run { words: "a\000" work: "/w" } | a zero byte
        run { words: "a" work: "w" shard: "b" } | no absolute path
        run { words: "a" work: "/\000" shard: "b" } | no absolute path
        run { words: "a" work: "/w" } | a shard without
        run { words: "a" work: "/w" shard: ".." } | a shard without
        run { words: "a" work: "/w" shard: "b/c" } | a shard without
        run { words: "a" work: "/w" shard: "\000" } | a shard without
        clear { } | no absolute path
        list_shards { input: "/a" output: "b" } | no absolute path
        place_results { gathered: "a" output: "/b" } | no absolute path
        place_results { gathered: "/a" output: "/b" from: "c" to: "d" } | not one place for each
        place_results { gathered: "/a" output: "/b" from: "../c" to: "d" obsolete: "" } | a shard without
        place_results { gathered: "/a" output: "/b" from: "c" to: "d/e" obsolete: "" } | a shard without
    "#,
    ) {
        let parsed = ToPe::parse(&reference.encode("Control", text));
        refuses(text, parsed, reason);
    }
    let long = format!(
        r#"ran {{ code: 1 last_lines: "{}" }}"#,
        "x".repeat(MAX_LINE_CHARS + 1)
    );
    let many = r#"last_lines: "x" "#.repeat(MAX_LAST_LINES + 1);
    let many = format!("ran {{ code: 1 {many} }}");
    let refused_long = long.replace("last_lines", "not_taken");
    let refused_many = r#"not_taken: "x" "#.repeat(MAX_NOT_TAKEN + 1);
    let refused_many = format!("ran {{ code: 1 {refused_many} }}");
    for (text, reason) in [
        ("ran { took_ns: 1 }", "how a command ended is missing"),
        (&long, "more last lines than there can be"),
        (&many, "more last lines than there can be"),
        (&refused_long, "more entries that are not taken"),
        (&refused_many, "more entries that are not taken"),
    ] {
        let parsed = FromPe::parse(&reference.encode("Control", text));
        refuses(text, parsed, reason);
    }
}
