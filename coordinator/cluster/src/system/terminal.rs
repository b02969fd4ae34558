//! The terminal that a command writes to.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// Returns the rows and columns of a terminal, zero if it does not know them; `None` if the output is
/// not a terminal.
pub fn size(out: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(out).ok()?;
    Some((size.ws_row.into(), size.ws_col.into()))
}

/// Returns the columns of a terminal; `None` if the output is not a terminal, or if it has no size.
pub fn columns(out: impl AsFd) -> Option<usize> {
    let (_, columns) = size(out)?;
    Some(columns).filter(|&columns| columns > 0)
}
