//! Spans of activity of a PE's ports, to and from protobuf. Each begin is encoded as the distance
//! from the previous one, so that a span takes some 20 bytes.

use crate::spans::{Port, Span, SpanItem};
use crate::wire::codec::ensure;
use crate::wire::pb::span::Item;
use crate::wire::{MAX_REPORT_SPANS, WireError, pb};
use crate::{MessageId, PeId};

pub fn put_spans(spans: &[Span]) -> Vec<pb::Span> {
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

pub fn parse_spans(spans: &[pb::Span]) -> Result<Vec<Span>, WireError> {
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
