//! The limit of file descriptors of this process: its own needs come first, and the rest is for
//! unauthenticated clients.

use std::io;
use std::os::fd::AsFd;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::limits::{FEWEST_GREETINGS, GREETINGS};

/// Raises the soft limit to `wanted` if it is lower and the hard limit allows it; returns the new
/// limit. It is not raised further, because child processes inherit it, among them a user's commands,
/// and some take their limit for the number of descriptors that they have to close.
pub fn raised_to(wanted: u64) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < wanted) {
        limit.current = Some(limit.maximum.map_or(wanted, |hard| hard.min(wanted)));
        // If the call fails, the limit is unchanged, and is read below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Makes processes that are started from here inherit this descriptor.
pub fn hand_down(descriptor: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// Returns the maximum number of unauthenticated clients if this process needs `needs` descriptors for
/// everything else.
pub fn places(needs: u64) -> usize {
    left(raised_to(needs + GREETINGS as u64), needs)
}

fn left(have: u64, needs: u64) -> usize {
    let left = have.saturating_sub(needs).min(GREETINGS as u64);
    FEWEST_GREETINGS.max(left as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_gets_what_is_left() {
        assert_eq!(left(u64::MAX, 200), GREETINGS);
        assert_eq!(left(868, 200), 668);
        assert_eq!(left(1024, 1022), FEWEST_GREETINGS);
        assert_eq!(left(60, 200), FEWEST_GREETINGS);
    }
}
