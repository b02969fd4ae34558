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
pub fn edge_frames() -> Vec<EdgeFrame> {
    let certificate = Certificate {
        lag: 5,
        stream: 1 << 40,
        packets: packets(),
    };
    let items = [
        Control::Wakeup { after: 9 },
        Control::Token,
        Control::Certificate(certificate),
        Control::Order { after: 200 },
        Control::Receipt,
    ];
    let items = items.map(|item| EdgeFrame::Control {
        round: RoundId(u64::MAX),
        item,
    });
    let others = [
        hello(),
        EdgeFrame::Probe(Probe {
            flits: 16,
            reply_flits: 4,
            reply_flit_bytes: 65536,
        }),
        EdgeFrame::ProbeReply {
            received_ns: 1 << 60,
            answered_ns: u64::MAX,
        },
        EdgeFrame::Departed {
            at: Time(u64::MAX - 1),
            joins: false,
        },
    ];
    items.into_iter().chain(others).collect()
}
