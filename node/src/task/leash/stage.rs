//! What becomes the command: a process that asks to be killed when its parent, the lower
//! supervisor, dies, and then is replaced by the command, which keeps that.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::system::children;

/// Of why a command cannot be started: nobody reads it before this process has ended, so it
/// has to fit a pipe.
const LONGEST_WHY: usize = 4000;

/// What is run, and with what. The current directory and standard error are those of this
/// process already.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The supervisor.
    pub parent: i32,
    /// Standard input; `None`: empty.
    pub stdin: Option<PathBuf>,
    /// Where standard output goes.
    pub stdout: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

impl Stage {
    /// Becomes the command; if it cannot, says on standard output why. While that is open, it
    /// has not.
    ///
    /// # Errors
    ///
    /// Not even that can be said.
    pub fn enter(&self) -> io::Result<()> {
        // The command does not inherit it.
        let mut told = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let why = self.become_it();
        told.write_all(&why.as_bytes()[..why.len().min(LONGEST_WHY)])
    }

    /// Why it cannot.
    fn become_it(&self) -> String {
        if let Err(error) = children::be_killed_with_parent() {
            return format!("cannot ask to be ended with the supervisor: {error}");
        }
        if children::parent() != Some(self.parent) {
            return "its supervisor is gone".to_owned();
        }
        let stdin = match &self.stdin {
            None => Stdio::null(),
            Some(path) => match File::open(path) {
                Ok(file) => file.into(),
                Err(error) => return format!("cannot read `{}`: {error}", path.display()),
            },
        };
        let stdout = match File::create(&self.stdout) {
            Ok(file) => file,
            Err(error) => return format!("cannot write `{}`: {error}", self.stdout.display()),
        };
        let [program, arguments @ ..] = &self.words[..] else {
            return "there is no command".to_owned();
        };
        let mut command = Command::new(program);
        let error = command.args(arguments).stdin(stdin).stdout(stdout).exec();
        not_started(Path::new(program), &error)
    }
}

fn not_started(program: &Path, error: &io::Error) -> String {
    let why = format!("`{}` cannot be started: {error}", program.display());
    // With a slash in it, it is no name to be looked up in PATH.
    let is_near = program.is_relative() && program.components().count() > 1;
    match is_near && error.kind() == io::ErrorKind::NotFound {
        true => format!("{why}; it counts from the shard: give its path from the root"),
        false => why,
    }
}
