//! Child processes, adopted processes, and this process's relation to its parent.

use std::io;
use std::process::Child;

use flitcast_proto::wire::control::End;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, waitid,
};

/// This program, even if its path has another file now.
pub const PROGRAM: &str = "/proc/self/exe";

/// A child process that was not reaped, so its number is unique.
#[derive(Clone, Copy, Debug)]
pub struct Started(Pid);

impl Started {
    /// Returns the handle of this child.
    pub fn of(child: &Child) -> Started {
        Started(Pid::from_child(child))
    }

    /// Returns the handle of the child with this number, which has not been reaped.
    pub fn numbered(number: u32) -> Option<Started> {
        Some(Started(Pid::from_raw(number.try_into().ok()?)?))
    }

    /// Waits until the process has ended, without reaping it.
    pub fn wait(self) {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.0), ended), Err(Errno::INTR)) {}
    }

    /// Returns whether the process has ended, without reaping it.
    pub fn has_ended(self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.0), look), Ok(None))
    }

    /// Returns whether a signal has stopped the process and none has continued it.
    pub fn is_stopped(self) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(self.0), look), Ok(Some(_)))
    }

    pub fn reap(self) -> io::Result<Option<End>> {
        let status = waitid(WaitId::Pid(self.0), WaitIdOptions::EXITED)?;
        Ok(status.and_then(|status| {
            let killed = || status.terminating_signal().map(End::Signalled);
            status.exit_status().map(End::Exited).or_else(killed)
        }))
    }

    /// Sends SIGKILL to the process, which may be gone already.
    pub fn kill(self) {
        let _ = kill_process(self.0, Signal::KILL);
    }

    /// Sends SIGTERM to its process group.
    pub fn end_group(self) {
        let _ = kill_process_group(self.0, Signal::TERM);
    }

    /// Sends SIGKILL to its process group.
    pub fn kill_group(self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }

    /// Returns whether a child of this process is left in its group; reaps those that have ended.
    pub fn has_group_left(self) -> bool {
        is_left(|| WaitId::Pgid(Some(self.0)))
    }
}

/// Returns whether any child of this process is left; reaps those that have ended.
pub fn are_left() -> bool {
    is_left(|| WaitId::All)
}

fn is_left(id: impl Fn() -> WaitId<'static>) -> bool {
    loop {
        match waitid(id(), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Makes descendants whose parents end children of this process from now on.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills this process when its parent ends, from now on. The setting survives `exec`.
pub fn be_killed_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Has the system send this process SIGCONT when its parent ends. A stopped process continues then,
/// and can end as well.
///
/// The system itself continues stopped orphans only if every thread has stopped already, and not if
/// the process that adopts them is in their session, as the first process of a container can be.
pub fn continue_when_parent_ends() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::CONT))?)
}

/// Returns the number of this process's parent; `None` if the parent is not visible.
pub fn parent() -> Option<i32> {
    getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// Sets the process name that the system shows to users. A failure is ignored.
pub fn be_called(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}
