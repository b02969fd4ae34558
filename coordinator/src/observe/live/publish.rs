//! The file in which a running command tells of itself, twice a second: `PID.json` in the
//! user's [`runtime_dir`]. A command that cannot write it runs all the same.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::NOW;
use crate::files::runtime_dir::runtime_dir;

/// From one picture to the next: PEs tell as often, unless `--timeouts` says otherwise.
const EVERY: Duration = Duration::from_millis(500);
/// Until the first one.
const SOON: Duration = Duration::from_millis(50);

/// For the file to be removed when the command ends: far longer than a disk takes that does not
/// hang. What then still lies there is a dead process's, and shown to nobody.
const REMOVED: Duration = Duration::from_secs(2);

/// While it lives, the file is written; then it is removed.
///
/// A thread of its own does that, so that a slow disk holds up nobody else.
#[derive(Debug)]
pub struct Published {
    /// Dropped, it tells the writer that it is over.
    going_on: Option<Sender<()>>,
    /// Closed when the writer has ended.
    writing: Receiver<()>,
}

/// From now on, tells what this process conducts.
pub fn publish() -> Published {
    let (going_on, until) = mpsc::channel();
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
        going_on: Some(going_on),
        writing,
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.going_on = None;
        if self.writing.recv_timeout(REMOVED) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("$XDG_RUNTIME_DIR hangs: the file for `flitcast watch` may stay there");
        }
    }
}

fn keep_writing(until: &Receiver<()>) -> Result<(), Box<dyn std::error::Error>> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
