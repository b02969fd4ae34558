//! Invalid messages, which are rejected with the reason.

use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_tests::rows;

use super::reference::Reference;
use super::refuses;

/// The text of an assignment on a tree of four PEs, except for its collective and its payload.
const PLACE: &str = "version: 1 parents: 0 parents: 0 parents: 1 flit_bytes: 65536";
const FILES: &str = "files { }";

/// Valid protobuf with an invalid meaning, and the error.
#[test]
fn nonsense_is_refused_with_a_reason() {
    let reference = Reference::new();
    let assignment = |parts: &str, reason: &str| {
        let text = format!("assignment {{ {parts} }}");
        let parsed = ToPe::parse(&reference.encode("Control", &text));
        refuses(&text, parsed, reason);
    };
    let operation = "collective: COLLECTIVE_SCATTER";
    let of_files = format!("{operation} {FILES}");
    assignment(&format!("{PLACE} {FILES}"), "not a collective");
    assignment(&format!("{PLACE} {operation}"), "payload");
    assignment(&of_files, "flit");
    let lengths = "synthetic { lengths: 1 }";
    assignment(&format!("{PLACE} {operation} {lengths}"), "length");
    for [place, reason] in rows(
        "
        parents: 0 parents: 3 parents: 2 | cycle
        parents: 0 parents: 2 parents: 2 | P3: parent P2 is absent
        parents: 0 parents: 0 parents: 1 left_out: 0 | omitted messages
        parents: 0 parents: 0 parents: 1 left_out: 4 | omitted messages
        parents: 0 parents: 0 parents: 1 left_out: 2 left_out: 1 | omitted messages
        parents: 0 parents: 2 parents: 1 links { child: 2 down {} up {} } | no edge leads to P2
    ",
    ) {
        assignment(&format!("{of_files} flit_bytes: 65536 {place}"), reason);
    }
    for [link, reason] in rows(
        "
        child: 0 down {} up {} | no edge leads to P0
        child: 4 down {} up {} | no edge leads to P4
        child: 2 down {} | a link is missing
        child: 2 up {} down { ns_per_byte: nan } | nonsense
        child: 2 up {} down { ns_per_byte: 1e7 } | the edge to P2: 10000000 ns a byte
        child: 2 up { latency_ns: 2e9 } down {} | the edge to P2: a latency of 2000 ms
        child: 2 up { latency_ns: 1e9 ns_per_byte: 1 } down {} | under way
        child: 2 up { burst_bytes: 1 } down {} | burst
    ",
    ) {
        assignment(&format!("{PLACE} {of_files} links {{ {link} }}"), reason);
    }
    for (span, reason) in [
        ("", "no known item"),
        ("item: ITEM_TOKEN message: 1", "is a message"),
        ("item: ITEM_TOKEN begin_after_ns: -1", "outside of all time"),
    ] {
        let text = format!("report {{ spans {{ {span} }} }}");
        let parsed = FromPe::parse(&reference.encode("Control", &text));
        refuses(&text, parsed, reason);
    }
}

#[test]
fn text_that_is_no_text_is_refused() {
    let later = Reference::later(&[("string reason = 3;", "bytes reason = 3;")]);
    let fault = later.encode("Control", r#"fault { round: 1 reason: "\377" }"#);
    assert!(FromPe::parse(&fault).is_err());
}
