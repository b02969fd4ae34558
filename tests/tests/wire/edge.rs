//! `Frame`: the messages between neighbours in the tree.

use flitcast_proto::items::Control;
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::edge::{EdgeFrame, Hello, Probe};
use flitcast_proto::wire::seal::{FrameSealer, HEAD_BYTES};
use flitcast_proto::{PeId, RoundId, Time};

use super::reference::Reference;
use super::{body, refuses, written};

fn control(item: Control) -> EdgeFrame {
    let round = RoundId(u64::MAX);
    EdgeFrame::Control { round, item }
}

fn hello() -> EdgeFrame {
    EdgeFrame::Hello(Hello {
        cluster: 0xfedc_ba98_7654_3210,
        pe: PeId(7),
        min_version: 1,
        max_version: 300,
        secret: Secret::new(*b"0123456789abcdef0123456789abcdef"),
        lane: 4,
    })
}

/// Returns every kind of frame but the flit.
fn all() -> Vec<(EdgeFrame, &'static str)> {
    let certificate = Certificate {
        lag: 5,
        stream: 1 << 40,
        bytes: 9,
    };
    vec![
        (
            hello(),
            r#"hello { cluster: 0xfedcba9876543210 pe: 7 min_version: 1 max_version: 300
                secret: "0123456789abcdef0123456789abcdef" lane: 4 }"#,
        ),
        (
            control(Control::Wakeup { after: 9 }),
            "wakeup { round: 18446744073709551615 after: 9 }",
        ),
        (
            control(Control::Token),
            "token { round: 18446744073709551615 }",
        ),
        (
            control(Control::Certificate(certificate)),
            "certificate { round: 18446744073709551615 lag: 5 stream: 1099511627776 bytes: 9 }",
        ),
        (
            control(Control::Order { after: 200 }),
            "order { round: 18446744073709551615 after: 200 }",
        ),
        (
            control(Control::Receipt),
            "receipt { round: 18446744073709551615 }",
        ),
        (
            EdgeFrame::Probe(Probe {
                flits: 16,
                reply_flits: 4,
                reply_flit_bytes: 65536,
            }),
            "probe { flits: 16 reply_flits: 4 reply_flit_bytes: 65536 }",
        ),
        (
            EdgeFrame::ProbeReply {
                received_ns: 1 << 60,
                answered_ns: u64::MAX,
            },
            "probe_reply { received_ns: 1152921504606846976 answered_ns: 18446744073709551615 }",
        ),
        (
            EdgeFrame::Departed {
                at: Time(u64::MAX - 1),
                joins: false,
            },
            "departed { at_ns: 18446744073709551614 }",
        ),
    ]
}

#[test]
fn every_frame_is_read_as_it_was_meant() {
    let reference = Reference::new();
    for (frame, text) in all() {
        let ours = written(|out| frame.put(out));
        reference.assert_reads("Frame", body(&ours), text);
        let theirs = reference.encode("Frame", text);
        assert_eq!(EdgeFrame::parse(&theirs), Ok(frame));
    }
}

/// These fields have a meaning in protobuf, where an absent field is a zero.
#[test]
fn frames_of_zeros_are_read_as_zeros() {
    let reference = Reference::new();
    let zero = EdgeFrame::Control {
        round: RoundId(0),
        item: Control::Token,
    };
    let ours = written(|out| zero.put(out));
    reference.assert_reads("Frame", body(&ours), "token { }");
    assert_eq!(
        EdgeFrame::parse(&reference.encode("Frame", "token { }")),
        Ok(zero)
    );
}

/// Additional fields of a later version are skipped.
#[test]
fn fields_of_a_later_version_are_skipped() {
    let later = Reference::later(|text| {
        text.replace(
            "message Hello {",
            "message Hello { string name = 100; repeated Head heads = 101; double load = 9;",
        )
    });
    let text = r#"hello { cluster: 0xfedcba9876543210 pe: 7 min_version: 1 max_version: 300
                  secret: "0123456789abcdef0123456789abcdef" lane: 4
                  name: "p7" heads { round: 1 } heads { round: 2 } load: 0.5 }"#;
    assert_eq!(EdgeFrame::parse(&later.encode("Frame", text)), Ok(hello()));
}

#[test]
fn a_kind_of_a_later_version_is_refused() {
    let later = Reference::later(|text| {
        text.replace("Flit flit = 15;", "Flit flit = 15; Token another = 16;")
    });
    let refused = EdgeFrame::parse(&later.encode("Frame", "another { round: 1 }"));
    refuses("another", refused, "no known kind");
    assert!(
        EdgeFrame::parse(&[]).is_err(),
        "nothing at all is no frame either"
    );
}

/// A flit is parsed separately, so that its payload is not copied.
#[test]
fn a_flit_is_none_of_these_frames() {
    let flit = Reference::new().encode("Frame", r#"flit { payload: "abc" }"#);
    assert!(EdgeFrame::parse(&flit).is_err());
}

#[test]
fn a_frame_cut_anywhere_is_refused() {
    for (frame, text) in all() {
        let whole = written(|out| frame.put(out));
        let body = body(&whole);
        for cut in 0..body.len() {
            assert!(
                EdgeFrame::parse(&body[..cut]).is_err(),
                "{text}, cut at {cut}"
            );
        }
    }
}

/// A seal consists of fields of the frame itself, before its message.
#[test]
fn a_sealed_frame_is_protobuf_as_well() {
    let reference = Reference::new();
    let mut sealer = FrameSealer::default();
    for (sequence, (frame, text)) in (0u32..).zip(all()) {
        let plain = written(|out| frame.put(out));
        let sealed = sealer.sealed(&plain);
        let number = |at: usize| {
            let bytes = sealed[at..]
                .first_chunk()
                .expect("a seal has three numbers");
            u32::from_le_bytes(*bytes)
        };
        let seal = [("sequence", 5), ("checksum", 10), ("head_checksum", 15)]
            .map(|(name, at)| format!("{name}: {}", number(at)));
        assert_eq!(seal[0], format!("sequence: {sequence}"));
        reference.assert_reads(
            "Frame",
            body(&sealed),
            &format!("{} {text}", seal.join(" ")),
        );
        assert_eq!(&sealed[HEAD_BYTES..], body(&plain));
    }
}
