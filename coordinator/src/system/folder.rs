//! What this user may do in a folder.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access};

/// Sees that files can be made there.
///
/// # Errors
///
/// They cannot, for this reason.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}
