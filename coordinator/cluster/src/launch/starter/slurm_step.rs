//! PEs as the tasks of one Slurm step: `srun flitcast node --join slurm`.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::anyhow;
use flitcast_proto::PeId;
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::StarterConfig;
use super::external_command::ExternalCommand;
use crate::site::placement::SlurmStep;
use crate::system::process::{Process, Signal};
use crate::text::units::ExactTime;

const SRUN: &str = "srun";
/// Time for srun to end after all its tasks have ended, and again after a request to end them.
const LEAVE: Duration = Duration::from_secs(5);

impl SlurmStep {
    /// Runs the step until it ends or `end` requests it.
    pub(super) async fn keep(
        &self,
        orders: StarterConfig,
        begun: oneshot::Sender<()>,
        end: CancellationToken,
    ) -> anyhow::Result<()> {
        // The file is kept until the step is over, because srun reads it when it begins.
        let hosts =
            hosts(&orders).map_err(|error| anyhow!("{SRUN} cannot be told the hosts: {error}"))?;
        let mut step = ExternalCommand::run(SRUN, &mut self.command(&orders, hosts.as_ref()))?;
        // The PEs connect repeatedly until they are answered.
        let _ = begun.send(());
        let forward = |line: &str| match line_of_task(&orders, line) {
            Some((pe, text)) => orders.console.line_of(pe, text),
            None => orders.console.note(line),
        };
        let ended = tokio::select! {
            ended = step.ended(forward) => Some(ended),
            () = end.cancelled() => None,
        };
        if let Some(ended) = ended {
            return Err(step.failed(ended));
        }
        if timeout(LEAVE, step.ended(forward)).await.is_ok() {
            return Ok(());
        }
        tracing::warn!("srun has not ended with its tasks, and is told to");
        if let Some(process) = step.pid().and_then(Process::numbered) {
            process.signal(Signal::TERM);
        }
        match timeout(LEAVE, step.ended(forward)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(step.late(2 * LEAVE)),
        }
    }

    fn command(&self, orders: &StarterConfig, hosts: Option<&NamedTempFile>) -> Command {
        let mut command = Command::new(SRUN);
        command.args(["--ntasks", &orders.pes.len().to_string()]);
        // The end of one task does not end the others.
        command.args(["--kill-on-bad-exit=0", "--wait=0"]);
        // Other steps of the job may use the same cores, such as those of `flitcast map`.
        command.args(["--overlap", "--input=none", "--label"]);
        if let Some(hosts) = hosts {
            command.arg("--distribution=arbitrary");
            command.env("SLURM_HOSTFILE", hosts.path());
        }
        command.args(&self.options);
        command.arg(&orders.program);
        command.args(&orders.logs).arg("node");
        command.args(["--join", &format!("slurm:{}", orders.coordinator.port())]);
        let pes = orders.pes.iter().map(|(pe, _)| pe.0.to_string());
        command.args(["--pes", &pes.collect::<Vec<_>>().join(",")]);
        let wait = ExactTime(orders.wait.as_nanos() as u64);
        command.args(["--wait", &wait.to_string()]);
        match orders.guard.folder() {
            Some(folder) => {
                // The tasks begin in this folder, if their hosts have it.
                let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
                command.arg("--credentials").arg(folder);
                // The tasks are this user's, and started by this command.
                command.args(["--files", "/"]);
            }
            None => {
                command.arg("--insecure");
            }
        }
        if orders.commands {
            command.arg("--commands");
        }
        command
    }
}

/// Writes the host of each task, if all hosts are named.
fn hosts(orders: &StarterConfig) -> io::Result<Option<NamedTempFile>> {
    let names = orders.pes.iter().map(|(_, place)| place.name.as_deref());
    let Some(names) = names.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let mut file = NamedTempFile::new()?;
    for name in names {
        writeln!(file, "{name}")?;
    }
    file.flush()?;
    Ok(Some(file))
}

/// Parses a line of srun's output: `3: text` is a line of task 3. Returns `None` if the line is
/// srun's own.
fn line_of_task<'a>(orders: &StarterConfig, line: &'a str) -> Option<(PeId, &'a str)> {
    let (task, text) = line.split_once(": ")?;
    let (pe, _) = orders.pes.get(task.trim().parse::<usize>().ok()?)?;
    Some((*pe, text))
}
