//! The check of a message against the version that an earlier run has measured or delivered.

use std::path::{Path, PathBuf};

use flitcast_proto::wire::control::Version;
use flitcast_proto::wire::flit::Digest;
use twox_hash::XxHash3_128;

use super::content::Content;
use super::deal::dealt_whole;
use super::error::PayloadError;
use super::measured::Measured;
use super::outgoing::Outgoing;
use super::pack::Packer;
use super::selection::Selection;
use crate::limits::DISK_BLOCK_BYTES;

/// Returns an error if a message is not the version that an earlier run has measured or delivered.
/// The content is read only if length and state cannot decide; `on_progress` is called for each block.
pub fn check_version(
    message: &Outgoing,
    known: &Version,
    on_progress: &dyn Fn(),
) -> Result<(), PayloadError> {
    let Measured { bytes, state, .. } = message.measured;
    let why = match known.digest {
        _ if (bytes, state) == (known.bytes, known.state) => return Ok(()),
        _ if bytes != known.bytes => {
            let was = known.bytes;
            format!("changed since the run began: the message had {was} bytes, and has {bytes} now")
        }
        // A time or an inode differs.
        None => "changed since the run began, or was written anew".to_owned(),
        Some(digest) if digest == prefix_digest(message, u64::MAX, on_progress)? => return Ok(()),
        Some(_) => "changed since the run began: the content is not what was delivered".to_owned(),
    };
    let path = message.path().to_owned();
    Err(PayloadError::OtherVersion(path, known.message, why))
}

/// Returns the error of a message that was known to be at `path` and no longer exists.
pub fn removed(path: PathBuf, known: &Version) -> PayloadError {
    let why = "it was there when the run began, and is gone".to_owned();
    PayloadError::OtherVersion(path, known.message, why)
}

/// Reads the entry at `path` as a message, an `archive` or not, dealt from a folder if it `is_dealt`, and
/// returns its length and digest; `None` if it cannot be sent. Calls `on_progress` for each block.
pub fn version_at(
    path: &Path,
    (archive, is_dealt): (bool, bool),
    on_progress: &dyn Fn(),
) -> Option<(u64, Digest)> {
    if path.symlink_metadata().ok()?.is_symlink() {
        return None;
    }
    let content = match is_dealt {
        true => match dealt_whole(path.to_owned(), &Selection::default(), false).ok()? {
            Content::Dealt { files, .. } if files.is_empty() => return None,
            dealt => dealt,
        },
        false => Content::Entry(path.to_owned()),
    };
    let message = Outgoing::measure(content, archive, on_progress).ok()?;
    let digest = prefix_digest(&message, u64::MAX, on_progress).ok()?;
    Some((message.measured.bytes, digest))
}

/// Reads the first `bytes` bytes of a message, or all of a shorter one, and returns their XXH3-128;
/// calls `on_progress` for each block.
pub fn prefix_digest(
    message: &Outgoing,
    bytes: u64,
    on_progress: &dyn Fn(),
) -> Result<Digest, PayloadError> {
    let mut packer = Packer::of(message)?;
    let (mut hash, mut block) = (XxHash3_128::new(), vec![0; DISK_BLOCK_BYTES]);
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
        let filled = packer.fill(&mut block[..most])?;
        if filled == 0 {
            break;
        }
        hash.write(&block[..filled]);
        left -= filled as u64;
        on_progress();
    }
    Ok(hash.finish_128().to_be_bytes())
}
