//! The report of a PE on a round, to and from protobuf.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::counts::{Counts, parse_counts, put_counts};
use crate::items::Message;
use crate::schedule::certification::Certificate;
use crate::spans::{Port, Span, SpanItem};
use crate::streams::{ChildStream, Streams, TransmitOrder};
use crate::wire::codec::{Wire, ensure, record, required};
use crate::wire::flit::Digest;
use crate::wire::pb::span::Item;
use crate::wire::{MAX_REPORT_SPANS, WireError, pb};
use crate::{MessageId, PeId, RoundId};

/// Result of a round at one PE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub round: RoundId,
    /// Whether the round was completed; false if it was given up.
    pub complete: bool,
    pub begin: Begin,
    /// The messages with this PE as destination.
    pub arrivals: Vec<Arrival>,
    /// Number of flits that had to wait for a busy port.
    pub collisions: u64,
    /// Maximum number of flits of other PEs' messages in user memory.
    pub peak_buffered_flits: u64,
    /// Maximum resident set of the process in bytes.
    pub peak_resident_bytes: u64,
    /// Start of the PE's own message; `None` if no schedule defines it, or before it.
    pub own_start: Option<OwnStart>,
    /// Number of frames of earlier rounds, which were dropped.
    pub late_frames: u64,
    /// Number of frames received before on the same edge, since the last report; they were dropped.
    pub repeated_frames: u64,
    /// Time that the PE has waited for its files with messages to send or to receive.
    pub files_ns: u64,
    /// Number of packets sent by this PE that TCP has retransmitted since the last report; 0 if the
    /// kernel does not report it.
    pub retransmitted_packets: u64,
    /// Activity of the PE's ports, if the assignment requests it: the first
    /// [`MAX_REPORT_SPANS`](crate::wire::MAX_REPORT_SPANS) spans.
    pub spans: Vec<Span>,
    /// The counts at the end of the round.
    pub counts: Box<Counts>,
    /// Certificates, order and streams of a gather by certification, on this host's monotonic clock.
    pub streams: Streams,
}

impl Report {
    /// Adds the report of another part of the round, which runs on another tree at the same time.
    /// The arrivals of a message's parts are combined.
    #[must_use]
    pub fn with_part(mut self, part: Report) -> Report {
        self.arrivals = Arrival::joined(self.arrivals.into_iter().chain(part.arrivals));
        self.collisions += part.collisions;
        self.peak_buffered_flits += part.peak_buffered_flits;
        self.own_start = self.own_start.or(part.own_start);
        self.late_frames += part.late_frames;
        self.repeated_frames += part.repeated_frames;
        self.files_ns = self.files_ns.max(part.files_ns);
        self.retransmitted_packets += part.retransmitted_packets;
        let room = crate::wire::MAX_REPORT_SPANS.saturating_sub(self.spans.len());
        self.spans.extend(part.spans.into_iter().take(room));
        self
    }

    /// Returns the report of a round in which these messages are expected and nothing has happened.
    pub fn blank(round: RoundId, arrivals: Vec<Arrival>) -> Report {
        Report {
            round,
            arrivals,
            ..Report::default()
        }
    }
}

record! {
    Report = Report {
        round, complete, collisions, peak_buffered_flits, peak_resident_bytes, own_start, late_frames,
        repeated_frames, files_ns, retransmitted_packets,
    }
    put report {
        started_ns: report.begin.started_ns,
        began_ns: report.begin.began_ns,
        arrivals: report.arrivals.put(),
        digests: put_digests(&report.arrivals),
        spans: put_spans(&report.spans),
        counts: put_counts(&report.counts),
        order: report.streams.order.put(),
        streams: report.streams.children.put(),
    }
    parse report {
        begin: Begin {
            started_ns: report.started_ns,
            began_ns: report.began_ns,
        },
        arrivals: parse_arrivals(report.arrivals, report.digests)?,
        spans: parse_spans(&report.spans)?,
        counts: Box::new(parse_counts(report.counts)?),
        streams: Streams {
            order: Wire::parse(report.order)?,
            children: Wire::parse(report.streams)?,
        },
    }
}

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

/// The beginning of a round, on this host's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Time at which the round began at P0; 0 at other PEs.
    pub started_ns: u64,
    /// Time at which a triggered PE began, which may be a little later; 0 at other PEs.
    pub began_ns: u64,
}

