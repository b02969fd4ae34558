//! The channel between the coordinator and a PE, from either end.

use std::marker::PhantomData;

use bytes::{Buf, BytesMut};
use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::wire::{
    LENGTH_BYTES, MAX_CONTROL_FRAME, WireError, frame_length, max_frame_of_pe,
};
use thiserror::Error;
use tokio_util::codec::{Decoder, Encoder};

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
    Io(#[from] std::io::Error),
    /// The received frame is not a message of the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Codec of frames of the control channel: `In` is received and `Out` is sent.
#[derive(Debug)]
pub struct Codec<In, Out> {
    scratch: Vec<u8>,
    max_frame: usize,
    words: PhantomData<fn(Out) -> In>,
}

impl<In, Out> Default for Codec<In, Out> {
    fn default() -> Self {
        Codec {
            scratch: Vec::new(),
            max_frame: MAX_CONTROL_FRAME,
            words: PhantomData,
        }
    }
}

/// The PE's end.
pub type PeCodec = Codec<ToPe, FromPe>;
/// The coordinator's end.
pub type CoordinatorCodec = Codec<FromPe, ToPe>;

impl CoordinatorCodec {
    /// Limits the length of received frames to the longest report of a PE in a cluster of `pes`.
    pub fn limit_to_cluster(&mut self, pes: usize) {
        self.max_frame = max_frame_of_pe(pes);
    }
}

impl<In: Word, Out> Decoder for Codec<In, Out> {
    type Item = In;
    type Error = ChannelError;

    fn decode(&mut self, from: &mut BytesMut) -> Result<Option<In>, ChannelError> {
        let Some(prefix) = from.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*prefix, self.max_frame)?;
        // The buffer grows with the received bytes, not to the announced length.
        let Some(body) = from[LENGTH_BYTES..].get(..length) else {
            return Ok(None);
        };
        let word = In::parse(body)?;
        from.advance(LENGTH_BYTES + length);
        Ok(Some(word))
    }
}

impl<In, Out: Word> Encoder<Out> for Codec<In, Out> {
    type Error = ChannelError;

    fn encode(&mut self, word: Out, to: &mut BytesMut) -> Result<(), ChannelError> {
        self.scratch.clear();
        word.put(&mut self.scratch);
        to.extend_from_slice(&self.scratch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flitcast_proto::RoundId;

    #[test]
    fn words_come_out_as_they_went_in_however_they_are_cut() {
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
        let mut wire = BytesMut::new();
        let mut coordinator = CoordinatorCodec::default();
        for word in &words {
            coordinator.encode(word.clone(), &mut wire).unwrap();
        }
        let mut pe = PeCodec::default();
        let mut buffer = BytesMut::new();
        let mut read = Vec::new();
        for byte in wire {
            buffer.extend_from_slice(&[byte]);
            read.extend(pe.decode(&mut buffer).unwrap());
        }
        assert_eq!(read, words);
    }

    #[test]
    fn a_long_frame_is_refused_before_it_comes() {
        let mut buffer = BytesMut::from(&u32::MAX.to_be_bytes()[..]);
        let refused = PeCodec::default().decode(&mut buffer).unwrap_err();
        assert!(refused.to_string().contains("4294967295"), "{refused}");
        assert!(buffer.capacity() < 1024);
    }
}
