//! Received certificates, orders and streams of a gather, to and from protobuf.

use crate::schedule::certification::Certificate;
use crate::streams::{ChildStream, TransmitOrder};
use crate::wire::codec::record;

record! { TransmitOrder = TransmitOrder { after_ns as after, at_ns } }

record! {
    ChildStream = ChildStream {
        child, certified_at_ns as certified_ns, first_flit_ns, last_flit_ns, bytes,
    }
    put stream {
        lag_ns: stream.certificate.lag,
        stream_ns: stream.certificate.stream,
        certified_bytes: stream.certificate.bytes,
    }
    parse stream {
        certificate: Certificate {
            lag: stream.lag_ns,
            stream: stream.stream_ns,
            bytes: stream.certified_bytes,
        },
    }
}
