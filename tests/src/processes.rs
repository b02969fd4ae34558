//! Processes, found through `/proc`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

/// Variable that marks a run's processes. The coordinator gets it from the test and passes it on
/// with its environment.
pub const MARK_VARIABLE: &str = "FLITCAST_TEST_RUN";

/// Time within which a process or file must appear or disappear.
const SOON: Duration = Duration::from_secs(30);

/// Pause between two looks at what is waited for. Without one, the tests that wait would take the
/// processors from the programs that they wait for.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A process of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// Name of the program, by which `pkill` finds it.
    pub name: String,
    pub arguments: Vec<String>,
}

impl Process {
    /// Returns the PE of a `flitcast node --pe I`.
    pub fn pe(&self) -> Option<u32> {
        let node = self.arguments.iter().position(|word| word == "node")?;
        match &self.arguments[node + 1..] {
            [flag, index, ..] if flag == "--pe" => index.parse().ok(),
            _ => None,
        }
    }

    /// Returns whether the process is a supervisor between a PE and its command.
    pub fn is_leash(&self) -> bool {
        self.arguments.iter().any(|word| word == "leash")
    }

    /// Returns whether its working directory is the folder or below it.
    pub fn is_in(&self, folder: &Path) -> bool {
        let directory = fs::read_link(format!("/proc/{}/cwd", self.pid));
        directory.is_ok_and(|directory| directory.starts_with(folder))
    }

    /// Returns a process that has not ended.
    pub fn find(pid: i32) -> Option<Process> {
        examine(pid, Path::new(&format!("/proc/{pid}")))
    }

    /// Returns whether a process exists and has not ended. Its files and their locks end with its last thread,
    /// which may not be the first one.
    pub fn is_alive(pid: i32) -> bool {
        any_thread(pid, |state| !matches!(state, 'Z' | 'X'))
    }

    /// Sends a signal; the process may have ended.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid).expect("process ids are above 0");
        let _ = kill_process(pid, signal);
    }

    /// Stops the process, and waits until no thread of it runs: a signal only requests that.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        until("every thread is stopped", || {
            !any_thread(self.pid, |state| matches!(state, 'R' | 'S' | 'D'))
        });
    }
}

/// Returns whether a thread of a process is in such a state, as `/proc/PID/stat` names it.
fn any_thread(pid: i32, is_in: impl Fn(char) -> bool) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let state = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    let mut states = threads.into_iter().flatten().flatten().filter_map(state);
    states.any(is_in)
}

/// Returns the processes with a run's mark, except those that have ended and only wait for their
/// parent.
pub fn marked(mark: &str) -> Vec<Process> {
    let assignment = format!("{MARK_VARIABLE}={mark}").into_bytes();
    let all = fs::read_dir("/proc").expect("/proc is there");
    let mut processes: Vec<Process> = all
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // A process that cannot be read has just ended, or belongs to another user.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let mut variables = environment.split(|&byte| byte == 0);
            let is_marked = variables.any(|variable| variable == assignment);
            is_marked.then(|| examine(pid, &entry.path())).flatten()
        })
        .collect();
    processes.sort_by_key(|process| process.pid);
    processes
}

fn examine(pid: i32, directory: &Path) -> Option<Process> {
    let line = fs::read(directory.join("cmdline")).ok()?;
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The fields after the name, which is in parentheses and may contain any character.
    let (before, behind) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = behind.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    if matches!(state, "Z" | "X") {
        return None;
    }
    let words = line.split(|&byte| byte == 0);
    let words = words.map(|word| String::from_utf8_lossy(word).into_owned());
    Some(Process {
        pid,
        parent: parent.parse().ok()?,
        name: name.to_owned(),
        arguments: words.collect(),
    })
}

#[track_caller]
pub fn process_of(all: Vec<Process>, pe: u32) -> Process {
    let found = all.iter().find(|process| process.pe() == Some(pe));
    found.unwrap_or_else(|| panic!("no P{pe}: {all:?}")).clone()
}

/// Returns the memory that a process has allocated now, in KiB.
#[track_caller]
pub fn memory_kib(pid: u32) -> u64 {
    status_kib(pid, "RssAnon:").expect("it lives")
}

/// Returns the peak of the memory that a process has allocated, in KiB; `None` once it has ended.
pub fn peak_memory_kib(pid: u32) -> Option<u64> {
    // The kernel decides how much of the program's file is resident, by the state of its page cache.
    Some(status_kib(pid, "VmHWM:")?.saturating_sub(status_kib(pid, "RssFile:")?))
}

/// Returns a figure of `/proc/PID/status` in KiB; `None` once the process has ended.
fn status_kib(pid: u32, figure: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    line?.split_whitespace().next()?.parse().ok()
}

/// Returns the processor time of all threads of a process.
#[track_caller]
pub fn processor_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let of_one = |task: io::Result<fs::DirEntry>| {
        // A thread may have just ended.
        let schedstat = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(of_one).sum())
}

/// Returns the number of a process's descriptors.
#[track_caller]
pub fn descriptors(pid: u32) -> usize {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
    all.count()
}

/// Waits until `look` returns a value.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}

/// Waits until a process listens, and returns the address.
#[track_caller]
pub fn listener_of(pid: i32) -> SocketAddr {
    eventually("the process listens", || {
        let sockets = sockets_of(pid);
        let table = fs::read_to_string("/proc/net/tcp").expect("Linux has it");
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            const LISTENS: &str = "0A";
            let is_it = fields[3] == LISTENS && sockets.iter().any(|inode| inode == fields[9]);
            is_it.then(|| address(fields[1]))
        })
    })
}

/// Returns the inodes of a process's sockets.
fn sockets_of(pid: i32) -> Vec<String> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let inode = |link: std::path::PathBuf| {
        let inode = link.to_str()?.strip_prefix("socket:[")?;
        Some(inode.strip_suffix(']')?.to_owned())
    };
    links.filter_map(inode).collect()
}

/// Parses an address like `0100007F:B0EB`.
fn address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').expect("an address has a port");
    let hex = |digits| u32::from_str_radix(digits, 16).expect("it is hexadecimal");
    let ip = Ipv4Addr::from(hex(ip).to_ne_bytes());
    SocketAddr::new(ip.into(), hex(port) as u16)
}
