//! Shaped links, the driver's side: who waits for what, on the real clock. When a
//! frame departs and arrives is worked out in `flitcast_proto::shape`.
//!
//! The delay line is the kernel's: a frame goes into the socket as soon as the send
//! port takes it, behind a stamp that says when it departs, and the reader does not
//! show it before it has arrived. Nobody sleeps for a latency with bytes in hand, and
//! since every wait is for a time that was worked out, none makes the next one late.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use flitcast_proto::Time;
use flitcast_proto::cost::Link;
use flitcast_proto::shape::{MAX_AHEAD_NS, ReceivePort, SendPort, lands};
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::edge::EdgeFrame;

use crate::system::clock::{self, Alarm};

/// What the shaped links of a PE share.
#[derive(Clone, Debug)]
pub struct Ports(Arc<Mutex<Both>>);

#[derive(Debug)]
struct Both {
    send: SendPort,
    receive: ReceivePort,
    /// One for all: a PE is one task.
    alarm: Alarm,
}

impl Ports {
    /// Ports that are free.
    pub fn new() -> io::Result<Ports> {
        Ok(Ports(Arc::new(Mutex::new(Both {
            send: SendPort::default(),
            receive: ReceivePort::default(),
            alarm: Alarm::new()?,
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Both> {
        // Links are made in tasks of their own and must be free to move between
        // threads; there is one, so nobody ever waits here.
        self.0.lock().expect("nobody panics with it")
    }
}

/// What a link is to be like, and how far that is with the frame coming in.
#[derive(Debug)]
pub struct Shape {
    sends: Link,
    receives: Link,
    ports: Ports,
    incoming: Option<Incoming>,
}

/// The frame behind a stamp that was read.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    departs: Time,
    /// Known from when it has the receive port.
    arrives: Option<Time>,
}

impl Shape {
    /// A link that is like `sends` in the direction away from this PE.
    pub fn new(sends: Link, receives: Link, ports: Ports) -> Shape {
        Shape {
            sends,
            receives,
            ports,
            incoming: None,
        }
    }

    /// When a control frame of so many bytes departs, which waits for nothing: what the
    /// stamp ahead of it says.
    pub fn slip_in(&mut self, bytes: usize) -> Time {
        let send = &mut self.ports.lock().send;
        send.slip_in(clock::now(), bytes, &self.sends)
    }

    /// Waits until the send port takes a frame of so many bytes; when it departs.
    pub fn poll_depart(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<io::Result<Time>> {
        let mut ports = self.ports.lock();
        let free = ports.send.may_hand_over_at();
        ready!(ports.alarm.poll_until(cx, free))?;
        let departs = ports.send.depart(clock::now(), bytes, &self.sends);
        Poll::Ready(Ok(departs))
    }

    /// Whether the next frame is a stamp.
    pub fn wants_stamp(&self) -> bool {
        self.incoming.is_none()
    }

    /// Takes the stamp.
    pub fn stamped(&mut self, stamp: &[u8]) -> Result<(), WireError> {
        let Ok(EdgeFrame::Departed { at }) = EdgeFrame::parse(stamp) else {
            let what = "on a shaped link, a frame without its time of departure";
            return Err(WireError::Malformed(what.to_owned()));
        };
        if at.0 > clock::now().0.saturating_add(MAX_AHEAD_NS) {
            let what = "a frame that departs hours from now: its clock is another host's";
            return Err(WireError::Malformed(what.to_owned()));
        }
        self.incoming = Some(Incoming {
            departs: at,
            arrives: None,
        });
        Ok(())
    }

    /// Waits until the frame behind the stamp, of so many bytes, which is so many flits, one or
    /// none, has arrived.
    pub fn poll_arrival(
        &mut self,
        cx: &mut Context<'_>,
        flits: u64,
        bytes: usize,
    ) -> Poll<io::Result<()>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(Ok(()));
        };
        let mut ports = self.ports.lock();
        let arrives = match incoming.arrives {
            Some(arrives) => arrives,
            None => {
                // It takes the port when it comes in. If it did now, a frame on a
                // shorter link would have to wait for one that is still far away.
                let at = lands(incoming.departs, &self.receives);
                ready!(ports.alarm.poll_until(cx, at))?;
                let arrives = ports
                    .receive
                    .arrive(incoming.departs, flits, bytes, &self.receives);
                *incoming.arrives.insert(arrives)
            }
        };
        ports.alarm.poll_until(cx, arrives)
    }

    /// The frame was taken.
    pub fn consumed(&mut self) {
        self.incoming = None;
    }

    /// Of `bytes` that are there, the frame behind the stamp first, how many can have
    /// landed by now: that frame, and what its link carries in the time since.
    pub fn landed(&self, bytes: u64, frame_bytes: u64) -> u64 {
        let landed = self.incoming.map(|it| lands(it.departs, &self.receives).0);
        let Some(since) = landed.and_then(|at| clock::now().0.checked_sub(at)) else {
            return 0;
        };
        // An unlimited link carries everything: the quotient is infinite, and so a u64's
        // greatest value.
        let carried = (since as f64 / self.receives.ns_per_byte) as u64;
        bytes.min(frame_bytes.saturating_add(carried))
    }
}

#[cfg(test)]
mod tests;
