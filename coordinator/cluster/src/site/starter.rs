//! The starter of PEs that join, as configured in a cluster file. `launch` runs it.

use std::path::PathBuf;

/// A starter of PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Slurm: the PEs are the tasks of one step.
    Slurm(SlurmStep),
    /// Compose: the PEs are services.
    Compose(Compose),
}

impl Starter {
    /// Name in cluster files.
    pub fn name(&self) -> &'static str {
        match self {
            Starter::Slurm(_) => "slurm",
            Starter::Compose(_) => "compose",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmStep {
    /// Options of srun, such as `--partition=short`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    pub file: PathBuf,
    /// Options of compose before its subcommand, such as `--project-name=one`.
    pub options: Vec<String>,
}
