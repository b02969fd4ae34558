//! Processes of this machine, including this one, by number; and this process's user, permissions and random
//! numbers.

use std::path::Path;
use std::{fs, io};

use rustix::fs::{Access, access};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use rustix::rand::{GetRandomFlags, getrandom};

/// A process, as long as it lives; afterwards another one may have its number.
#[derive(Clone, Copy, Debug)]
pub struct Process(Pid);

impl Process {
    /// Returns the process with this number; `None` if no process can have it.
    pub fn numbered(number: u32) -> Option<Process> {
        let number = i32::try_from(number).ok()?;
        Pid::from_raw(number).map(Process)
    }

    /// Sends a signal to the process, which may just have ended.
    pub fn signal(self, signal: Signal) {
        let _ = kill_process(self.0, signal);
    }
}

/// Returns the number of the user who runs this process.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Detaches from the terminal, so that its signals do not reach this process, which must not lead a group.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Returns when a process started, in the kernel's ticks since it booted; `None` if there is no
/// such process.
pub fn started_at(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // After the name, which is in parentheses and may contain any characters.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Checks that files can be created in a folder.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

pub fn drawn<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
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
