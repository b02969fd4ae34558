//! The file in which a running command tells of itself, twice a second: `PID.json` in the
//! user's [`runtime_dir`]. A command that cannot write it runs all the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::NOW;
use crate::runtime_dir::runtime_dir;

/// From one picture to the next: PEs tell as often, unless `--timeouts` says otherwise.
const EVERY: Duration = Duration::from_millis(500);
/// Until the first one.
const SOON: Duration = Duration::from_millis(50);

/// While it lives, the file is written; then it is removed.
#[derive(Debug)]
pub struct Published {
    over: Arc<AtomicBool>,
    /// A thread of its own: a slow disk holds up nobody else. `None` if there is none.
    writer: Option<JoinHandle<()>>,
}

/// From now on, tells what this process conducts.
pub fn publish() -> Published {
    let over = Arc::<AtomicBool>::default();
    let is_over = over.clone();
    let write = move || {
        if let Err(error) = keep_writing(&is_over) {
            tracing::debug!(%error, "nobody can watch this");
        }
    };
    let writer = thread::Builder::new()
        .name("picture".to_owned())
        .spawn(write);
    let writer = writer.map_err(|error| tracing::debug!(%error, "nobody can watch this"));
    Published {
        over,
        writer: writer.ok(),
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            // It has said itself what went wrong.
            let _ = writer.join();
        }
    }
}

fn keep_writing(over: &AtomicBool) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::new(runtime_dir()?);
    let mut pause = SOON;
    loop {
        thread::park_timeout(pause);
        if over.load(Relaxed) {
            return Ok(());
        }
        if let Some(picture) = NOW.picture() {
            file.write(&serde_json::to_vec(&picture)?)?;
            pause = EVERY;
        }
    }
}

/// The file; it goes with its writer.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Where it is written before it is shown.
    part: PathBuf,
}

impl File {
    fn new(directory: PathBuf) -> File {
        let pid = std::process::id();
        File {
            path: directory.join(format!("{pid}.json")),
            part: directory.join(format!(".{pid}.part")),
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        let written = fs::write(&self.part, text);
        let shown = written.and_then(|()| fs::rename(&self.part, &self.path));
        let named = |error: io::Error| {
            let path = self.path.display();
            io::Error::new(error.kind(), format!("cannot write {path}: {error}"))
        };
        shown.map_err(named)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for path in [&self.part, &self.path] {
            // One of them is not there, or both.
            let _ = fs::remove_file(path);
        }
    }
}

/// When a process started, in the kernel's ticks since it booted; `None` if there is no such
/// process, or none any more.
pub fn process_start(pid: u32) -> Option<u64> {
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
        let own = process_start(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0), "{own:?}");
        assert_eq!(process_start(std::process::id()), own);
        assert_eq!(process_start(u32::MAX), None);
    }

    #[test]
    fn a_file_goes_with_its_writer() {
        let place = tempfile::tempdir().unwrap();
        let file = File::new(place.path().to_owned());
        for text in ["{}", "[]"] {
            file.write(text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        drop(file);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
