//! Keeps what this PE's ports do in a round, for whoever draws it. When nobody asked,
//! no clock is read and nothing is kept.

use flitcast_proto::PeId;
use flitcast_proto::spans::{Port, Span, SpanItem};
use flitcast_proto::wire::MAX_REPORT_SPANS;

use crate::clock;

/// The spans of one PE in one round.
#[derive(Debug)]
pub struct Recorder(Option<Vec<Span>>);

/// A moment; `None` where nobody wants to know.
#[derive(Clone, Copy, Debug)]
pub struct Moment(Option<u64>);

impl Recorder {
    /// Keeps spans if they are asked for.
    pub fn new(asked: bool) -> Recorder {
        Recorder(asked.then(Vec::new))
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment(self.0.as_ref().map(|_| clock::now().0))
    }

    /// The send port was busy with `item` for `peer`, from `begin` until now.
    pub fn sent(&mut self, begin: Moment, peer: PeId, item: impl Into<SpanItem>) {
        self.keep(Port::Send, begin, peer, item.into());
    }

    /// The receive port was busy with `item` of `peer`, from `begin` until now.
    pub fn received(&mut self, begin: Moment, peer: PeId, item: impl Into<SpanItem>) {
        self.keep(Port::Receive, begin, peer, item.into());
    }

    /// A message of `peer` that had come whole at `came_ns` is durable and visible now.
    pub fn made_visible(&mut self, came_ns: u64, peer: PeId, message: impl Into<SpanItem>) {
        self.keep(Port::Files, Moment(Some(came_ns)), peer, message.into());
    }

    fn keep(&mut self, port: Port, begin: Moment, peer: PeId, item: SpanItem) {
        if let (Some(spans), Moment(Some(begin_ns))) = (&mut self.0, begin)
            && spans.len() < MAX_REPORT_SPANS
        {
            spans.push(Span {
                port,
                peer,
                item,
                begin_ns,
                end_ns: clock::now().0,
            });
        }
    }

    /// What was kept; nothing if it was not asked for.
    pub fn into_spans(self) -> Vec<Span> {
        self.0.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_kept_when_asked_for_and_up_to_a_bound() {
        let mut recorder = Recorder::new(true);
        for _ in 0..MAX_REPORT_SPANS + 5 {
            let begin = recorder.now();
            recorder.received(begin, PeId(3), SpanItem::Token);
        }
        let spans = recorder.into_spans();
        assert_eq!(spans.len(), MAX_REPORT_SPANS);
        assert!(spans.iter().all(|span| span.begin_ns <= span.end_ns));
        assert!(spans.is_sorted_by_key(|span| span.begin_ns));

        let mut recorder = Recorder::new(false);
        let begin = recorder.now();
        recorder.sent(begin, PeId(3), SpanItem::Token);
        assert!(recorder.into_spans().is_empty());
    }
}
