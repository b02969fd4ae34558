//! `flitcast leash` and `flitcast stage`: what a PE starts to run a command, so that this ends
//! with it. They are not for people; how they work is the node crate's business.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use flitcast_node::task::leash::{Lower, Stage, hold};
use flitcast_proto::PeId;

/// What the shell says of a command that cannot be started.
const NOT_STARTED: u8 = 127;

/// Arguments of `flitcast leash`. What is run is said on standard input.
#[derive(Debug, Args)]
pub struct LeashArgs {
    /// For which PE.
    #[arg(long, value_name = "I")]
    pe: u32,
    /// Whether it is the one that starts the command.
    #[arg(long)]
    lower: bool,
}

/// Arguments of `flitcast stage`.
#[derive(Debug, Args)]
pub struct StageArgs {
    /// The process that is to be its parent.
    #[arg(long, value_name = "PID")]
    parent: i32,
    /// The command's standard input [default: empty].
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Its standard output.
    #[arg(long, value_name = "FILE")]
    stdout: PathBuf,
    /// What is run.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

impl LeashArgs {
    /// Has the command run, and ends it when standard input ends.
    ///
    /// # Errors
    ///
    /// The operating system refuses something basic.
    pub fn hold(self) -> anyhow::Result<ExitCode> {
        let pe = PeId(self.pe);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        runtime.block_on(async {
            match self.lower {
                true => Lower::told(pe)?.hold().await,
                false => hold(pe).await,
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl StageArgs {
    /// Becomes the command.
    ///
    /// # Errors
    ///
    /// It cannot even say why not.
    pub fn enter(self) -> anyhow::Result<ExitCode> {
        let stage = Stage {
            parent: self.parent,
            stdin: self.stdin,
            stdout: self.stdout,
            words: self.words,
        };
        stage.enter()?;
        Ok(ExitCode::from(NOT_STARTED))
    }
}
