//! Saturating arithmetic with points in time and durations.

use std::time::Duration;

use flitcast_proto::Time;

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time `span` after a point in time.
pub fn after(time: Time, span: Duration) -> Time {
    Time(time.0.saturating_add(ns(span)))
}

/// Returns the time `span` before a point in time; `None` before the origin.
pub fn before(time: Time, span: Duration) -> Option<Time> {
    time.0.checked_sub(ns(span)).map(Time)
}

/// Returns the duration between two points in time; 0 if the second is not later.
pub fn between(earlier: Time, later: Time) -> Duration {
    Duration::from_nanos(later.0.saturating_sub(earlier.0))
}
