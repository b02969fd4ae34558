//! `flitcast leash`: what a PE starts to run a command, so that this ends with it. It is not
//! for people; how it works is the node crate's business.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use flitcast_node::task::leash::Leash;

/// Arguments of `flitcast leash`.
#[derive(Debug, Args)]
pub struct LeashArgs {
    /// The command's current directory.
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Its standard input [default: empty].
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Its standard output.
    #[arg(long, value_name = "FILE")]
    stdout: PathBuf,
    /// What it says on stderr, which is passed on as well.
    #[arg(long, value_name = "FILE")]
    stderr: PathBuf,
    /// Locked until all of it has ended.
    #[arg(long, value_name = "FILE")]
    lock: PathBuf,
    /// What is run.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

impl LeashArgs {
    /// Runs the command, and ends it when standard input ends.
    ///
    /// # Errors
    ///
    /// The operating system refuses something basic.
    pub fn hold(self) -> anyhow::Result<ExitCode> {
        let leash = Leash {
            directory: self.directory,
            stdin: self.stdin,
            stdout: self.stdout,
            stderr: self.stderr,
            lock: self.lock,
            words: self.words,
        };
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        runtime.block_on(leash.hold())?;
        Ok(ExitCode::SUCCESS)
    }
}
