//! Invalid messages, which are rejected with the reason.

use flitcast_proto::wire::control::{End, FromPe, Ran, ToPe};
use flitcast_proto::wire::{MAX_LAST_LINES, MAX_LINE_CHARS, MAX_NOT_TAKEN};
use flitcast_tests::rows;
use flitcast_tests::wire_examples::written;

use super::reference::Reference;
use super::{body, refuses};

/// Valid protobuf with an invalid meaning, and the error. `PLACE` is an assignment on a tree of four PEs, except
/// for its collective and its payload; `REST` is all of one but the tree.
const NONSENSE: &str = r#"
    assignment { PLACE files { } } | not a collective
    assignment { PLACE collective: COLLECTIVE_SCATTER } | payload
    assignment { collective: COLLECTIVE_SCATTER files { } } | flit
    assignment { PLACE collective: COLLECTIVE_SCATTER synthetic { lengths: 1 } } | length
    assignment { REST parents: 0 parents: 3 parents: 2 } | cycle
    assignment { REST parents: 0 parents: 2 parents: 2 } | P3: parent P2 is absent
    assignment { REST parents: 0 parents: 0 parents: 1 left_out: 0 } | omitted messages
    assignment { REST parents: 0 parents: 0 parents: 1 left_out: 4 } | omitted messages
    assignment { REST parents: 0 parents: 0 parents: 1 left_out: 2 left_out: 1 } | omitted messages
    assignment { REST parents: 0 parents: 2 parents: 1 links { child: 2 down {} up {} } } | no edge leads to P2
    assignment { PLACE REST links { child: 0 down {} up {} } } | no edge leads to P0
    assignment { PLACE REST links { child: 4 down {} up {} } } | no edge leads to P4
    assignment { PLACE REST links { child: 2 down {} } } | a link is missing
    assignment { PLACE REST links { child: 2 up {} down { ns_per_byte: nan } } } | nonsense
    assignment { PLACE REST links { child: 2 up {} down { ns_per_byte: 1e7 } } } | the edge to P2: 10000000 ns a byte
    assignment { PLACE REST links { child: 2 up { latency_ns: 2e9 } down {} } } | the edge to P2: a latency of 2000 ms
    assignment { PLACE REST links { child: 2 up { latency_ns: 1e9 ns_per_byte: 1 } down {} } } | under way
    assignment { PLACE REST links { child: 2 up { burst_bytes: 1 } down {} } } | burst
    report { spans { } } | no known item
    report { spans { item: ITEM_TOKEN message: 1 } } | is a message
    report { spans { item: ITEM_TOKEN begin_after_ns: -1 } } | outside of all time
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
    ran { took_ns: 1 } | how a command ended is missing
"#;

#[test]
fn nonsense_is_refused_with_a_reason() {
    let reference = Reference::new();
    let check = |text: &str, reason: &str| {
        let frame = reference.encode("Control", text);
        match text.starts_with('r') && !text.starts_with("run") {
            true => refuses(text, FromPe::parse(&frame), reason),
            false => refuses(text, ToPe::parse(&frame), reason),
        }
    };
    let rest = "collective: COLLECTIVE_SCATTER files { } flit_bytes: 65536";
    let place = "version: 1 parents: 0 parents: 0 parents: 1 flit_bytes: 65536";
    for [text, reason] in rows(NONSENSE) {
        check(&text.replace("PLACE", place).replace("REST", rest), reason);
    }
    let long = format!(r#"last_lines: "{}""#, "x".repeat(MAX_LINE_CHARS + 1));
    let many = r#"last_lines: "x" "#.repeat(MAX_LAST_LINES + 1);
    for lines in [&long, &many] {
        let text = format!("ran {{ code: 1 {lines} }}");
        check(&text, "more last lines than there can be");
    }
    let many = r#"not_taken: "x" "#.repeat(MAX_NOT_TAKEN + 1);
    for entries in [&long.replace("last_lines", "not_taken"), &many] {
        let text = format!("ran {{ code: 1 {entries} }}");
        check(&text, "more entries that are not taken");
    }
}

#[test]
fn text_that_is_no_text_is_refused() {
    let later = Reference::later(&[("string reason = 3;", "bytes reason = 3;")]);
    let fault = later.encode("Control", r#"fault { round: 1 reason: "\377" }"#);
    assert!(FromPe::parse(&fault).is_err());
}

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
