//! One end of a tree edge, operated by a test: frames with their seals on a plain socket.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use flitcast_proto::wire::seal::{FrameSealer, FrameVerifier, HEAD_BYTES};
use flitcast_proto::wire::{LENGTH_BYTES, edge::EdgeFrame, flit};

use crate::wire_examples;

/// Longer than any frame in a test.
const LONGEST: usize = 2 << 20;

/// Both directions of an edge, from one end.
pub struct Edge {
    pub incoming: Incoming,
    pub outgoing: Outgoing,
}

pub struct Incoming {
    pub stream: TcpStream,
    opener: FrameVerifier,
}

pub struct Outgoing {
    pub stream: TcpStream,
    sealer: FrameSealer,
}

impl Edge {
    /// Creates an edge on which nothing was sent yet.
    #[track_caller]
    pub fn new(stream: TcpStream) -> Edge {
        stream.set_nodelay(true).expect("it can be set");
        Edge {
            outgoing: Outgoing {
                stream: stream.try_clone().expect("it can be"),
                sealer: FrameSealer::default(),
            },
            incoming: Incoming {
                stream,
                opener: FrameVerifier::default(),
            },
        }
    }

    /// Receives the next frame, which must not be a flit.
    #[track_caller]
    pub fn receive(&mut self) -> EdgeFrame {
        let frame = self.incoming.frame().expect("the neighbour speaks");
        EdgeFrame::parse(&frame[LENGTH_BYTES..]).expect("it speaks the protocol")
    }

    #[track_caller]
    pub fn send(&mut self, frame: &EdgeFrame) {
        let sent = self.outgoing.send(&written(frame));
        sent.expect("the neighbour hears");
    }
}

impl Incoming {
    /// Receives the next frame and returns it without its seal: its length and its message.
    pub fn frame(&mut self) -> io::Result<Vec<u8>> {
        let sealed = framed(&read_body(&mut self.stream)?);
        let is_new = self.opener.open(&sealed);
        assert_eq!(is_new, Ok(true), "a PE sends each frame once, and whole");
        Ok(framed(&sealed[HEAD_BYTES..]))
    }
}

impl Outgoing {
    /// Adds the next seal to a frame without sending it.
    pub fn sealed(&mut self, frame: &[u8]) -> Vec<u8> {
        self.sealer.sealed(frame)
    }

    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let sealed = self.sealed(frame);
        self.stream.write_all(&sealed)
    }

    /// Closes the sending direction.
    pub fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

pub fn read_body(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; LENGTH_BYTES];
    stream.read_exact(&mut prefix)?;
    let length = u32::from_be_bytes(prefix) as usize;
    assert!(length <= LONGEST, "a frame of {length} bytes");
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Returns the frame of a body, without a seal.
pub fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// Returns an edge's frame with its length and without a seal.
pub fn written(frame: &EdgeFrame) -> Vec<u8> {
    wire_examples::written(|out| frame.put(out))
}

/// Returns whether a frame with its length and without a seal is a flit.
pub fn is_flit(frame: &[u8]) -> bool {
    flit::is_flit(&frame[LENGTH_BYTES..])
}
