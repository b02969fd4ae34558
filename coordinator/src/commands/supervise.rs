//! `flitcast leash` and `flitcast stage`: the processes that a PE starts to run a command, so that the
//! command ends with the PE. They are not for users; the node crate describes how they work.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use flitcast_node::runtime::run_alone;
use flitcast_node::task::supervisor::{CommandSupervisor, Stage, hold};
use flitcast_proto::PeId;

/// The exit status by which a shell reports a command that it cannot start.
const NOT_STARTED: u8 = 127;

/// Arguments of `flitcast leash`. The command itself is sent on standard input.
#[derive(Debug, Args)]
pub struct LeashArgs {
    /// The number of the PE.
    #[arg(long, value_name = "I")]
    pe: u32,
    /// Whether this is the supervisor that starts the command.
    #[arg(long)]
    lower: bool,
}

/// Arguments of `flitcast stage`.
#[derive(Debug, Args)]
pub struct StageArgs {
    /// The process ID that its parent must have.
    #[arg(long, value_name = "PID")]
    parent: i32,
    /// The command's standard input [default: empty].
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// The command's standard output.
    #[arg(long, value_name = "FILE")]
    stdout: PathBuf,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

impl LeashArgs {
    /// Runs the command, and ends it when standard input ends.
    pub fn hold(self) -> anyhow::Result<ExitCode> {
        let pe = PeId(self.pe);
        run_alone(async {
            match self.lower {
                true => CommandSupervisor::for_pe(pe)?.hold().await,
                false => hold(pe).await,
            }
        })
        .context("cannot start the runtime")??;
        Ok(ExitCode::SUCCESS)
    }
}

impl StageArgs {
    /// Replaces this process by the command.
    ///
    /// # Errors
    ///
    /// Returns an error if the reason for a failure cannot be reported either.
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
