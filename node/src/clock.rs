//! The monotonic clock, and an alarm on it that is exact to microseconds (the
//! runtime's own timers tick in milliseconds).

use std::io;
use std::os::fd::OwnedFd;

use flitcast_proto::Time;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// CLOCK_MONOTONIC: all processes of a host read the same.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// One alarm, set anew for each wait.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// An alarm that is not set.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // What is unsound is a descriptor that changes under the registration; an
        // `OwnedFd` does not.
        #[expect(deprecated)]
        let timer = AsyncFd::new(timer)?;
        Ok(Alarm { timer })
    }

    /// Returns at `at`; at once if that has passed. Never, for `None`.
    pub async fn wait(&mut self, at: Option<Time>) -> io::Result<()> {
        let Some(Time(at)) = at else {
            return std::future::pending().await;
        };
        if at <= now().0 {
            return Ok(());
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let expiry = Timespec {
            tv_sec: (at / 1_000_000_000) as i64,
            tv_nsec: (at % 1_000_000_000) as i64,
        };
        let spec = Itimerspec {
            it_interval: zero,
            it_value: expiry,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
        loop {
            let mut ready = self.timer.readable().await?;
            if at <= now().0 {
                ready.clear_ready();
                return Ok(());
            }
            // A wait that was given up earlier had left the alarm ringing.
            ready.clear_ready();
        }
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
}
