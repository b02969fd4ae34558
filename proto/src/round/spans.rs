//! A recorder of the activity of a PE's ports in a round, for charts.

use crate::spans::{Port, Span, SpanItem};
use crate::{PeId, Time};

/// The spans of one PE in one round, up to a maximum number.
#[derive(Debug)]
pub(super) struct Recorder {
    spans: Vec<Span>,
    most: usize,
}

impl Recorder {
    pub(super) fn new(most: usize) -> Recorder {
        let spans = Vec::new();
        Recorder { spans, most }
    }

    #[inline]
    pub(super) fn keep(
        &mut self,
        port: Port,
        peer: PeId,
        item: impl Into<SpanItem>,
        [begin, end]: [Time; 2],
    ) {
        if self.spans.len() < self.most {
            self.spans.push(Span {
                port,
                peer,
                item: item.into(),
                begin_ns: begin.0,
                end_ns: end.0,
            });
        }
    }

    pub(super) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}
