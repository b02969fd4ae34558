//! Of a cluster file: what has the PEs started that join, in `[launch]`.
//!
//! ```toml
//! coordinator = "0.0.0.0:7117"      # where the PEs call
//! tree = "kary:2:8"                 # on whatever nodes; or a [[pe]] named after each node
//! [launch]
//! kind = "slurm"
//! options = ["--partition=short"]   # for srun
//! ```
//!
//! ```toml
//! [launch]
//! kind = "compose"
//! file = "compose.yaml"             # from where this file is
//! options = ["--project-name=one"]  # for docker compose
//! [[pe]]
//! name = "p0"                       # its service
//! ```

use super::{ClusterFileFault, Reader, Value};
use crate::files::user_file::Spot;
use crate::site::settings::NamedFile;
use crate::site::starter::{Compose, SlurmStep, Starter};

/// What may stand in `[launch]` for these alone.
pub const KEYS: &str = "file, options";

/// What `[launch]` says for them.
#[derive(Default)]
pub struct StarterKeys {
    /// The compose file; `None` in it if what stands there is none.
    file: Option<Option<NamedFile>>,
    options: Option<(Spot, Vec<String>)>,
}

impl Reader<'_, ClusterFileFault> {
    /// Reads a key of `[launch]`; whether it is one of these.
    pub(super) fn starter_key(
        &mut self,
        section: &mut StarterKeys,
        key: &str,
        value: &Value<'_>,
    ) -> bool {
        let spot = self.spot_of(value);
        match key {
            "file" => section.file = Some(self.named_file("file", value)),
            "options" => section.options = Some((spot, self.words("options", value))),
            _ => return false,
        }
        true
    }

    /// The tasks of a step of Slurm.
    pub(super) fn step(&mut self, section: StarterKeys) -> Starter {
        if let Some(Some(named)) = section.file {
            self.useless(named.spot, "file", "compose");
        }
        let options = section.options.map(|(_, options)| options);
        Starter::Slurm(SlurmStep {
            options: options.unwrap_or_default(),
        })
    }

    /// The services of a compose file, which is at `kind` if nothing says where.
    pub(super) fn services(
        &mut self,
        section: StarterKeys,
        kind: Spot,
    ) -> Option<(Starter, NamedFile)> {
        let Some(file) = section.file else {
            self.fault(kind, ClusterFileFault::NoComposeFile);
            return None;
        };
        let file = file?;
        let options = section.options.map(|(_, options)| options);
        let starter = Starter::Compose(Compose {
            file: file.path.clone(),
            options: options.unwrap_or_default(),
        });
        Some((starter, file))
    }

    /// That nothing is said of what is not used.
    pub(super) fn without_starter(&mut self, section: &StarterKeys) {
        if let Some(Some(named)) = &section.file {
            self.useless(named.spot, "file", "compose");
        }
        if let Some((spot, _)) = section.options {
            self.useless(spot, "options", "slurm\" or \"compose");
        }
    }

    fn useless(&mut self, spot: Spot, key: &'static str, kind: &'static str) {
        self.fault(spot, ClusterFileFault::KeyOfKind { key, kind });
    }
}
