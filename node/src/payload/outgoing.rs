//! Outgoing messages, each of one version: a reading returns what was measured, or fails.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::content::Content;
use super::entry::Present;
use super::error::PayloadError;
use super::inode::Inode;
use super::measured::Measured;
use super::scan::{FoundEntry, Walk};

/// A measured message. A reading fails if the files are no longer in the state measured.
#[derive(Clone, Debug)]
pub struct Outgoing {
    content: Content,
    /// Whether entries have all attributes that an archive keeps.
    archive: bool,
    /// The measurement of the message.
    pub measured: Measured,
    /// The open file, and its inode, of a message that is one file and kept open. Another file may
    /// then be renamed over it.
    file: Option<(Arc<File>, Inode)>,
    /// The entries whose content is not sent, by their place in the message; empty if all is sent.
    pub(super) present: Arc<[Option<Present>]>,
}

impl Outgoing {
    /// Creates the message with this content and its measurement.
    pub fn new(content: Content, archive: bool, measured: Measured) -> Outgoing {
        Outgoing {
            content,
            archive,
            measured,
            file: None,
            present: Arc::default(),
        }
    }

    /// Measures `content`, as an archive if `archive`, and calls `on_progress` for each entry.
    pub fn measure(
        content: Content,
        archive: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Outgoing, PayloadError> {
        let measured = content.measure_with(archive, on_progress)?;
        Ok(Outgoing::new(content, archive, measured))
    }

    /// Opens the file and keeps it open, if the message is one file.
    pub fn hold_open(&mut self) -> Result<(), PayloadError> {
        if let Content::Entry(path) = &self.content
            && path.is_file()
        {
            let mut walk = self.walk();
            if let Some(found) = walk.next() {
                let mut found = found?;
                self.check(0, &found)?;
                self.file = Some((walk.open(&mut found)?, found.inode));
            }
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.content.path()
    }

    pub(super) fn walk(&self) -> Walk {
        let walk = match &self.file {
            Some((file, inode)) => Walk::of_open(self.path(), file.clone(), *inode),
            None => Walk::of(&self.content),
        };
        walk.archiving(self.archive)
    }

    /// Returns an error if the entry at index `place` of the message was measured differently.
    pub(super) fn check(&self, place: usize, found: &FoundEntry) -> Result<(), PayloadError> {
        match self.measured.entries.get(place) {
            Some(state) if *state == found.state() as u32 => Ok(()),
            _ => Err(PayloadError::Changed(found.source.clone())),
        }
    }
}
