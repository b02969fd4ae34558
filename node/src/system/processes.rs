//! The other processes of this host according to `/proc`: those that a command has left, and those that
//! have a file open. Processes that cannot be read belong to another user and are skipped.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// The environment variable of a command and of all processes that it starts: the folder of its task,
/// which is unique.
pub const MARK: &str = "FLITCAST_TASK";

/// A process that has not ended. It is displayed as its number and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pid: Pid,
    parent: i32,
    name: String,
}

impl Process {
    pub fn others() -> impl Iterator<Item = Process> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let others = pids
            .filter_map(Pid::from_raw)
            .filter(|pid| *pid != getpid());
        others.filter_map(Process::of)
    }

    pub fn children() -> Vec<Process> {
        let own = getpid().as_raw_nonzero().get();
        Process::others().filter(|it| it.parent == own).collect()
    }

    /// Returns the other processes that have a file open.
    pub fn with_open(file: Option<FileId>) -> Vec<Process> {
        let has_it = |other: &Process| file.is_some_and(|file| other.has_open(file));
        Process::others().filter(has_it).collect()
    }

    fn of(pid: Pid) -> Option<Process> {
        let stat = fs::read_to_string(folder(pid).join("stat")).ok()?;
        // The name is in parentheses, and may contain any character.
        let (before, behind) = stat.rsplit_once(')')?;
        let mut fields = behind.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?);
        let (_, name) = before.split_once('(')?;
        (!matches!(state, "Z" | "X")).then(|| Process {
            pid,
            parent: parent.parse().unwrap_or_default(),
            name: name.to_owned(),
        })
    }

    /// Returns whether the process belongs to a command whose task's folder is this one, or below it.
    pub fn is_marked(&self, folder: &Path) -> bool {
        let environment = fs::read(self.folder().join("environ")).unwrap_or_default();
        let variables = environment.split(|byte| *byte == 0);
        let values = variables.filter_map(|variable| {
            let value = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
            Some(Path::new(OsStr::from_bytes(value)))
        });
        values.into_iter().any(|value| value.starts_with(folder))
    }

    pub fn has_open(&self, file: FileId) -> bool {
        let open = fs::read_dir(self.folder().join("fd"));
        let mut open = open.into_iter().flatten().flatten();
        open.any(|fd| {
            let found = fs::metadata(fd.path());
            found.is_ok_and(|found| FileId(found.dev(), found.ino()) == file)
        })
    }

    /// Sends SIGKILL to the process, which may be gone already, or belong to another user.
    pub fn kill(&self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }

    fn folder(&self) -> PathBuf {
        folder(self.pid)
    }
}

/// Descendants of this process that were stopped with it.
#[derive(Debug)]
pub struct Stopped(Vec<Process>);

/// Stops all descendants of this process, each parent before its children, and then this process.
pub fn stop_with_descendants() -> Stopped {
    let others: Vec<Process> = Process::others().collect();
    let mut below = Vec::new();
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        let children = others.iter().filter(|other| other.parent == parent);
        for child in children {
            let _ = kill_process(child.pid, Signal::STOP);
            parents.push(child.pid.as_raw_nonzero().get());
            below.push(child.clone());
        }
    }
    let _ = kill_process(getpid(), Signal::STOP);
    Stopped(below)
}

impl Stopped {
    /// Continues all of them, each child before its parent.
    pub fn continue_all(self) {
        for process in self.0.iter().rev() {
            let _ = kill_process(process.pid, Signal::CONT);
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (`{}`)", self.pid.as_raw_nonzero(), self.name)
    }
}

/// The identity of a file without its name; both ends of a pipe have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// Returns the identity of an open file.
    pub fn of(file: impl AsFd) -> Option<FileId> {
        let found = fstat(file).ok()?;
        Some(FileId(found.st_dev, found.st_ino))
    }
}

/// Names some of the processes, and the number of the others.
pub fn named(processes: &[Process]) -> String {
    const NAMED: usize = 3;
    let names = processes.iter().take(NAMED).map(Process::to_string);
    let mut text = names.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = processes.len().checked_sub(NAMED) {
        text += &format!(" and {more} more");
    }
    text
}

fn folder(pid: Pid) -> PathBuf {
    Path::new("/proc").join(pid.as_raw_nonzero().to_string())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_known_by_what_it_was_given() {
        let mut child = Command::new("cat")
            .env(MARK, "/some/work/tasks/p3")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it can be started");
        let pipe = FileId::of(child.stdin.as_ref().expect("it is piped")).expect("it is open");
        let other = fs::File::open("/proc/self/exe").expect("it is there");
        let other = FileId::of(other).expect("it is open");
        let pid = Pid::from_child(&child);
        let found = Process::children().into_iter().find(|it| it.pid == pid);
        let found = found.expect("it waits for its input");
        // Before it becomes `cat`, the process is a copy of this test, with its environment.
        while !found.is_marked(Path::new("/some/work/tasks/p3")) {
            std::thread::yield_now();
        }
        assert!(found.is_marked(Path::new("/some/work")));
        assert!(!found.is_marked(Path::new("/some/work/tasks/p")));
        assert!(found.has_open(pipe) && !found.has_open(other));
        let name = format!("process {} (`", child.id());
        assert!(found.to_string().starts_with(&name), "{found}");
        assert!(Process::others().any(|it| it.pid == pid));
        let four = vec![found.clone(); 5];
        assert!(named(&four).ends_with("and 2 more"), "{}", named(&four));
        assert!(!named(&four[..3]).contains("more"));
        found.kill();
        child.wait().expect("it is our child");
        assert!(!Process::children().contains(&found));
    }
}
