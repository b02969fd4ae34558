//! The file with the state of a running command, rewritten twice a second: `PID.json` in the user's
//! [`runtime_dir`]. A command that cannot write it continues without it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::NOW;
use crate::files::runtime_dir::runtime_dir;

/// Time between two snapshots: the interval at which PEs report, unless `--timeouts` changes it.
const EVERY: Duration = Duration::from_millis(500);
/// Time before the first snapshot.
const SOON: Duration = Duration::from_millis(50);

/// Maximum time to wait for the removal of the file when the command ends. A file that remains
/// belongs to a dead process, and `flitcast watch` ignores it.
const REMOVED: Duration = Duration::from_secs(2);

/// A guard: while it exists, the file is written; dropping it removes the file.
///
/// A separate thread writes, so that a slow disk delays nothing else.
#[derive(Debug)]
pub struct Published {
    /// Channel to the writer; dropping it stops the writer.
    keep_alive: Option<Sender<()>>,
    /// Channel that is closed when the writer has ended.
    writing: Receiver<()>,
}

/// Starts to publish the state of this process.
pub fn publish() -> Published {
    let (keep_alive, until) = mpsc::channel();
    let (writes, writing) = mpsc::channel();
    let write = move || {
        let _writes: Sender<()> = writes;
        if let Err(error) = keep_writing(&until) {
            tracing::debug!(%error, "nobody can watch this");
        }
    };
    let writer = thread::Builder::new()
        .name("picture".to_owned())
        .spawn(write);
    if let Err(error) = writer {
        tracing::debug!(%error, "nobody can watch this");
    }
    Published {
        keep_alive: Some(keep_alive),
        writing,
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.keep_alive = None;
        if self.writing.recv_timeout(REMOVED) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("$XDG_RUNTIME_DIR hangs: the file for `flitcast watch` may stay there");
        }
    }
}

fn keep_writing(until: &Receiver<()>) -> anyhow::Result<()> {
    let file = File::new(runtime_dir()?);
    let mut pause = SOON;
    while until.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        if let Some(picture) = NOW.picture() {
            file.write(&serde_json::to_vec(&picture)?)?;
            pause = EVERY;
        }
    }
    Ok(())
}

/// The file; dropping it removes the file.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Temporary path that is renamed to `path` after each write.
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
            // Either file may be missing.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_removed_with_its_writer() {
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
