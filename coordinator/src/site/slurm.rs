//! Inside a job of Slurm: which PE a task plays, where it joins, and what cluster the
//! commands wait for. All of it is read from the environment that Slurm sets, so that a job's
//! script names no host. Slurm starts and ends the tasks; nothing here does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use flitcast_proto::PeId;
use thiserror::Error;

use crate::site::placement::{Launch, Placement};

/// What stands for Slurm where HOST:PORT or a cluster file can stand: `slurm`, `slurm:PORT`.
const WORD: &str = "slurm";
/// Commands of a job listen on a port from this one on, by the job's number. Below those that
/// Linux gives away by itself (from 32768), above those that services have.
const FIRST_PORT: u16 = 20_000;
/// So many are used: jobs meet on a host only if their numbers differ by a multiple of this.
const PORTS: u32 = 10_000;
/// For all tasks to join. Slurm starts them within seconds, if their nodes are awake.
const WAIT: Duration = Duration::from_secs(60);

/// Slurm is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slurm {
    /// The port, if it is not to follow from the job's number.
    port: Option<u16>,
}

/// What Slurm's environment lacks.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SlurmFault {
    /// Not where it is meant to be.
    #[error("{variable} is not set: {why}")]
    Missing {
        /// Which variable.
        variable: &'static str,
        /// Who sets it.
        why: &'static str,
    },
    /// Nothing that Slurm sets.
    #[error("{variable}={value}: {expected} is expected")]
    Malformed {
        /// Which variable.
        variable: &'static str,
        /// Its value, cut.
        value: String,
        /// What Slurm sets.
        expected: &'static str,
    },
}

/// Reads a variable of the environment.
pub trait Environment: Fn(&str) -> Option<String> {}
impl<F: Fn(&str) -> Option<String>> Environment for F {}

/// This process's environment.
pub fn environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

const UNDER_SRUN: &str = "srun sets it for the tasks that it starts, like `srun flitcast node --join slurm --credentials DIR`";
const IN_A_JOB: &str = "Slurm sets it inside a job, for the script of sbatch or a shell of salloc";

impl Slurm {
    /// Slurm, if `text` asks for it.
    pub fn asked(text: &str) -> Option<Slurm> {
        let port = match text.strip_prefix(WORD)? {
            "" => None,
            more => Some(
                more.strip_prefix(':')?
                    .parse()
                    .ok()
                    .filter(|&port| port > 0)?,
            ),
        };
        Some(Slurm { port })
    }

    /// Slurm, if it is asked for where a cluster file could stand.
    pub fn named(file: &Path) -> Option<Slurm> {
        file.to_str().and_then(Slurm::asked)
    }

    /// Which PE a task of srun plays, the one of `pes` or else of its number, and where it
    /// joins: at the host that runs srun, where the script's other commands run as well.
    ///
    /// # Errors
    ///
    /// All that the environment lacks.
    pub fn task(
        self,
        environment: impl Environment,
        pes: &[u32],
    ) -> Result<(PeId, SocketAddr), Vec<SlurmFault>> {
        let number = "a number from 0";
        let task: Result<u32, _> = read(&environment, "SLURM_PROCID", UNDER_SRUN, number);
        let pe = task.map(|task| pes.get(task as usize).copied().unwrap_or(task));
        let launcher = "SLURM_LAUNCH_NODE_IPADDR";
        let address = read::<IpAddr>(&environment, launcher, UNDER_SRUN, "an address");
        match (pe, address, self.port(&environment, UNDER_SRUN)) {
            (Ok(pe), Ok(address), Ok(port)) => Ok((PeId(pe), SocketAddr::new(address, port))),
            (pe, address, port) => {
                let faults = [pe.err(), address.err(), port.err()];
                Err(faults.into_iter().flatten().collect())
            }
        }
    }

