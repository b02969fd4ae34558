//! The bytes of outgoing messages.

use std::collections::BTreeMap;
use std::ops::Range;

use flitcast_proto::items::Message;
use flitcast_proto::ops::parts::FlitInterleaver;
use flitcast_proto::round::Piece;
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

/// The readers of the messages that this PE sends.
#[derive(Default)]
pub(super) struct Readers {
    /// Whether each receiver has its own reader, because several receive at once.
    by_receiver: bool,
    /// The outgoing message, its first receiver and its bytes.
    current: Option<(Message, PeId, Reader)>,
    /// Messages whose next part has yet to be sent.
    waiting: BTreeMap<(MessageId, PeId), Reader>,
}

impl Readers {
    pub(super) fn new(by_receiver: bool) -> Readers {
        Readers {
            by_receiver,
            ..Readers::default()
        }
    }

    /// Returns the reader of a piece for a receiver; `open` creates one for a message that begins.
    pub(super) fn turn_to(
        &mut self,
        piece: Piece,
        to: PeId,
        open: impl FnOnce() -> Reader,
    ) -> &mut Reader {
        let message = piece.message;
        let continues = |(of, receiver, _): &mut (Message, PeId, Reader)| {
            *of == message && (*receiver == to || !self.by_receiver)
        };
        let current = self.current.take_if(|it| continues(it));
        let current = current.unwrap_or_else(|| {
            let begun = match self.by_receiver {
                true => {
                    // A message that has more to send to another receiver continues later.
                    let put_by = self.current.take();
                    let put_by = put_by.map(|(of, receiver, reader)| ((of.id, receiver), reader));
                    self.waiting.extend(put_by);
                    self.waiting.remove(&(message.id, to))
                }
                false => begun_at(&mut self.waiting, message.id, to, piece.offset),
            };
            (message, to, begun.unwrap_or_else(open))
        });
        &mut self.current.insert(current).2
    }

    /// Returns the payload that was read last.
    pub(super) fn last(&self) -> Option<&[u8]> {
        let (_, _, reader) = self.current.as_ref()?;
        Some(reader.source.last())
    }

    /// Puts the outgoing message by if it is incomplete, and forgets those that do not continue.
    pub(super) fn put_by(&mut self, continues: impl Fn(MessageId) -> bool) {
        if let Some((message, to, reader)) = self.current.take()
            && reader.at < message.bytes
        {
            self.waiting.insert((message.id, to), reader);
        }
        self.waiting.retain(|(id, _), _| continues(*id));
    }
}

/// Removes the reader of a message that has sent to this neighbour, or else to another, up to this
/// offset, or to an earlier one.
fn begun_at(
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
