//! Files in place of standard input and output: a message has a known length before its first byte is
//! sent, and becomes visible as a whole.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::tell;
use tempfile::TempDir;

/// The argument that stands for standard input or output.
pub const STANDARD: &str = "-";

/// The folder of the files, until the process ends.
static FOLDER: Mutex<Option<TempDir>> = Mutex::new(None);

/// Returns a path in the folder, which is created if necessary.
fn path(name: &str) -> io::Result<PathBuf> {
    let mut folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = match &mut *folder {
        Some(folder) => folder,
        none => none.insert(tempfile::Builder::new().prefix("flitcast-").tempdir()?),
    };
    Ok(folder.path().join(name))
}

/// Returns a file with the content of standard input: the file that it is, if nothing of it has been read,
/// or a copy.
pub fn input() -> io::Result<PathBuf> {
    let mut input = io::stdin().lock();
    let named = format!("/proc/self/fd/{}", input.as_raw_fd());
    let found = std::fs::read_link(named).ok();
    let is_whole = tell(&input).is_ok_and(|position| position == 0);
    if let Some(file) = found.filter(|path| is_whole && path.is_file()) {
        return Ok(file);
    }
    let path = path("input")?;
    io::copy(&mut input, &mut File::create(&path)?)?;
    Ok(path)
}

/// Returns the path of an output whose messages are written to standard output.
pub fn output_folder() -> io::Result<PathBuf> {
    path("output")
}

/// Returns whether the messages below an output are to be written to standard output.
pub fn is_output(output: &Path) -> bool {
    let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder.as_ref();
    folder.is_some_and(|folder| output == folder.path().join("output"))
}

/// Removes all files.
pub fn clear() {
    let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A folder of the system's temporary files that stays is removed by the system.
    let _ = folder.map(TempDir::close);
}

/// Keeps all files, and returns their folder if there are any.
pub fn keep() -> Option<PathBuf> {
    let folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take();
    folder.map(TempDir::keep)
}
