//! The lock of a task: one command at a time works on a shard. A process that starts a command, or
//! removes its folder, first takes the lock, and ends all remaining processes of an earlier command.
//!
//! A command inherits the lock, so it is held until all its processes have ended or closed it; and all
//! processes that it starts have its mark in the environment. Either finds processes that outlive their
//! supervisors, if all of these were killed at once.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::limits::{DYING, LOCK, POLL};
use crate::system::lock::{Lock, try_lock};
use crate::system::processes::{FileId, Process, named};

/// The name of the lock in a task's folder.
pub const FILE: &str = "lock";

/// Takes the lock of a task, after all processes of an earlier command have ended. Fails if a process
/// is left and cannot be ended, or if there is no such folder.
pub fn locked(task: &Path) -> Result<File, String> {
    let lock = taken(task, Instant::now() + LOCK)?;
    end_marked(task)?;
    Ok(lock)
}

/// Ends all commands of a working folder.
pub fn ended_all(work: &Path) -> Result<(), String> {
    let deadline = Instant::now() + LOCK;
    let of_pes = std::fs::read_dir(work.join("tasks"));
    for of_pe in of_pes.into_iter().flatten().flatten() {
        release(&of_pe.path(), deadline)?;
    }
    end_marked(work)
}

/// Ends all commands on the shards of a PE, whose tasks are in this folder.
pub fn ended_below(of_pe: &Path) -> Result<(), String> {
    release(of_pe, Instant::now() + LOCK)?;
    end_marked(of_pe)
}

/// Takes the lock of each task of a PE and releases it at once, because no new command begins there.
/// The folder is that of one task, or has a folder for each shard.
fn release(of_pe: &Path, deadline: Instant) -> Result<(), String> {
    // A shard may be named like the lock.
    let is_task = |task: &Path| task.join(FILE).is_file();
    if is_task(of_pe) {
        return taken(of_pe, deadline).map(drop);
    }
    for of_shard in std::fs::read_dir(of_pe).into_iter().flatten().flatten() {
        let task = of_shard.path();
        if is_task(&task) {
            taken(&task, deadline)?;
        }
    }
    Ok(())
}

/// Waits until supervisors that are alive have ended their commands, and then ends all processes that
/// hold the lock.
fn taken(task: &Path, deadline: Instant) -> Result<File, String> {
    let path = task.join(FILE);
    let lock = File::create(&path);
    let lock = lock.map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    let is_taken = || try_lock(&lock, Lock::Exclusive).is_ok();
    if until(deadline, is_taken) {
        return Ok(lock);
    }
    let holders = || Process::with_open(FileId::of(&lock));
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

/// Ends all processes with the mark of a task in this folder.
fn end_marked(folder: &Path) -> Result<(), String> {
    let others = || Process::others().filter(|other| other.is_marked(folder));
    let marked = || others().collect::<Vec<_>>();
    let all_ended = within(DYING, || {
        let left = marked();
        left.iter().for_each(Process::kill);
        left.is_empty()
    });
    match all_ended {
        true => Ok(()),
        false => Err(format!(
            "an earlier command in `{}` survives SIGKILL: {}",
            folder.display(),
            named(&marked())
        )),
    }
}

/// Waits until a condition holds; returns whether it does in time.
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
