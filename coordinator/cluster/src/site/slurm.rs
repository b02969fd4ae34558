//! Values from the environment of a Slurm job: the PE of a task, the address where it joins, and
//! the cluster that commands wait for. So a job's script names no host. Slurm starts and ends the
//! tasks, not this module.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use flitcast_proto::PeId;

use crate::options::tree::TreeArgs;
use crate::site::placement::{Launch, Placement, SlurmStep, Starter};
use crate::text::faults::Faults;

/// Value that replaces HOST:PORT or a cluster file: `slurm`, `slurm:PORT`.
const WORD: &str = "slurm";
/// Value that replaces a cluster file if each command starts the tasks: `srun`, `srun:PORT`.
const STARTED: &str = "srun";
/// First port on which commands of a job listen; the job's number selects the port. The range is
/// below the ephemeral ports of Linux (from 32768) and above those of services.
const FIRST_PORT: u16 = 20_000;
/// Number of ports in the range: two jobs on a host conflict only if their numbers differ by a
/// multiple of this.
const PORTS: u32 = 10_000;
/// Time for all tasks to join. Slurm starts them within seconds, if their nodes are powered up.
const WAIT: Duration = Duration::from_secs(60);

/// A request for Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slurm {
    /// The port, if it does not follow from the job's number.
    port: Option<u16>,
    /// Whether a command starts the tasks; otherwise they join.
    starts: bool,
}

/// A function that reads a variable of the environment.
pub trait Environment: Fn(&str) -> Option<String> {}
impl<F: Fn(&str) -> Option<String>> Environment for F {}

pub fn environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

const UNDER_SRUN: &str = "srun sets it for the tasks that it starts, like `srun flitcast node --join slurm --credentials DIR`";
const IN_A_JOB: &str = "Slurm sets it inside a job, for the script of sbatch or a shell of salloc";

impl Slurm {
    /// Parses a request for Slurm.
    pub fn asked(text: &str) -> Option<Slurm> {
        let port = match text.strip_prefix(WORD)? {
            "" => None,
            more => Some(more.strip_prefix(':')?.parse().ok()?),
        };
        (port != Some(0)).then_some(Slurm {
            port,
            starts: false,
        })
    }

    /// Parses a request for Slurm in place of a cluster file.
    pub fn named(file: &Path) -> Option<Slurm> {
        let text = file.to_str()?;
        match text.strip_prefix(STARTED) {
            Some(port) => Some(Slurm {
                starts: true,
                ..Slurm::asked(&format!("{WORD}{port}"))?
            }),
            None => Slurm::asked(text),
        }
    }

    /// Returns the option with this request, for messages.
    pub fn option(self) -> &'static str {
        match self.starts {
            true => "--cluster srun",
            false => "--cluster slurm",
        }
    }

    /// Returns the PE of a task of srun (the element of `pes` at the task's number, or else that
    /// number) and the address where it joins: the host that runs srun, which runs the script's
    /// other commands as well.
    pub fn task(
        self,
        environment: impl Environment,
        pes: &[u32],
    ) -> Result<(PeId, SocketAddr), Faults> {
        let number = "a number from 0";
        let task: Result<u32, _> = read(&environment, "SLURM_PROCID", UNDER_SRUN, number);
        let pe = task.map(|task| pes.get(task as usize).copied().unwrap_or(task));
        let launcher = "SLURM_LAUNCH_NODE_IPADDR";
        let address = read::<IpAddr>(&environment, launcher, UNDER_SRUN, "an address");
        match (pe, address, self.port(&environment, UNDER_SRUN)) {
            (Ok(pe), Ok(address), Ok(port)) => Ok((PeId(pe), SocketAddr::new(address, port))),
            (pe, address, port) => {
                let faults = [pe.err(), address.err(), port.err()];
                Err(Faults::all(faults.into_iter().flatten()))
            }
        }
    }

    /// Returns the number of PEs that a command waits for, unless a tree defines it: one for each
    /// task, or each node, like srun.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not a Slurm job.
    pub fn pes(self, environment: impl Environment) -> anyhow::Result<usize> {
        let number = "a number from 1";
        let tasks = "SLURM_NTASKS";
        let variable = match environment(tasks) {
            Some(_) => tasks,
            // Set only if the number of tasks was given.
            None => "SLURM_JOB_NUM_NODES",
        };
        read(&environment, variable, IN_A_JOB, number)
    }

    /// Returns the places of a command's PEs, if this is a Slurm job: the addresses that they join from.
    pub fn placement(self, pes: usize, environment: impl Environment) -> anyhow::Result<Placement> {
        let port = self.port(&environment, IN_A_JOB)?;
        // The host does not know which of its addresses the other nodes use.
        let everywhere = Ipv4Addr::UNSPECIFIED.into();
        let launch = Launch::Join {
            port,
            wait: WAIT,
            starter: self.starts.then(|| Starter::Slurm(SlurmStep::default())),
        };
        Ok(Placement::joining(everywhere, launch, pes))
    }

    fn port(self, environment: &impl Environment, why: &str) -> anyhow::Result<u16> {
        match self.port {
            Some(port) => Ok(port),
            None => {
                let job: u32 = read(environment, "SLURM_JOB_ID", why, "a number")?;
                // The result is less than PORTS and fits.
                Ok(FIRST_PORT + (job % PORTS) as u16)
            }
        }
    }
}

