//! Standard output.

use std::io::{self, IsTerminal as _, StdoutLock, Write as _};

use crate::text::stderr;

/// Locks standard output. On a terminal, all text for stderr is written first: the result would otherwise
/// follow a progress bar that is about to be erased.
pub fn lock() -> StdoutLock<'static> {
    if io::stderr().is_terminal() {
        stderr::finish();
    }
    io::stdout().lock()
}

/// Treats output as printed if its reader has closed the pipe, as `| head` does when it has enough.
///
/// # Errors
///
/// Returns an error if the text could not be printed for any other reason.
pub fn unless_closed(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints a result; a pipe closed by its reader is not an error.
pub fn print(text: &[u8]) -> io::Result<()> {
    let mut out = lock();
    unless_closed(out.write_all(text).and_then(|()| out.flush()))
}