/// The start of a PE's own message in a gather, on its host's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnStart {
    /// Time defined by the order or the wakeup call.
    pub due_ns: u64,
    /// Time at which its first flit was passed to the socket.
    pub began_ns: u64,
}

record! { OwnStart = OwnStart { due_ns, began_ns } }

/// A message at its destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    pub message: MessageId,
    pub source: PeId,
    pub destination: PeId,
    /// Number of bytes that have arrived.
    pub bytes_received: u64,
    /// Length of the message in bytes.
    pub bytes_total: u64,
    /// Whether the message is complete, verified and visible.
    pub delivered: bool,
    /// Time at which its last byte was read from the link, on this host's monotonic clock.
    pub at_ns: u64,
    /// Time of delivery on the same clock; 0 if it was not delivered.
    pub delivered_ns: u64,
    /// XXH3-128 of the files written for a delivered message.
    pub digest: Option<Digest>,
}

impl Arrival {
    /// Combines the arrivals of the parts of each message; returns those of whole messages, by id.
    pub fn joined(parts: impl IntoIterator<Item = Arrival>) -> Vec<Arrival> {
        let mut joined: BTreeMap<MessageId, Arrival> = BTreeMap::new();
        for part in parts {
            let whole = joined.entry(part.message);
            whole.and_modify(|it| it.add_part(&part)).or_insert(part);
        }
        joined.into_values().collect()
    }

    /// Adds the arrival of another part of the message.
    fn add_part(&mut self, part: &Arrival) {
        self.bytes_received += part.bytes_received;
        self.bytes_total += part.bytes_total;
        self.delivered &= part.delivered;
        self.at_ns = self.at_ns.max(part.at_ns);
        let last_ns = self.delivered_ns.max(part.delivered_ns);
        self.delivered_ns = if self.delivered { last_ns } else { 0 };
        self.digest = self.digest.or(part.digest);
    }

    /// Returns the arrival of a message at a PE, before its first byte.
    pub fn of(message: &Message, at: PeId) -> Arrival {
        Arrival {
            message: message.id,
            source: message.source,
            destination: at,
            bytes_total: message.bytes,
            ..Arrival::default()
        }
    }
}

// The report has the digests of all arrivals beside them.
record! {
    Arrival = Arrival {
        message, source, destination, bytes_received, bytes_total, delivered, at_ns, delivered_ns,
    }
    put _arrival {}
    parse arrival { digest: None }
}

fn parse_arrivals(arrivals: Vec<pb::Arrival>, digests: Bytes) -> Result<Vec<Arrival>, WireError> {
    let digests: Vec<Digest> = Wire::parse(digests)?;
    let is_each = digests.is_empty() || digests.len() == arrivals.len();
    ensure(is_each, "not one digest for each arrival")?;
    let mut arrivals: Vec<Arrival> = Wire::parse(arrivals)?;
    for (arrival, digest) in arrivals.iter_mut().zip(digests) {
        arrival.digest = (digest != [0; 16]).then_some(digest);
    }
    Ok(arrivals)
}

fn put_digests(arrivals: &[Arrival]) -> Bytes {
    let digests = arrivals.iter().map(|arrival| arrival.digest);
    if digests.clone().all(|digest| digest.is_none()) {
        return Bytes::new();
    }
    digests.flat_map(Option::unwrap_or_default).collect()
}

/// Encodes each begin as the distance from the previous one, so that a span takes some 20 bytes.
fn put_spans(spans: &[Span]) -> Vec<pb::Span> {
    let mut before_ns = 0;
    let put = |span: &Span| {
        let (item, message) = match span.item {
            SpanItem::Message(id) => (Item::Message, id.0),
            SpanItem::Wakeup => (Item::Wakeup, 0),
            SpanItem::Token => (Item::Token, 0),
            SpanItem::Certificate => (Item::Certificate, 0),
            SpanItem::Order => (Item::Order, 0),
            SpanItem::Receipt => (Item::Receipt, 0),
        };
        let begin_after_ns = span.begin_ns.wrapping_sub(before_ns) as i64;
        before_ns = span.begin_ns;
        pb::Span {
            received: span.port == Port::Receive,
            files: span.port == Port::Files,
            peer: span.peer.0,
            item: item.into(),
            message,
            begin_after_ns,
            duration_ns: span.end_ns.saturating_sub(span.begin_ns),
        }
    };
    spans.iter().map(put).collect()
}

