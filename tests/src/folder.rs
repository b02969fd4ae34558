//! Empty folders for the files of tests, and commands on these files.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::binary::target_dir;
use crate::{Finished, Report, Running, run, start};

/// A folder that is removed at the end. In the lines of commands, `@` stands for its path.
pub struct Folder(TempDir);

/// Creates an empty folder. It is in the target directory, because `/tmp` may be in memory and some
/// tests write much.
#[track_caller]
pub fn scratch() -> Folder {
    let parent = target_dir().join("tmp");
    let made = fs::create_dir_all(&parent).and_then(|()| {
        let mut folder = tempfile::Builder::new();
        folder.prefix("flitcast-").tempdir_in(parent)
    });
    Folder(made.expect("the target directory can be written to"))
}

impl Folder {
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of an entry as text.
    pub fn shown(&self, name: &str) -> String {
        self.join(name).display().to_string()
    }

    /// Writes a file, below new folders if necessary, and returns its path.
    #[track_caller]
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        let above = path.parent().expect("it is below the folder");
        let written = fs::create_dir_all(above).and_then(|()| fs::write(&path, content));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let text = fs::read_to_string(self.join(name));
        text.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the words of a line.
    pub fn words(&self, line: &str) -> Vec<String> {
        let words = line.split_whitespace();
        let path = self.display().to_string();
        words.map(|word| word.replace('@', &path)).collect()
    }

    /// Runs `flitcast` with the words of a line to its end.
    #[track_caller]
    pub fn run(&self, line: &str) -> Finished {
        run(self.words(line))
    }

    /// Returns the report of a command that must succeed; its line lacks `--format json`.
    #[track_caller]
    pub fn report(&self, line: &str) -> Report {
        self.run(&format!("{line} --format json")).ok().report()
    }

    /// Starts `flitcast` with the words of a line.
    #[track_caller]
    pub fn start(&self, line: &str) -> Running {
        start(self.words(line))
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.path()
    }
}
