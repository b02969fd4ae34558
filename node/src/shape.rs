//! Shaped links on the real clock: the waits of a PE. `flitcast_proto::shape` computes the departure
//! and the arrival of each frame.
//!
//! The kernel serves as the delay line: a frame is written to the socket as soon as the send port
//! accepts it, behind a stamp with its departure time, and the reader does not return it before its
//! arrival. No task sleeps for a latency with bytes in hand, and since every wait is for a computed
//! time, none delays the next one.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use flitcast_proto::Time;
use flitcast_proto::cost::Link;
use flitcast_proto::shape::{MAX_AHEAD_NS, ReceivePort, SendPort, lands};
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::edge::EdgeFrame;

use crate::system::clock::{self, Alarm};

/// The ports that the shaped links of a PE share.
#[derive(Clone, Debug)]
pub struct Ports(Arc<Mutex<Both>>);

#[derive(Debug)]
struct Both {
    send: SendPort,
    receive: ReceivePort,
    /// A single alarm: a PE is one task.
    alarm: Alarm,
}

impl Ports {
    pub fn new() -> io::Result<Ports> {
        Ok(Ports(Arc::new(Mutex::new(Both {
            send: SendPort::default(),
            receive: ReceivePort::default(),
            alarm: Alarm::new()?,
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Both> {
        // Links are created in separate tasks, so they must be able to move between threads; there is
        // only one thread, so this never waits.
        self.0.lock().expect("nobody panics with it")
    }
}

/// The shape of a link, and the state of the incoming frame.
#[derive(Debug)]
pub struct Shape {
    sends: Link,
    receives: Link,
    ports: Ports,
    incoming: Option<Incoming>,
}

/// The frame after a stamp that was read.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    departs: Time,
    /// Whether it joins the packet of the frame before.
    joins: bool,
    /// Known once the frame has the receive port.
    arrives: Option<Time>,
}

impl Shape {
    /// Creates a shape in which `sends` is the direction away from this PE.
    pub fn new(sends: Link, receives: Link, ports: Ports) -> Shape {
        Shape {
            sends,
            receives,
            ports,
            incoming: None,
        }
    }

    /// Returns the departure time of a control frame of this length, which waits for nothing, for its
    /// stamp.
    pub fn slip_in(&mut self, bytes: usize) -> Time {
        let send = &mut self.ports.lock().send;
        send.slip_in(clock::now(), bytes, &self.sends)
    }

    /// Waits until the send port accepts a flit's frame of this length, which may join the packet of
    /// the last one; returns its departure time.
    pub fn poll_depart(
        &mut self,
        cx: &mut Context<'_>,
        joins: bool,
        bytes: usize,
    ) -> Poll<io::Result<Time>> {
        let mut ports = self.ports.lock();
        let free = ports.send.may_hand_over_at();
        ready!(ports.alarm.poll_until(cx, free))?;
        let packets = u64::from(!joins);
        let departs = ports.send.depart(clock::now(), packets, bytes, &self.sends);
        Poll::Ready(Ok(departs))
    }

    pub fn expects_stamp(&self) -> bool {
        self.incoming.is_none()
    }

    pub fn stamped(&mut self, stamp: &[u8]) -> Result<(), WireError> {
        let Ok(EdgeFrame::Departed { at, joins }) = EdgeFrame::parse(stamp) else {
            let what = "on a shaped link, a frame without its time of departure";
            return Err(WireError::Malformed(what.to_owned()));
        };
        if at.0 > clock::now().0.saturating_add(MAX_AHEAD_NS) {
            let what = "a frame that departs hours from now: its clock is another host's";
            return Err(WireError::Malformed(what.to_owned()));
        }
        self.incoming = Some(Incoming {
            departs: at,
            joins,
            arrives: None,
        });
        Ok(())
    }

    /// Waits until the frame after the stamp has arrived.
    pub fn poll_arrival(
        &mut self,
        cx: &mut Context<'_>,
        is_flit: bool,
        bytes: usize,
    ) -> Poll<io::Result<()>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(Ok(()));
        };
        let mut ports = self.ports.lock();
        let arrives = match incoming.arrives {
            Some(arrives) => arrives,
            None => {
                // The frame takes the port on arrival. If it did now, a frame on a shorter link would
                // have to wait for one that is still far away.
                let at = lands(incoming.departs, &self.receives);
                ready!(ports.alarm.poll_until(cx, at))?;
                let packets = u64::from(!incoming.joins);
                let receive = &mut ports.receive;
                let arrives = match is_flit {
                    true => receive.arrive(incoming.departs, packets, bytes, &self.receives),
                    // A few bytes occupy no port.
                    false => at,
                };
                *incoming.arrives.insert(arrives)
            }
        };
        ports.alarm.poll_until(cx, arrives)
    }

    pub fn consumed(&mut self) {
        self.incoming = None;
    }

    /// Returns how many of the `bytes` in the kernel can have arrived by now: the frame after the
    /// stamp, and as much as its link carries in the time since.
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
