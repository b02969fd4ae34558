//! A file with a PE's state, which shows whether the PE is alive without a connection or a shell.
//! The thread that does all of a PE's work writes the file every second, so an old file belongs to
//! a PE that is stuck, stopped or gone.

use std::cell::RefCell;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval};

use crate::limits::{ABANDONED_HEALTH_FILE, HEALTH, HEALTH_FILE_BYTES};
use crate::system::regular;

/// The current activity of a PE in a few words; all tasks on its thread share it.
#[derive(Clone, Debug, Default)]
pub struct Activity(Rc<RefCell<String>>);

impl Activity {
    pub fn set(&self, activity: impl Into<String>) {
        *self.0.borrow_mut() = activity.into();
    }
}

/// Writes the activity to a file, again and again. Ends only if the first attempt fails, for
/// example because the path is wrong. A later failure is logged once, and the PE continues without
/// a current file.
pub async fn tell(path: PathBuf, state: Activity) -> io::Result<()> {
    // Other PEs may have the same name with another extension.
    let mut part = path.clone().into_os_string();
    part.push(".part");
    let write = || {
        std::fs::write(&part, format!("{}\n", state.0.borrow()))?;
        std::fs::rename(&part, &path)
    };
    let mut tick = interval(HEALTH);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    write()?;
    let mut has_warned = false;
    loop {
        tick.tick().await;
        if let Err(error) = write()
            && !has_warned
        {
            has_warned = true;
            let path = path.display();
            tracing::warn!(%path, %error, "cannot write --health, and goes on without it");
        }
    }
}

/// A reason why a PE is not healthy according to its file.
#[derive(Debug, Error)]
pub enum HealthError {
    #[error("{}: {}; is this the file of `flitcast node --join .. --health FILE`?", .0.display(), .1)]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file was last updated this time ago, with this content.
    #[error("{}: not updated for {} s, so the PE is stuck, stopped or gone; its last state: {}", .0.display(), .1.as_secs(), .2)]
    Old(PathBuf, Duration, String),
}

/// Returns the activity of the PE that writes this file, if it is not old.
pub fn check(path: &Path) -> Result<String, HealthError> {
    let unreadable = |error| HealthError::Unreadable(path.to_owned(), error);
    let file = regular::open_file(path).map_err(unreadable)?;
    let written = file.metadata().and_then(|metadata| metadata.modified());
    // A clock that was set back makes the file appear young.
    let age = SystemTime::now().duration_since(written.map_err(unreadable)?);
    let age = age.unwrap_or_default();
    let mut text = String::new();
    let read = file.take(HEALTH_FILE_BYTES).read_to_string(&mut text);
    read.map_err(unreadable)?;
    let last = text.trim_end().to_owned();
    match age > ABANDONED_HEALTH_FILE {
        true => Err(HealthError::Old(path.to_owned(), age, last)),
        false => Ok(last),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_old_file_means_that_the_pe_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("health");
        let none = check(&path).unwrap_err().to_string();
        assert!(none.contains("No such file"), "{none}");
        std::fs::write(&path, "P3 plays\n").unwrap();
        assert_eq!(check(&path).unwrap(), "P3 plays");
        let file = File::options().write(true).open(&path).unwrap();
        let then = SystemTime::now() - Duration::from_secs(60);
        file.set_modified(then).unwrap();
        let old = check(&path).unwrap_err().to_string();
        assert!(old.contains("not updated for 6"), "{old}");
        assert!(old.ends_with("its last state: P3 plays"), "{old}");
    }
}
