//! Processes that this one has started, those that it adopts, and what it is to its own parent.

use std::io;
use std::process::Child;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, waitid,
};

/// This very program, whatever has taken its place at its path by now.
pub const PROGRAM: &str = "/proc/self/exe";

/// A process that was started here and was not reaped: its number is nobody else's.
#[derive(Clone, Copy, Debug)]
pub struct Started(Pid);

/// How a process ended: one of the two.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// What it exited with.
    pub exit_status: Option<i32>,
    /// What killed it.
    pub signal: Option<i32>,
}

impl Started {
    /// This one.
    pub fn of(child: &Child) -> Started {
        Started(Pid::from_child(child))
    }

    /// Waits until it has ended, and does not reap it.
    pub fn wait(self) {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.0), ended), Err(Errno::INTR)) {}
    }

    /// Whether it has ended; it is not reaped.
    pub fn has_ended(self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.0), look), Ok(None))
    }

    /// Reaps it, which has ended.
    ///
    /// # Errors
    ///
    /// It was reaped before.
    pub fn reap(self) -> io::Result<Option<Ending>> {
        let status = waitid(WaitId::Pid(self.0), WaitIdOptions::EXITED)?;
        Ok(status.map(|status| Ending {
            exit_status: status.exit_status(),
            signal: status.terminating_signal(),
        }))
    }

    /// Sends it SIGKILL; it may be gone already.
    pub fn kill(self) {
        let _ = kill_process(self.0, Signal::KILL);
    }

    /// Asks all of its group to end.
    pub fn end_group(self) {
        let _ = kill_process_group(self.0, Signal::TERM);
    }

    /// Sends SIGKILL to all of its group.
    pub fn kill_group(self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }

    /// Whether a child of this process is left in its group; reaps those that have ended.
    pub fn has_group_left(self) -> bool {
        is_left(|| WaitId::Pgid(Some(self.0)))
    }
}

/// Whether any child of this process is left; reaps those that have ended.
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

/// From now on, descendants whose parents end become children of this process.
///
/// # Errors
///
/// The kernel is too old for it.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// From now on, this process is killed when its parent ends. What it becomes by `exec` keeps that.
///
/// # Errors
///
/// The kernel refuses.
pub fn be_killed_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// From now on, this process is sent SIGHUP when its parent ends.
///
/// # Errors
///
/// The kernel refuses.
pub fn be_told_of_parents_end() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::HUP))?)
}

/// The number of this process's parent; `None` if that is outside of what it can see.
pub fn parent() -> Option<i32> {
    getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// What the system calls this process from now on. That is for people: where it cannot be
/// changed, all goes on.
pub fn be_called(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}
