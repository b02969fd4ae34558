//! The channel between the coordinator and a PE, from either end.

use std::io;

use bytes::{Buf, BytesMut};
use flitcast_proto::wire::{
    LENGTH_BYTES, MAX_CONTROL_FRAME, WireError, frame_length, max_frame_of_pe,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

#[derive(Debug, Error)]
pub enum ChannelError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Number of bytes for which a reader has room at each read.
const READ_BYTES: usize = 8 << 10;

/// The receiving end of a channel, over `stream`.
#[derive(Debug)]
pub struct ControlReader<In, R> {
    stream: R,
    buffer: BytesMut,
    max_frame: usize,
    parse: fn(&[u8]) -> Result<In, WireError>,
}

impl<In, R: AsyncRead + Unpin> ControlReader<In, R> {
    /// Creates a reader of a stream; `parse` parses a message from a frame's body.
    pub fn new(stream: R, parse: fn(&[u8]) -> Result<In, WireError>) -> ControlReader<In, R> {
        ControlReader {
            stream,
            buffer: BytesMut::new(),
            max_frame: MAX_CONTROL_FRAME,
            parse,
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
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
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
        let message = (self.parse)(body)?;
        self.buffer.advance(LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

/// The sending end of a channel, over `stream`.
#[derive(Debug)]
pub struct ControlWriter<Out, W> {
    stream: W,
    put: fn(&Out, &mut Vec<u8>),
    scratch: Vec<u8>,
}

impl<Out, W: AsyncWrite + Unpin> ControlWriter<Out, W> {
    /// Creates a writer to a stream; `put` appends a message as a frame.
    pub fn new(stream: W, put: fn(&Out, &mut Vec<u8>)) -> ControlWriter<Out, W> {
        let scratch = Vec::new();
        ControlWriter {
            stream,
            put,
            scratch,
        }
    }

    pub async fn send(&mut self, message: Out) -> Result<(), ChannelError> {
        self.scratch.clear();
        (self.put)(&message, &mut self.scratch);
        self.stream.write_all(&self.scratch).await?;
        Ok(self.stream.flush().await?)
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::RoundId;
    use flitcast_proto::wire::control::ToPe;

    use super::*;

    #[tokio::test]
    async fn messages_are_unchanged_however_the_stream_is_cut() {
        let messages = [
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
        let sent = messages.clone();
        let sending = tokio::spawn(async move {
            let mut writer = ControlWriter::new(near, ToPe::put);
            for message in sent {
                writer.send(message).await.unwrap();
            }
        });
        let mut reader = ControlReader::new(far, ToPe::parse);
        for message in messages {
            assert_eq!(reader.next().await.unwrap().unwrap(), message);
        }
        sending.await.unwrap();
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn a_frame_that_is_long_or_ends_early_is_refused() {
        for (begin, why) in [
            (&u32::MAX.to_be_bytes()[..], "4294967295"),
            (&[0, 0, 0, 9, 1], "bytes remaining"),
        ] {
            let mut reader = ControlReader::new(begin, ToPe::parse);
            let refused = reader.next().await.unwrap().unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
            assert!(reader.buffer.capacity() <= 2 * READ_BYTES, "{why}");
        }
    }
}