/// Chooses the tasks of this job as PEs, which `srun` starts, if no option chooses PEs and there are several
/// tasks.
pub fn choose_job(tree: &mut TreeArgs, environment: impl Environment) {
    let job = PathBuf::from(STARTED);
    let pes = Slurm::named(&job).and_then(|slurm| slurm.pes(&environment).ok());
    let is_inside = environment("SLURM_JOB_ID").is_some() && pes.is_some_and(|pes| pes > 1);
    if is_inside && tree.pe_options().is_empty() {
        tree.cluster = Some(job);
    }
}

/// Reads and parses a variable, which the program that `why` names sets.
fn read<T: std::str::FromStr>(
    environment: &impl Environment,
    variable: &str,
    why: &str,
    expected: &str,
) -> anyhow::Result<T> {
    let value = environment(variable).ok_or_else(|| anyhow!("{variable} is not set: {why}"))?;
    value.parse().map_err(|_| {
        let value: String = value.chars().take(80).collect();
        anyhow!("{variable}={value}: {expected} is expected")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLURM: Slurm = Slurm {
        port: None,
        starts: false,
    };

    /// Returns an environment with these variables.
    fn with(variables: &'static [(&'static str, &'static str)]) -> impl Environment {
        move |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn only_the_exact_word_requests_slurm() {
        assert_eq!(Slurm::asked("slurm"), Some(SLURM));
        let port = Some(81);
        assert_eq!(Slurm::asked("slurm:81"), Some(Slurm { port, ..SLURM }));
        let starts = true;
        let named = |text: &str| Slurm::named(Path::new(text));
        assert_eq!(named("srun:81"), Some(Slurm { port, starts }));
        assert_eq!(named("slurm:81"), Slurm::asked("slurm:81"));
        assert_eq!(named("srun.toml"), None);
        assert_eq!(Slurm::asked("srun"), None);
        for other in "./slurm slurm.toml slurm: slurm:0 slurm:70000 slurm.:81".split(' ') {
            assert_eq!(Slurm::asked(other), None, "{other}");
        }
    }

    #[test]
    fn a_task_finds_its_place() {
        let environment = with(&[
            ("SLURM_PROCID", "3"),
            ("SLURM_LAUNCH_NODE_IPADDR", "10.1.2.3"),
            ("SLURM_JOB_ID", "123456"),
        ]);
        let at = |address: &str| (PeId(3), address.parse().unwrap());
        let slurm = SLURM;
        assert_eq!(slurm.task(&environment, &[]).unwrap(), at("10.1.2.3:23456"));
        let chosen = Slurm {
            port: Some(81),
            ..SLURM
        };
        assert_eq!(chosen.task(&environment, &[]).unwrap(), at("10.1.2.3:81"));
        // P1 and P2 are excluded.
        let fourth = chosen.task(&environment, &[0, 3, 4, 5]).unwrap();
        assert_eq!(fourth.0, PeId(5));
    }

    #[test]
    fn a_job_has_a_pe_for_each_task_or_else_each_node() {
        let slurm = SLURM;
        let pes = |variables| slurm.pes(with(variables)).unwrap();
        assert_eq!(pes(&[("SLURM_JOB_NUM_NODES", "4")]), 4);
        let both = &[("SLURM_JOB_NUM_NODES", "4"), ("SLURM_NTASKS", "5")];
        assert_eq!(pes(both), 5);
    }
}
