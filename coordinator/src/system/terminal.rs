//! The terminal that a command writes to.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// Its rows and columns, as it says them: zero where it does not know. `None` if it is no
/// terminal.
pub fn size(out: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(out).ok()?;
    Some((size.ws_row.into(), size.ws_col.into()))
}
