//! `Frame`: the messages between neighbours in the tree.

use flitcast_proto::RoundId;
use flitcast_proto::items::Control;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::seal::{FrameSealer, HEAD_BYTES};
use flitcast_tests::edge::framed;
use flitcast_tests::wire_examples::bodies;

use super::reference::Reference;
use super::{EDGE, body, refuses};

/// These fields have a meaning in protobuf, where an absent field is a zero.
#[test]
fn frames_of_zeros_are_read_as_zeros() {
    let zero = EdgeFrame::Control {
        round: RoundId(0),
        item: Control::Token,
    };
    EDGE.are_alike(&Reference::new(), zero, "token { }");
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let hello_with =
        "message Hello { string name = 100; repeated Head heads = 101; double load = 9;";
    let later = Reference::later(&[("message Hello {", hello_with)]);
    let text = r#"hello { cluster: 7 pe: 7 max_version: 300 secret: "0123456789abcdef0123456789abcdef" lane: 4 MORE }"#;
    let more = r#"name: "p7" heads { round: 1 } heads { round: 2 } load: 0.5"#;
    let [now, then] = ["", more]
        .map(|more| EdgeFrame::parse(&later.encode("Frame", &text.replace("MORE", more))));
    assert!(now.is_ok() && now == then, "{then:?}");
}

#[test]
fn a_kind_of_a_later_version_is_refused() {
    let kinds = "Flit flit = 15; Token another = 16;";
    let later = Reference::later(&[("Flit flit = 15;", kinds)]);
    let refused = EdgeFrame::parse(&later.encode("Frame", "another { round: 1 }"));
    refuses("another", refused, "no known kind");
    assert!(EdgeFrame::parse(&[]).is_err(), "nothing is no frame either");
}

/// A flit is parsed separately, so that its payload is not copied.
#[test]
fn a_flit_is_none_of_these_frames() {
    let flit = Reference::new().encode("Frame", r#"flit { payload: "abc" }"#);
    assert!(EdgeFrame::parse(&flit).is_err());
}

/// A seal consists of fields of the frame itself, before its message.
#[test]
fn a_sealed_frame_is_protobuf_as_well() {
    let reference = Reference::new();
    let mut sealer = FrameSealer::default();
    let [bodies, _, _] = bodies();
    for (sequence, plain) in (0u32..).zip(bodies) {
        let sealed = sealer.sealed(&framed(&plain));
        let number = |at: usize| {
            let bytes = sealed[at..].first_chunk();
            u32::from_le_bytes(*bytes.expect("a seal has three numbers"))
        };
        let seal = [("sequence", 5), ("checksum", 10), ("head_checksum", 15)]
            .map(|(name, at)| format!("{name}: {}", number(at)));
        assert_eq!(seal[0], format!("sequence: {sequence}"));
        let text = format!("{} {}", seal.join(" "), reference.text("Frame", &plain));
        reference.assert_reads("Frame", body(&sealed), &text);
        assert_eq!(sealed[HEAD_BYTES..], plain);
    }
}
