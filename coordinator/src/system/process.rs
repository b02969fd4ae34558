//! Processes of this machine, by their numbers, and this one among them.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

/// A process, as long as that lives; afterwards another one may have its number.
#[derive(Clone, Copy, Debug)]
pub struct Process(Pid);

impl Process {
    /// The one with this number; `None` if no process can have that.
    pub fn numbered(number: u32) -> Option<Process> {
        let number = i32::try_from(number).ok()?;
        Pid::from_raw(number).map(Process)
    }

    /// Sends it a signal. It may have ended just now.
    pub fn signal(self, signal: Signal) {
        let _ = kill_process(self.0, signal);
    }
}

/// The number of the user who runs this process.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Leaves the terminal: its signals are for others from now on.
///
/// # Errors
///
/// This process leads a group.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// When a process started, in the kernel's ticks since it booted; `None` if there is no such
/// process, or none any more.
pub fn started_at(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // Behind the name, which is in parentheses and may hold anything.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_started_once() {
        let own = started_at(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0), "{own:?}");
        assert_eq!(started_at(std::process::id()), own);
        assert_eq!(started_at(u32::MAX), None);
    }
}
