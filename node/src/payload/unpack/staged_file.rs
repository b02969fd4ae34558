//! A regular file while its content arrives.

use super::super::entry::Entry;
use super::super::holes::NewFile;

pub(super) struct StagedFile {
    pub(super) file: NewFile,
    pub(super) entry: Entry,
    /// End of the content that the disk has begun to write.
    pub(super) written_back: u64,
    /// End of the current part of data, and the parts behind it.
    pub(super) end: u64,
    pub(super) rest: Box<dyn Iterator<Item = (u64, u64)> + Send>,
}

impl StagedFile {
    /// Returns a file none of whose content has arrived.
    pub(super) fn of(file: NewFile, entry: Entry) -> StagedFile {
        StagedFile {
            file,
            written_back: 0,
            end: 0,
            rest: Box::new(entry.data()),
            entry,
        }
    }

    /// Advances to the next part of data if the current one is complete; returns whether there is
    /// none.
    pub(super) fn is_done(&mut self) -> bool {
        if self.file.bytes() < self.end {
            return false;
        }
        match self.rest.next() {
            Some((at, bytes)) => {
                self.file.skip_to(at);
                self.end = at + bytes;
                false
            }
            None => true,
        }
    }
}
