//! The entries below a folder.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::TaskError;

/// The entries below a folder, each folder before its own entries.
pub(super) struct Walk {
    /// The last returned entry, if it is a folder.
    folder: Option<PathBuf>,
    ahead: Vec<PathBuf>,
}

impl Walk {
    pub fn below(folder: &Path) -> Walk {
        Walk {
            folder: Some(folder.to_owned()),
            ahead: Vec::new(),
        }
    }

    /// Leaves out the entries below the last returned folder.
    pub fn skip_folder(&mut self) {
        self.folder = None;
    }

    fn step(&mut self) -> Result<Option<(PathBuf, Metadata)>, TaskError> {
        if let Some(folder) = self.folder.take() {
            let entries = fs::read_dir(&folder).and_then(|entries| {
                let paths = entries.map(|entry| Ok(entry?.path()));
                paths.collect::<io::Result<Vec<_>>>()
            });
            self.ahead
                .extend(entries.map_err(TaskError::io("look at", &folder))?);
        }
        let Some(path) = self.ahead.pop() else {
            return Ok(None);
        };
        // A link is not followed.
        let found = fs::symlink_metadata(&path).map_err(TaskError::io("look at", &path))?;
        self.folder = found.is_dir().then(|| path.clone());
        Ok(Some((path, found)))
    }
}

impl Iterator for Walk {
    type Item = Result<(PathBuf, Metadata), TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
