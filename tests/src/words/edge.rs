//! Frames between neighbours in the tree, apart from flits.

use flitcast_proto::items::Control;
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::edge::{EdgeFrame, Hello, Probe};
use flitcast_proto::{PeId, RoundId, Time};

use super::parts::packets;

/// Returns the first frame on an edge.
pub fn hello() -> EdgeFrame {
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
pub fn edge_frames() -> Vec<(EdgeFrame, String)> {
    let certificate = Certificate {
        lag: 5,
        stream: 1 << 40,
        packets: packets(),
    };
    let items = [
        (Control::Wakeup { after: 9 }, "wakeup", "after: 9"),
        (Control::Token, "token", ""),
        (
            Control::Certificate(certificate),
            "certificate",
            "lag: 5 stream: 1099511627776 packets { bytes: 9 count: 3 first: 2 largest: 4 }",
        ),
        (Control::Order { after: 200 }, "order", "after: 200"),
        (Control::Receipt, "receipt", ""),
    ];
    let items = items.map(|(item, name, fields)| {
        let round = RoundId(u64::MAX);
        let text = format!("{name} {{ round: 18446744073709551615 {fields} }}");
        (EdgeFrame::Control { round, item }, text)
    });
    let others = [
        (
            hello(),
            r#"hello { cluster: 0xfedcba9876543210 pe: 7 min_version: 1 max_version: 300
                secret: "0123456789abcdef0123456789abcdef" lane: 4 }"#,
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
    ];
    let others = others.map(|(frame, text)| (frame, text.to_owned()));
    items.into_iter().chain(others).collect()
}
