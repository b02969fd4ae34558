//! The length of a message and its state. Measuring finds every fault that can be found before a
//! round.

use std::fs::File;
use std::hash::Hasher as _;
use std::sync::Arc;

use flitcast_proto::Unkept;
use flitcast_proto::cost::MadeOf;
use twox_hash::XxHash3_64;

use super::cold::cold_bytes;
use super::content::Content;
use super::entry::Entry;
use super::error::PayloadError;
use super::scan::Walk;

impl Content {
    /// Returns the exact length of the message in bytes, unless a part of it cannot be read or must
    /// not be sent.
    pub fn measure(&self) -> Result<u64, PayloadError> {
        self.measure_with(false, &|| {})
            .map(|measured| measured.bytes)
    }

    /// Measures the message, its state and what it is made of, as an archive if `archive`; calls
    /// `on_progress` for each entry.
    pub(super) fn measure_with(
        &self,
        archive: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Measured, PayloadError> {
        let mut bytes: u64 = 0;
        let mut entries = 0;
        let mut looked_at = Sample::default();
        let (mut states, mut state) = (Vec::new(), XxHash3_64::new());
        let mut walk = Walk::of(self).archiving(archive);
        while let Some(found) = walk.next() {
            let mut found = found?;
            if found.entry.is_file() {
                let is_sampled = looked_at.is_next();
                if is_sampled || !found.is_plain {
                    // This checks that other users' files can be read.
                    let file = walk.open(&mut found)?;
                    if is_sampled {
                        looked_at.look(&file, &found.entry);
                    }
                }
                looked_at.count(&found.entry);
            }
            entries += 1;
            let of_entry = found.state();
            state.write(&of_entry.to_le_bytes());
            // Half of the hash is enough to distinguish two entries at the same place.
            states.push(of_entry as u32);
            bytes = found
                .entry
                .message_bytes()
                .and_then(|more| bytes.checked_add(more))
                .ok_or(PayloadError::TooLong(found.source))?;
            on_progress();
        }
        Ok(Measured {
            bytes,
            made_of: MadeOf {
                entries,
                cold_bytes: looked_at.cold_bytes(),
                ..MadeOf::default()
            },
            left_out: walk.left_out,
            unkept: walk.unkept,
            state: state.finish(),
            entries: states.into(),
        })
    }
}

/// Result of measuring a message before it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Exact length in bytes.
    pub bytes: u64,
    /// Number of entries, and number of bytes that are not in memory.
    pub made_of: MadeOf,
    /// Number of files and folders that are not sent, since they have hidden names of Flitcast.
    pub left_out: u64,
    /// The entries some of whose attributes are not sent.
    pub unkept: Unkept,
    /// A hash of the states of all entries, the inodes included.
    pub state: u64,
    /// The low half of the state of each entry, in the order in which they are sent.
    pub(super) entries: Arc<[u32]>,
}

/// Sample of a message's files, from which the number of bytes that are not in memory is estimated:
/// the first files, and fewer and fewer of the later ones.
#[derive(Default)]
struct Sample {
    files: u64,
    bytes: u64,
    looked_at: u64,
    cold: u64,
}

impl Sample {
    /// Number of first files that are all examined.
    const FIRST: u64 = 64;

    /// Returns whether the next file is examined.
    fn is_next(&self) -> bool {
        let every = (self.files / Self::FIRST).next_power_of_two();
        self.files.is_multiple_of(every)
    }

    fn look(&mut self, file: &File, entry: &Entry) {
        for (at, bytes) in entry.data() {
            self.looked_at += bytes;
            self.cold += cold_bytes(file, at, bytes);
        }
    }

    fn count(&mut self, entry: &Entry) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(entry.content_bytes());
    }

    fn cold_bytes(&self) -> u64 {
        let all = u128::from(self.bytes) * u128::from(self.cold);
        (all / u128::from(self.looked_at.max(1))) as u64
    }
}
