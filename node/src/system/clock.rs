//! The monotonic clock, and an alarm on it that is exact to microseconds (the
//! runtime's own timers tick in milliseconds).

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use flitcast_proto::Time;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Returns CLOCK_MONOTONIC, which is the same for all processes of a host.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Returns that clock in milliseconds, up to some of them late; a call costs next to nothing.
pub fn coarse_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Returns the processor time of this thread, in nanoseconds.
pub fn of_thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// An alarm for all times that a task waits for.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
    /// The time at which it rings, or rang.
    set_to: Time,
}

impl Alarm {
    /// Creates an alarm that is not set.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // A descriptor that changes while it is registered would be unsound; an `OwnedFd` does not
        // change.
        #[expect(deprecated)]
        let timer = AsyncFd::new(timer)?;
        let set_to = Time(0);
        Ok(Alarm { timer, set_to })
    }

    /// Waits until `at`; returns at once if that has passed, and never for `None`.
    pub async fn wait(&mut self, at: Option<Time>) -> io::Result<()> {
        match at {
            Some(at) => std::future::poll_fn(|cx| self.poll_until(cx, at)).await,
            None => std::future::pending().await,
        }
    }

    /// Completes from `at` on. A task may wait for several times: the alarm wakes it at the earliest,
    /// or earlier, and is set to the next one at the next poll.
    pub fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<io::Result<()>> {
        loop {
            let now = now();
            if at <= now {
                return Poll::Ready(Ok(()));
            }
            if self.set_to <= now || at < self.set_to {
                self.set(at)?;
            }
            // The alarm may still ring for an earlier time that was not polled.
            ready!(self.timer.poll_read_ready(cx))?.clear_ready();
        }
    }

    fn set(&mut self, at: Time) -> io::Result<()> {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let expiry = Timespec {
            tv_sec: (at.0 / 1_000_000_000) as i64,
            tv_nsec: (at.0 % 1_000_000_000) as i64,
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: expiry,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
        self.set_to = at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_never_rings_early_and_can_be_set_again() {
        let mut alarm = Alarm::new().unwrap();
        for wait in [0, 1_000, 200_000, 3_000_000] {
            let at = Time(now().0 + wait);
            alarm.wait(Some(at)).await.unwrap();
            assert!(now() >= at);
        }
    }

    #[tokio::test]
    async fn one_alarm_serves_several_waits_of_a_task() {
        let mut alarm = Alarm::new().unwrap();
        let start = now().0;
        let mut waits = [3_000_000, 1_000_000, 2_000_000].map(|wait| Some(Time(start + wait)));
        let mut rung = Vec::new();
        std::future::poll_fn(|cx| {
            for (place, wait) in waits.iter_mut().enumerate() {
                if let Some(at) = *wait
                    && alarm.poll_until(cx, at).is_ready()
                {
                    assert!(now() >= at);
                    rung.push(place);
                    *wait = None;
                }
            }
            match rung.len() {
                3 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
        rung.sort_unstable();
        assert_eq!(rung, [0, 1, 2]);
    }
}
