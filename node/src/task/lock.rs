//! One command at a time works on a shard. Who begins one, or removes its folder, takes the
//! task's lock first, and sees to it that nothing of an earlier command is left.
//!
//! A command inherits the lock, so it is held until the last process has ended that has not
//! closed it; and all that it starts has its mark in the environment. So what has outlived its
//! supervisors, because all were killed at once, is found by either.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::limits::{DYING, LOCK, POLL};
use crate::system::lock::{Lock, try_lock};
use crate::system::processes::{FileId, Process, named};

/// The name of the lock in a task's folder.
pub const FILE: &str = "lock";

/// Takes the lock of a task, when nothing of an earlier command is left.
///
/// # Errors
///
/// Something is left and cannot be ended, or there is no such folder.
pub fn locked(task: &Path) -> Result<File, String> {
    let lock = taken(task, Instant::now() + LOCK)?;
    end_marked(task)?;
    Ok(lock)
}

/// The same of all tasks of a working folder, whose locks are given back at once: nobody begins
/// anything there any more.
///
/// # Errors
///
/// As above.
pub fn ended_all(work: &Path) -> Result<(), String> {
    let deadline = Instant::now() + LOCK;
    let tasks = std::fs::read_dir(work.join("tasks"));
    for task in tasks.into_iter().flatten().flatten() {
        if task.path().join(FILE).exists() {
            taken(&task.path(), deadline)?;
        }
    }
    end_marked(work)
}

/// Waits until supervisors that still live have ended what they watch over, and then ends
/// whoever holds the lock.
fn taken(task: &Path, deadline: Instant) -> Result<File, String> {
    let path = task.join(FILE);
    let lock = File::create(&path);
    let lock = lock.map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    let is_taken = || try_lock(&lock, Lock::Exclusive).is_ok();
    if until(deadline, is_taken) {
        return Ok(lock);
    }
    let holders = || -> Vec<Process> {
        let lock = FileId::of(&lock);
        let holds = |other: &Process| lock.is_some_and(|lock| other.has_open(lock));
        Process::others().filter(holds).collect()
    };
    let ended = within(DYING, || {
        holders().iter().for_each(Process::kill);
        is_taken()
    });
    match ended {
        true => Ok(lock),
        false => Err(format!(
            "an earlier command still holds `{}`: {}",
            path.display(),
            named(&holders())
        )),
    }
}

/// Ends whatever has the mark of a task in this folder.
fn end_marked(folder: &Path) -> Result<(), String> {
    let marked = || -> Vec<Process> {
        let all = Process::others();
        all.filter(|other| other.is_marked(folder)).collect()
    };
    let gone = within(DYING, || {
        let left = marked();
        left.iter().for_each(Process::kill);
        left.is_empty()
    });
    match gone {
        true => Ok(()),
        false => Err(format!(
            "an earlier command in `{}` survives SIGKILL: {}",
            folder.display(),
            named(&marked())
        )),
    }
}

/// Waits until something holds; whether it does in time.
pub fn within(limit: Duration, holds: impl Fn() -> bool) -> bool {
    until(Instant::now() + limit, holds)
}

fn until(deadline: Instant, holds: impl Fn() -> bool) -> bool {
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}
