//! PEs as services of a compose file; each service has the name of its PE.

use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::StarterConfig;
use super::external_command::ExternalCommand;
use crate::site::placement::Compose;

/// Variable for the compose file with the address where PEs join, as ADDRESS:PORT.
pub const COORDINATOR: &str = "FLITCAST_COORDINATOR";
/// Time limit of commands that only query.
const LOOK: Duration = Duration::from_secs(30);
/// Time limit for all services to start; an image may have to be pulled or built.
const UP: Duration = Duration::from_secs(600);
/// Time limit for all services to stop; each is killed after its own grace period, 10 s by default.
const DOWN: Duration = Duration::from_secs(60);

impl Compose {
    /// Runs the services until `end`, then takes them down, unless some of them were already
    /// running before.
    pub(super) async fn keep(
        &self,
        orders: StarterConfig,
        begun: oneshot::Sender<()>,
        end: CancellationToken,
    ) -> anyhow::Result<()> {
        let program = program().await?;
        let mut is_up = false;
        let look = self.command(program, &orders, &["ps", "--quiet"]);
        done("compose ps", look, LOOK, |line| is_up |= is_container(line)).await?;
        let services = orders.pes.iter().map(|(pe, place)| {
            let name = place.name.clone();
            name.unwrap_or_else(|| format!("p{}", pe.0))
        });
        let services: Vec<String> = services.collect();
        let mut arguments = vec!["up", "--detach"];
        arguments.extend(services.iter().map(String::as_str));
        let up = self.command(program, &orders, &arguments);
        let up = tokio::select! {
            up = done("compose up", up, UP, log_line) => up,
            // Services that have started are taken down with the rest.
            () = end.cancelled() => Ok(()),
        };
        if up.is_ok() {
            let _ = begun.send(());
            end.cancelled().await;
        }
        if !is_up {
            let down = self.command(program, &orders, &["down"]);
            if let Err(error) = done("compose down", down, DOWN, log_line).await {
                tracing::warn!("{error}");
            }
        }
        up
    }

    fn command(&self, program: &[&str], orders: &StarterConfig, arguments: &[&str]) -> Command {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]);
        command.arg("--file").arg(&self.file);
        command.args(&self.options).args(arguments);
        command.env(COORDINATOR, orders.coordinator.to_string());
        command
    }
}

/// Returns whether a line is a container id and not a warning.
fn is_container(line: &str) -> bool {
    line.len() >= 12 && line.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn log_line(line: &str) {
    tracing::info!(target: "compose", "{line}");
}

/// Returns the command line of compose: the Docker plugin, or else the older standalone program.
async fn program() -> anyhow::Result<&'static [&'static str]> {
    let version = |program: &[&str]| {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg("version");
        command
    };
    let (plugin, alone): (&[&str], &[&str]) = (&["docker", "compose"], &["docker-compose"]);
    let found = done("docker compose", version(plugin), LOOK, |_| {}).await;
    if found.is_ok() {
        return Ok(plugin);
    }
    let what = "there is no `docker compose`, and docker-compose";
    done(what, version(alone), LOOK, |_| {}).await?;
    Ok(alone)
}

/// Runs a command; returns an error unless it ends successfully within the limit.
async fn done(
    what: &str,
    mut command: Command,
    limit: Duration,
    on_line: impl FnMut(&str),
) -> anyhow::Result<()> {
    let mut running = ExternalCommand::run(what, &mut command)?;
    match timeout(limit, running.ended(on_line)).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(ended) => Err(running.failed(ended)),
        Err(_) => Err(running.late(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_no_container() {
        assert!(is_container(&"0123456789abcdef".repeat(4)));
        for other in [
            "",
            "WARNING: The FLITCAST_USER variable is not set. Defaulting to a blank string.",
            "time=\"2026\" level=warning msg=\"the attribute `version` is obsolete\"",
        ] {
            assert!(!is_container(other), "{other}");
        }
    }
}
