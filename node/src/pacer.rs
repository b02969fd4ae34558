//! Pacing of what goes out in turns. A connection takes what a socket holds, and the host's queue
//! behind that grows to as much; calls and acknowledgements then wait behind the host's own data. So
//! in turns a PE hands its connections no more than its link takes away.

use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use flitcast_proto::Time;

use crate::system::clock::{self, Alarm};

/// At least so much goes at once: two segments of TCP in frames of the usual 1500 bytes, since
/// receivers acknowledge every second one.
const LEAST_BYTES: f64 = 2.0 * 1448.0;

/// What goes at once otherwise is what the link takes away in this time: as many wake-ups as a
/// machine has no trouble with.
const AT_ONCE_NS: f64 = 1_000_000.0;

/// By so much a busy machine's alarms are late, and may be made up for.
const LATE_NS: f64 = 250_000.0;

/// The bucket of tokens that all paced connections of a PE share, each token for a byte.
#[derive(Clone, Debug)]
pub struct Pacer(Arc<Mutex<Bucket>>);

#[derive(Debug)]
struct Bucket {
    ns_per_byte: f64,
    tokens: f64,
    at: Time,
    /// One for all: a PE is one task.
    alarm: Alarm,
}

impl Pacer {
    /// A full bucket, refilled at the rate of a link.
    ///
    /// # Errors
    ///
    /// The system has no timer left.
    pub fn new(ns_per_byte: f64) -> io::Result<Pacer> {
        Ok(Pacer(Arc::new(Mutex::new(Bucket {
            ns_per_byte,
            tokens: f64::INFINITY,
            at: clock::now(),
            alarm: Alarm::new()?,
        }))))
    }

    /// Waits until as many of `bytes` may go as go at once; how many.
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

    /// So many bytes have gone.
    pub fn took(&self, bytes: usize) {
        let bucket = &mut *self.0.lock().expect("nobody panics with it");
        bucket.tokens -= bytes as f64;
    }
}
