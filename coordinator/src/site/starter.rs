//! What has the PEs of a cluster started that then join, as a cluster file says it. Starting
//! them is `launch`'s business.

use std::path::PathBuf;

/// What has the PEs started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Slurm: they are the tasks of one step.
    Slurm(SlurmStep),
    /// Compose: they are services.
    Compose(Compose),
}

impl Starter {
    /// For people and programs.
    pub fn name(&self) -> &'static str {
        match self {
            Starter::Slurm(_) => "slurm",
            Starter::Compose(_) => "compose",
        }
    }
}

/// How the step is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmStep {
    /// Words for srun, like `--partition=short`.
    pub options: Vec<String>,
}

/// Which services, and how they are started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// The compose file.
    pub file: PathBuf,
    /// Words for compose, before what it is to do: `--project-name=one`.
    pub options: Vec<String>,
}
