//! The bytes of outgoing messages.

use std::collections::BTreeMap;
use std::ops::Range;

use flitcast_proto::ops::parts::FlitInterleaver;
use flitcast_proto::{MessageId, PeId};

use crate::payload::{PayloadError, Source};

/// The bytes of a message that this PE sends, from an offset on.
pub(super) struct Reader {
    pub(super) at: u64,
    /// Payload of a full flit.
    pub(super) flit_bytes: u32,
    pub(super) source: Source,
    /// For a part: the flits of the message that belong to each tree, and the index of this tree.
    pub(super) turns: Option<(FlitInterleaver, usize)>,
}

impl Reader {
    /// Reads these bytes of a flit.
    pub(super) async fn read(
        &mut self,
        range: Range<u64>,
        waited_ns: &mut u64,
    ) -> Result<&[u8], PayloadError> {
        while self.at < range.start {
            let skipped = (range.start - self.at).min(self.flit_bytes.into());
            self.next(skipped, waited_ns).await?;
        }
        self.next(range.end - range.start, waited_ns).await
    }

    /// Reads the next flit of this length; for a part, skips the flits of other trees.
    async fn next(&mut self, len: u64, waited_ns: &mut u64) -> Result<&[u8], PayloadError> {
        let flit_bytes = self.flit_bytes;
        if let Some((turns, lane)) = &mut self.turns {
            while turns.next().is_some_and(|turn| turn != *lane) {
                self.source.next(flit_bytes as usize, waited_ns).await?;
            }
        }
        self.at += len;
        self.source.next(len as usize, waited_ns).await
    }
}

/// Removes the reader of a message that has sent to this neighbour, or else to another, up to this
/// offset, or to an earlier one.
pub(super) fn begun_at(
    sources: &mut BTreeMap<(MessageId, PeId), Reader>,
    message: MessageId,
    to: PeId,
    at: u64,
) -> Option<Reader> {
    let all = sources.range((message, PeId(0))..=(message, PeId(u32::MAX)));
    let fitting = all.filter(|(_, reader)| reader.at <= at);
    let nearest = fitting.max_by_key(|((_, last), reader)| (reader.at, *last == to));
    let key = nearest.map(|(key, _)| *key)?;
    sources.remove(&key)
}
