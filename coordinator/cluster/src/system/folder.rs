//! The user's permissions in a folder.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access};

/// Checks that files can be created in a folder.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}
