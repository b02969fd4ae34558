//! Received certificates, orders and streams of a gather, to and from protobuf.

use crate::schedule::certification::Certificate;
use crate::streams::{ChildStream, TransmitOrder};
use crate::wire::codec::{record, required};

record! { TransmitOrder = TransmitOrder { after_ns as after, at_ns } }

record! {
    ChildStream = ChildStream {
        child, certified_at_ns as certified_ns, first_flit_ns, last_flit_ns, bytes,
    }
    put stream {
        lag_ns: stream.certificate.lag,
        stream_ns: stream.certificate.stream,
        packets: Some(stream.certificate.packets.put()),
    }
    parse stream {
        certificate: Certificate {
            lag: stream.lag_ns,
            stream: stream.stream_ns,
            packets: required(stream.packets, "the packets of a stream")?,
        },
    }
}