    /// How many PEs a command waits for, unless a tree says so: one for each task, or each
    /// node, as srun does.
    ///
    /// # Errors
    ///
    /// This is no job.
    pub fn pes(self, environment: impl Environment) -> Result<usize, SlurmFault> {
        let number = "a number from 1";
        let tasks = "SLURM_NTASKS";
        let variable = match environment(tasks) {
            Some(_) => tasks,
            // Only set for who has said how many.
            None => "SLURM_JOB_NUM_NODES",
        };
        read(&environment, variable, IN_A_JOB, number)
    }

    /// Where the PEs of a command run: on the hosts that they join from.
    ///
    /// # Errors
    ///
    /// This is no job.
    pub fn placement(
        self,
        pes: usize,
        environment: impl Environment,
    ) -> Result<Placement, SlurmFault> {
        let port = self.port(&environment, IN_A_JOB)?;
        // Which of its addresses the other nodes know, the host does not.
        let everywhere = Ipv4Addr::UNSPECIFIED.into();
        let launch = Launch::Join {
            port,
            wait: WAIT,
            starter: None,
        };
        Ok(Placement::joining(everywhere, launch, pes))
    }

    fn port(self, environment: &impl Environment, why: &'static str) -> Result<u16, SlurmFault> {
        match self.port {
            Some(port) => Ok(port),
            None => {
                let job: u32 = read(environment, "SLURM_JOB_ID", why, "a number")?;
                // Less than PORTS, which fits.
                Ok(FIRST_PORT + (job % PORTS) as u16)
            }
        }
    }
}

/// A variable's value.
fn read<T: std::str::FromStr>(
    environment: &impl Environment,
    variable: &'static str,
    why: &'static str,
    expected: &'static str,
) -> Result<T, SlurmFault> {
    let value = environment(variable).ok_or(SlurmFault::Missing { variable, why })?;
    value.parse().map_err(|_| SlurmFault::Malformed {
        variable,
        value: value.chars().take(80).collect(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment with these variables.
    fn with(variables: &'static [(&'static str, &'static str)]) -> impl Environment {
        move |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn a_word_asks_for_slurm_and_nothing_else_does() {
        assert_eq!(Slurm::asked("slurm"), Some(Slurm { port: None }));
        assert_eq!(Slurm::asked("slurm:81"), Some(Slurm { port: Some(81) }));
        for other in [
            "./slurm",
            "slurm.toml",
            "slurm:",
            "slurm:0",
            "slurm:70000",
            "slurm.:81",
        ] {
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
        let at = |address: &str| Ok((PeId(3), address.parse().unwrap()));
        let slurm = Slurm { port: None };
        assert_eq!(slurm.task(&environment, &[]), at("10.1.2.3:23456"));
        let chosen = Slurm { port: Some(81) };
        assert_eq!(chosen.task(&environment, &[]), at("10.1.2.3:81"));
        // Where P1 and P2 are left out.
        let fourth = chosen.task(&environment, &[0, 3, 4, 5]).unwrap();
        assert_eq!(fourth.0, PeId(5));
    }

    #[test]
    fn what_the_environment_lacks_is_named_all_at_once() {
        let slurm = Slurm { port: None };
        let variables: &[_] = &[("SLURM_PROCID", "third"), ("SLURM_JOB_ID", "7")];
        let faults = slurm.task(with(variables), &[]).unwrap_err();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(told[0], "SLURM_PROCID=third: a number from 0 is expected");
        assert!(told[1].starts_with("SLURM_LAUNCH_NODE_IPADDR is not set: srun sets it"));
        assert_eq!(slurm.task(with(&[]), &[]).unwrap_err().len(), 3);
        let outside = slurm.pes(with(&[])).unwrap_err().to_string();
        assert!(outside.starts_with("SLURM_JOB_NUM_NODES is not set: Slurm sets it inside"));
    }

    #[test]
    fn a_job_has_a_pe_for_each_task_or_else_each_node() {
        let slurm = Slurm { port: None };
        assert_eq!(slurm.pes(with(&[("SLURM_JOB_NUM_NODES", "4")])), Ok(4));
        let both: &[_] = &[("SLURM_JOB_NUM_NODES", "4"), ("SLURM_NTASKS", "5")];
        assert_eq!(slurm.pes(with(both)), Ok(5));
    }
}