fn parse_spans(spans: &[pb::Span]) -> Result<Vec<Span>, WireError> {
    let n = spans.len();
    let fault = format_args!("{n} spans in a report, at most {MAX_REPORT_SPANS} are allowed");
    ensure(n <= MAX_REPORT_SPANS, fault)?;
    let mut before_ns: u64 = 0;
    let parse = |span: &pb::Span| {
        let item = match (Item::try_from(span.item), span.message) {
            (Ok(Item::Message), id) => SpanItem::Message(MessageId(id)),
            (Ok(Item::Wakeup), 0) => SpanItem::Wakeup,
            (Ok(Item::Token), 0) => SpanItem::Token,
            (Ok(Item::Certificate), 0) => SpanItem::Certificate,
            (Ok(Item::Order), 0) => SpanItem::Order,
            (Ok(Item::Receipt), 0) => SpanItem::Receipt,
            (Ok(Item::Unspecified) | Err(_), _) => {
                return Err(WireError::malformed("a span of no known item"));
            }
            (Ok(_), _) => return Err(WireError::malformed("a control item that is a message")),
        };
        let begin_ns = before_ns.checked_add_signed(span.begin_after_ns);
        let end_ns = begin_ns.and_then(|begin| begin.checked_add(span.duration_ns));
        let (Some(begin_ns), Some(end_ns)) = (begin_ns, end_ns) else {
            return Err(WireError::malformed("a span outside of all time"));
        };
        before_ns = begin_ns;
        Ok(Span {
            port: match (span.files, span.received) {
                (true, _) => Port::Files,
                (_, true) => Port::Receive,
                (_, false) => Port::Send,
            },
            peer: PeId(span.peer),
            item,
            begin_ns,
            end_ns,
        })
    };
    spans.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::RoundId;
    use crate::wire::control::{Begin, FromPe, Report};
    use crate::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME};

    /// Returns spans with the longest encoding: large numbers, and times far apart.
    fn longest(n: usize) -> Vec<Span> {
        let span = |i| Span {
            port: Port::Receive,
            peer: PeId(u32::MAX),
            item: SpanItem::Message(MessageId(u64::MAX)),
            begin_ns: if i % 2 == 0 { u64::MAX / 2 } else { 0 },
            end_ns: if i % 2 == 0 { u64::MAX } else { u64::MAX / 2 },
        };
        (0..n).map(span).collect()
    }

    #[test]
    fn the_longest_report_fits_a_frame() {
        let report = Report {
            complete: true,
            begin: Begin {
                started_ns: 1,
                began_ns: 2,
            },
            spans: longest(MAX_REPORT_SPANS),
            ..Report::blank(RoundId(1), Vec::new())
        };
        let mut frame = Vec::new();
        FromPe::Report(report.clone()).put(&mut frame);
        assert!(frame.len() < MAX_CONTROL_FRAME / 11, "{}", frame.len());
        let read = FromPe::parse(&frame[LENGTH_BYTES..]);
        assert_eq!(read, Ok(FromPe::Report(report)));
    }

    #[test]
    fn a_span_of_a_round_takes_few_bytes() {
        let span = |i: u64| Span {
            port: Port::Send,
            peer: PeId(1000),
            item: SpanItem::Message(MessageId(900)),
            begin_ns: 1_000_000_000_000_000 + i * 10_000_000,
            end_ns: 1_000_000_000_000_000 + (i + 1) * 10_000_000,
        };
        let spans: Vec<Span> = (0..1000).map(span).collect();
        let report = pb::Report {
            spans: put_spans(&spans),
            ..Default::default()
        };
        assert!(report.encoded_len() < 22 * 1000, "{}", report.encoded_len());
        assert_eq!(parse_spans(&report.spans), Ok(spans));
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        let span = put_spans(&longest(1)).remove(0);
        let item = |item: i32| pb::Span { item, ..span };
        let early = pb::Span {
            begin_after_ns: -1,
            ..span
        };
        let late = pb::Span {
            duration_ns: u64::MAX,
            ..span
        };
        for (spans, why) in [
            (&[item(0)][..], "no known item"),
            (&[item(7)], "no known item"),
            (&[item(Item::Token.into())], "control item"),
            (&[early], "outside"),
            (&[late], "outside"),
            (&vec![span; MAX_REPORT_SPANS + 1], "65537"),
        ] {
            let refused = parse_spans(spans).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
