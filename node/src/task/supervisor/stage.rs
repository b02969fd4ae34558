//! The process that becomes the command: it sets a parent-death signal, so that it ends with the lower
//! supervisor, and is then replaced by the command, for which that setting remains.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::limits::COMMAND_REASON_BYTES;
use crate::system::children;

/// The command with its input and output. The current directory and standard error are those of this
/// process already.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The process number of the supervisor.
    pub parent: i32,
    /// Standard input; `None` for an empty one.
    pub stdin: Option<PathBuf>,
    /// The file for standard output.
    pub stdout: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

impl Stage {
    /// Becomes the command; if that fails, writes the reason to standard output. While that is open,
    /// the command has not started.
    pub fn enter(&self) -> io::Result<()> {
        // The command does not inherit it.
        let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let why = self.become_it();
        stdout.write_all(&why.as_bytes()[..why.len().min(COMMAND_REASON_BYTES)])
    }

    /// Becomes the command, or returns the reason why it cannot.
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
    // With a slash in it, the program is not searched in PATH.
    let is_near = program.is_relative() && program.components().count() > 1;
    match is_near && error.kind() == io::ErrorKind::NotFound {
        true => format!("{why}; it counts from the shard: give its path from the root"),
        false => why,
    }
}
