//! The times on a PE's edges, to and from protobuf.

use crate::schedule::pace::{ChildPace, Pace, Pacing, Packets, Passage};
use crate::wire::WireError;
use crate::wire::codec::{codes, ensure, record, required};

record! {
    Passage = Passage {
        latency_ns as latency, ns_per_packet as ticks_per_packet, ns_per_byte as ticks_per_byte,
        message_ns as message, flit_bytes,
    },
    |passage: &Passage| {
        let mut rates = [passage.ticks_per_packet, passage.ticks_per_byte].into_iter();
        ensure(rates.all(|rate| rate.is_finite() && rate >= 0.0), "a passage with nonsense numbers")
    }
}
record! {
    ChildPace = ChildPace { reach_ns as reach }
    put pace { up: Some(pace.up.put()) }
    parse pace { up: required(pace.up, "the pace of a child")? }
}

record! {
    Packets = Packets { bytes, count, first, largest },
    |packets: &Packets| {
        let Packets { bytes, count, first, largest } = *packets;
        let are_sound =
            first <= largest && largest <= bytes && count <= bytes && (first == 0) == (bytes == 0);
        ensure(are_sound, "packets with nonsense numbers")
    }
}

record! {
    Pace = Pace {
        pacing, control_ns as control, below, port_ns_per_byte as port_ticks_per_byte, ahead_bytes,
    }
    put pace {
        up: Some(pace.up.put()),
    }
    parse pace {
        lock_step: false,
        up: required(pace.up, "the pace to the parent")?,
    },
    |pace: &Pace| {
        let rate = pace.port_ticks_per_byte;
        ensure(rate.is_finite() && rate >= 0.0, "a pace with nonsense numbers")
    }
}

codes! {
    Pacing { Scheduled, Turns, Eager },
    code => Err(WireError::malformed(format!("{code} is no pacing")))
}
