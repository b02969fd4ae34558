//! The place where an incoming message is put together and becomes visible.

use std::path::{Path, PathBuf};

use flitcast_proto::Durability;

/// The place of an incoming message, and the rules for what is there.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The path at which the complete message becomes visible. Its parent directory must exist, and
    /// each path has one message at a time.
    pub destination: PathBuf,
    /// Whether an existing entry is replaced. An entry that the same job has delivered always is.
    pub replace: bool,
    pub run: u64,
    /// The job that the run belongs to.
    pub job: u64,
    /// Whether an incomplete message is kept, so that a later run of the job can continue it.
    pub is_kept: bool,
    /// When the message is durable.
    pub durability: Durability,
    /// Whether files that the replaced entry has are not sent, so that the version of a message is its
    /// listing, and not what was sent.
    pub is_update: bool,
    /// Whether entries may have the attributes of an archive.
    pub is_archive: bool,
    /// Whether the place is in a folder that is lent to a coordinator. Then no file gets setuid and setgid
    /// bits or capabilities, by which a program has more rights than its user.
    pub is_lent: bool,
}

/// Returns the folder that an entry is in; `None` for the root.
pub fn above(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    })
}
