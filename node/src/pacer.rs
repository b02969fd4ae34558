//! Pacing of sends in turns. A connection accepts as much as a socket buffers, and the host's queue
//! behind that grows to the same length; requests for data and acknowledgements then wait behind the
//! host's own data. So in turns a PE gives its connections no more than its link carries. A limit of the
//! rate is kept in the same way.

use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use flitcast_proto::Time;

use crate::system::clock::{self, Alarm};
use crate::tuning::pacer::{AT_ONCE_NS, LATE_NS, LEAST_BYTES};

/// The bucket of tokens that all paced connections of a PE share, each token for a byte.
#[derive(Clone, Debug)]
pub struct Pacer(Arc<Mutex<Bucket>>);

#[derive(Debug)]
struct Bucket {
    ns_per_byte: f64,
    tokens: f64,
    at: Time,
    /// A single alarm: a PE is one task.
    alarm: Alarm,
}

impl Pacer {
    /// Creates a full bucket, refilled at the rate of a link.
    pub fn new(ns_per_byte: f64) -> io::Result<Pacer> {
        Ok(Pacer(Arc::new(Mutex::new(Bucket {
            ns_per_byte,
            tokens: f64::INFINITY,
            at: clock::now(),
            alarm: Alarm::new()?,
        }))))
    }

    /// Returns the inverse of the rate.
    pub fn ns_per_byte(&self) -> f64 {
        self.0.lock().expect("nobody panics with it").ns_per_byte
    }

    /// Waits until some of `bytes` may be sent at once; returns their number.
    pub fn poll_take(&self, cx: &mut Context<'_>, bytes: usize) -> Poll<io::Result<usize>> {
        let bucket = &mut *self.0.lock().expect("nobody panics with it");
        let now = clock::now();
        let at_once = (AT_ONCE_NS / bucket.ns_per_byte).max(LEAST_BYTES);
        let since = now.0.saturating_sub(bucket.at.0) as f64 / bucket.ns_per_byte;
        bucket.tokens = (bucket.tokens + since).min(at_once + LATE_NS / bucket.ns_per_byte);
        bucket.at = now;
        let wanted = (bytes as f64).min(at_once);
        let lacks = wanted - bucket.tokens;
        if lacks > 0.0 {
            let lacks_ns = (lacks * bucket.ns_per_byte).ceil() as u64;
            let until = Time(now.0.saturating_add(lacks_ns));
            ready!(bucket.alarm.poll_until(cx, until))?;
        }
        Poll::Ready(Ok(wanted as usize))
    }

    /// Subtracts sent bytes.
    pub fn took(&self, bytes: usize) {
        let bucket = &mut *self.0.lock().expect("nobody panics with it");
        bucket.tokens -= bytes as f64;
    }
}
