//! PEs as the tasks of one step of Slurm: `srun flitcast node --join slurm`.

use std::io::{self, Write as _};
use std::time::Duration;

use flitcast_proto::PeId;
use tempfile::NamedTempFile;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::external_command::ExternalCommand;
use super::{Orders, StarterError};
use crate::site::starter::SlurmStep;
use crate::system::process::{Process, Signal};
use crate::text::units::ExactTime;

/// What is run.
const SRUN: &str = "srun";
/// For srun to end once all its tasks have, and then once it was told to end them.
const LEAVE: Duration = Duration::from_secs(5);

impl SlurmStep {
    /// Runs the step until it ends or is told to.
    pub(super) async fn keep(
        &self,
        orders: Orders,
        begun: oneshot::Sender<()>,
        end: CancellationToken,
    ) -> Result<(), StarterError> {
        // Kept until the step is over: srun reads it when it begins.
        let hosts = hosts(&orders).map_err(|error| StarterError {
            what: SRUN.to_owned(),
            why: format!("cannot be told the hosts: {error}"),
            last_words: Default::default(),
        })?;
        let mut step = ExternalCommand::run(SRUN, &mut self.command(&orders, hosts.as_ref()))?;
        // They call until they are answered.
        let _ = begun.send(());
        let tell = |line: &str| {
            orders.console.line(&told(&orders, line));
        };
        let ended = tokio::select! {
            ended = step.ended(tell) => Some(ended),
            () = end.cancelled() => None,
        };
        if let Some(ended) = ended {
            return Err(step.failed(ended));
        }
        if timeout(LEAVE, step.ended(tell)).await.is_ok() {
            return Ok(());
        }
        tracing::warn!("srun has not ended with its tasks, and is told to");
        if let Some(process) = step.pid().and_then(Process::numbered) {
            process.signal(Signal::TERM);
        }
        match timeout(LEAVE, step.ended(tell)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(step.late(2 * LEAVE)),
        }
    }

    fn command(&self, orders: &Orders, hosts: Option<&NamedTempFile>) -> Command {
        let mut command = Command::new(SRUN);
        command.args(["--ntasks", &orders.pes.len().to_string()]);
        // One that ends does not end the others, now or later.
        command.args(["--kill-on-bad-exit=0", "--wait=0"]);
        // Other steps of the job may have the same cores, as `flitcast map` on others would.
        command.args(["--overlap", "--input=none", "--label"]);
        if let Some(hosts) = hosts {
            command.arg("--distribution=arbitrary");
            command.env("SLURM_HOSTFILE", hosts.path());
        }
        command.args(&self.options);
        command.arg(&orders.program);
        command.args(&orders.logs.args).arg("node");
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

/// The host of each task in turn, if they were named.
fn hosts(orders: &Orders) -> io::Result<Option<NamedTempFile>> {
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

/// A line of srun's: `3: text` is what task 3 has said.
fn told(orders: &Orders, line: &str) -> String {
    let said = line.split_once(": ");
    let task = said.and_then(|(task, text)| Some((task.trim().parse::<usize>().ok()?, text)));
    let pe = |task: usize| -> Option<PeId> { orders.pes.get(task).map(|(pe, _)| *pe) };
    match task.and_then(|(task, text)| Some((pe(task)?, text))) {
        Some((_, text)) if orders.logs.json => text.to_owned(),
        Some((pe, text)) => format!("{pe}| {text}"),
        None => line.to_owned(),
    }
}
