//! How a PE fares, in a file: for who starts it and wants to know whether it lives, without
//! a connection and without a shell. The thread that does all of a PE's work writes it every
//! second, so a file that is old is of a PE that is stuck, stopped or gone.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval};

use crate::limits::HEALTH;

/// A file that is older says that nobody writes it any more: several times what a busy
/// machine makes a PE wait.
const OLD: Duration = Duration::from_secs(5);
/// The longest file that is read: a line.
const LONGEST: u64 = 1000;

/// What a PE does, in a few words, for everybody on its thread to set and to read.
#[derive(Clone, Debug, Default)]
pub struct Activity(Rc<RefCell<String>>);

impl Activity {
    /// From now on.
    pub fn set(&self, words: impl Into<String>) {
        *self.0.borrow_mut() = words.into();
    }
}

/// Writes the state to a file, again and again. Ends only when it cannot write it the first
/// time, and the path is wrong, say. Later it warns, once, and goes on trying: a PE plays its
/// part whether anybody can see that or not.
///
/// # Errors
///
/// The file cannot be written at first.
pub async fn tell(path: PathBuf, state: Activity) -> io::Result<()> {
    let part = path.with_extension("part");
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

/// Why a PE is not well, as far as its file says.
#[derive(Debug, Error)]
pub enum Unwell {
    /// There is no file.
    #[error("{}: {source}; is this the file of `flitcast node --join .. --health FILE`?", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody writes it any more.
    #[error("{}: nobody has written it for {} s, so the PE is stuck, stopped or gone; it said last: {last}", path.display(), age.as_secs())]
    Old {
        /// Which.
        path: PathBuf,
        /// Since when.
        age: Duration,
        /// What it says.
        last: String,
    },
}

/// What the PE does that writes this file.
///
/// # Errors
///
/// It does nothing any more.
pub fn check(path: &Path) -> Result<String, Unwell> {
    let unreadable = |source| Unwell::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let written = file.metadata().and_then(|metadata| metadata.modified());
    // A clock that was set back makes it young.
    let age = SystemTime::now().duration_since(written.map_err(unreadable)?);
    let age = age.unwrap_or_default();
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.map_err(unreadable)?;
    let last = text.trim_end().to_owned();
    match age > OLD {
        true => Err(Unwell::Old {
            path: path.to_owned(),
            age,
            last,
        }),
        false => Ok(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_writes_any_more_is_of_a_pe_that_is_gone() {
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
        assert!(old.contains("nobody has written it for 6"), "{old}");
        assert!(old.ends_with("it said last: P3 plays"), "{old}");
    }

    #[tokio::test]
    async fn what_a_pe_does_is_in_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("health");
        let state = Activity::default();
        state.set("P3 waits");
        tokio::select! {
            told = tell(path.clone(), state) => panic!("{told:?}"),
            () = async {
                while check(&path).ok().as_deref() != Some("P3 waits") {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
    }
}
