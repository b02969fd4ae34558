//! Common parts of a PE's messages, in which no field has its default.

use flitcast_proto::schedule::pace::{ChildPace, Pace, Pacing, Packets, Passage};
use flitcast_proto::spans::{Port, Span, SpanItem};
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::control::{Counts, EdgeCounts, FromPe, Register};
use flitcast_proto::{MessageId, PeId, Unkept};

/// Returns the registration of a PE.
pub fn register() -> FromPe {
    FromPe::Register(Register {
        cluster: u64::MAX - 1,
        pe: PeId(7),
        min_version: 1,
        max_version: 2,
        listen: "[::1]:4711".to_owned(),
        pid: 4_194_304,
        clock: "boot".to_owned(),
        processor: "a processor".to_owned(),
        cores: 8,
        host: "node01".to_owned(),
        secret: Secret::new(*b"0123456789abcdef0123456789abcdef"),
    })
}

pub(super) fn packets() -> Packets {
    Packets {
        bytes: 9,
        count: 3,
        first: 2,
        largest: 4,
    }
}

fn passage(latency: u64) -> Passage {
    Passage {
        latency,
        ticks_per_packet: 2.0,
        ticks_per_byte: 0.5,
        message: 7,
        flit_bytes: 65_536,
    }
}

pub(super) fn pace() -> Pace {
    Pace {
        pacing: Pacing::Turns,
        lock_step: false,
        control: 5,
        up: passage(6),
        below: vec![
            ChildPace {
                reach: 8,
                up: passage(9),
            },
            ChildPace {
                reach: 10,
                up: passage(11),
            },
        ],
        port_ticks_per_byte: 1.25,
        ahead_bytes: 12,
    }
}

pub(super) fn spans() -> Vec<Span> {
    let span = |port, peer, item, begin_ns, end_ns| Span {
        port,
        peer: PeId(peer),
        item,
        begin_ns,
        end_ns,
    };
    let moment = |item| span(Port::Send, 3, item, 740, 740);
    let message = SpanItem::Message(MessageId(5));
    vec![
        span(Port::Send, 1, SpanItem::Order, 700, 730),
        span(Port::Receive, 2, message, 750, 750 + (1 << 32)),
        span(Port::Files, 2, message, 750, 760),
        moment(message),
        moment(SpanItem::Wakeup),
        moment(SpanItem::Token),
        moment(SpanItem::Certificate),
        moment(SpanItem::Receipt),
    ]
}

pub(super) fn counts() -> Counts {
    let edge = |peer, received_bytes, sent_bytes, received_flits| EdgeCounts {
        peer: PeId(peer),
        received_bytes,
        sent_bytes,
        received_flits,
        sent_flits: 1,
    };
    Counts {
        edges: vec![edge(0, 1 << 40, 0, 7), edge(9, 0, 1 << 40, 0)],
        rounds_begun: 3,
        rounds_done: 2,
        collisions: 4,
        late_frames: 5,
        repeated_frames: 6,
        buffered_flits: 1,
        peak_buffered_flits: 8,
        moved_bytes: 100,
        slips: 2,
        slip_ns: 3000,
        resident_bytes: 7 << 20,
        unkept: unkept(),
    }
}

pub(super) fn unkept() -> Unkept {
    Unkept {
        hard_links: 1,
        special_modes: 2,
        owners: 1 << 40,
        extended: 3,
    }
}
