//! The channel between the coordinator and a PE, from either end.

use std::io;
use std::marker::PhantomData;

use bytes::{Buf, BytesMut};
use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::wire::{
    LENGTH_BYTES, MAX_CONTROL_FRAME, WireError, frame_length, max_frame_of_pe,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A message that the channel carries.
pub trait Word: Sized {
    /// Appends the message as a frame.
    fn put(&self, out: &mut Vec<u8>);
    /// Parses the message from a frame's body.
    fn parse(body: &[u8]) -> Result<Self, WireError>;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            fn put(&self, out: &mut Vec<u8>) {
                <$type>::put(self, out)
            }
            fn parse(body: &[u8]) -> Result<Self, WireError> {
                <$type>::parse(body)
            }
        }
    };
}
word!(FromPe);
word!(ToPe);

/// A failure of the channel.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The received frame is not a message of the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Number of bytes for which a reader has room at each read.
const READ_BYTES: usize = 8 << 10;

/// The receiving end of a channel, over `stream`.
#[derive(Debug)]
pub struct WordReader<In, R> {
    stream: R,
    buffer: BytesMut,
    max_frame: usize,
    words: PhantomData<fn() -> In>,
}

impl<In: Word, R: AsyncRead + Unpin> WordReader<In, R> {
    /// Creates a reader of a stream.
    pub fn new(stream: R) -> WordReader<In, R> {
        WordReader {
            stream,
            buffer: BytesMut::new(),
            max_frame: MAX_CONTROL_FRAME,
            words: PhantomData,
        }
    }

    /// Limits the length of received frames to the longest report of a PE in a cluster of `pes`.
    pub fn limit_to_cluster(&mut self, pes: usize) {
        self.max_frame = max_frame_of_pe(pes);
    }

    /// Waits for the next message; returns `None` if the stream ends before it. No byte is lost if
    /// the future is dropped.
    pub async fn next(&mut self) -> Option<Result<In, ChannelError>> {
        self.read().await.transpose()
    }

    async fn read(&mut self) -> Result<Option<In>, ChannelError> {
        loop {
            if let Some(word) = self.buffered()? {
                return Ok(Some(word));
            }
            self.buffer.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(io::Error::other("bytes remaining on stream").into()),
                };
            }
        }
    }

    /// Takes the first message of the buffer, if all of it is there.
    fn buffered(&mut self) -> Result<Option<In>, ChannelError> {
        let Some(prefix) = self.buffer.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*prefix, self.max_frame)?;
        // The buffer grows with the received bytes, not to the announced length.
        let Some(body) = self.buffer[LENGTH_BYTES..].get(..length) else {
            return Ok(None);
        };
        let word = In::parse(body)?;
        self.buffer.advance(LENGTH_BYTES + length);
        Ok(Some(word))
    }
}

/// The sending end of a channel, over `stream`.
#[derive(Debug)]
pub struct WordWriter<W> {
    stream: W,
    scratch: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> WordWriter<W> {
    /// Creates a writer to a stream.
    pub fn new(stream: W) -> WordWriter<W> {
        let scratch = Vec::new();
        WordWriter { stream, scratch }
    }

    /// Sends a message.
    pub async fn send(&mut self, word: impl Word) -> Result<(), ChannelError> {
        self.scratch.clear();
        word.put(&mut self.scratch);
        self.stream.write_all(&self.scratch).await?;
        Ok(self.stream.flush().await?)
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::RoundId;

    use super::*;

    #[tokio::test]
    async fn words_come_out_as_they_went_in_however_they_are_cut() {
        let words = [
            ToPe::Trigger {
                round: RoundId(1),
                at_ns: 0,
            },
            ToPe::Abort {
                round: RoundId(2),
                reason: "x".repeat(300),
            },
            ToPe::Stop { over: true },
        ];
        let (near, far) = tokio::io::duplex(1);
        let sent = words.clone();
        let sending = tokio::spawn(async move {
            let mut writer = WordWriter::new(near);
            for word in sent {
                writer.send(word).await.unwrap();
            }
        });
        let mut reader = WordReader::<ToPe, _>::new(far);
        for word in words {
            assert_eq!(reader.next().await.unwrap().unwrap(), word);
        }
        sending.await.unwrap();
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn a_long_frame_is_refused_before_it_comes() {
        let begin = u32::MAX.to_be_bytes();
        let mut reader = WordReader::<ToPe, _>::new(&begin[..]);
        let refused = reader.next().await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("4294967295"), "{refused}");
        assert!(reader.buffer.capacity() <= READ_BYTES);
    }

    #[tokio::test]
    async fn a_frame_that_ends_early_is_an_error() {
        let begin = [0, 0, 0, 9, 1];
        let mut reader = WordReader::<ToPe, _>::new(&begin[..]);
        assert!(reader.next().await.unwrap().is_err());
    }
}
