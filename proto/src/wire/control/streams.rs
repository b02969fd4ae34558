//! Received certificates, orders and streams of a gather, to and from protobuf.

use crate::PeId;
use crate::schedule::certification::Certificate;
use crate::streams::{ChildStream, Streams, TransmitOrder};
use crate::wire::pb;

/// Returns the order and the streams of the children.
pub fn put_streams(streams: &Streams) -> (Option<pb::TransmitOrder>, Vec<pb::ChildStream>) {
    let order = streams.order.map(|order| pb::TransmitOrder {
        after_ns: order.after,
        at_ns: order.at_ns,
    });
    let child = |stream: &ChildStream| pb::ChildStream {
        child: stream.child.0,
        lag_ns: stream.certificate.lag,
        stream_ns: stream.certificate.stream,
        certified_bytes: stream.certificate.bytes,
        certified_at_ns: stream.certified_ns,
        first_flit_ns: stream.first_flit_ns,
        last_flit_ns: stream.last_flit_ns,
        bytes: stream.bytes,
    };
    (order, streams.children.iter().map(child).collect())
}

/// Parses the order and the streams of the children.
pub fn parse_streams(order: Option<pb::TransmitOrder>, children: &[pb::ChildStream]) -> Streams {
    let child = |stream: &pb::ChildStream| ChildStream {
        child: PeId(stream.child),
        certificate: Certificate {
            lag: stream.lag_ns,
            stream: stream.stream_ns,
            bytes: stream.certified_bytes,
        },
        certified_ns: stream.certified_at_ns,
        first_flit_ns: stream.first_flit_ns,
        last_flit_ns: stream.last_flit_ns,
        bytes: stream.bytes,
    };
    Streams {
        order: order.map(|order| TransmitOrder {
            after: order.after_ns,
            at_ns: order.at_ns,
        }),
        children: children.iter().map(child).collect(),
    }
}
