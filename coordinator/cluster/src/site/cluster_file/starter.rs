//! Part of a cluster file: the starter of PEs that join, in `[launch]`.
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

use super::values::{At, named_file, read_words};
use crate::files::toml_file::{Reader, Table};
use crate::files::user_file::SourcePosition;
use crate::site::settings::NamedFile;
use crate::site::starter::{Compose, SlurmStep, Starter};

#[derive(Default)]
pub struct StarterKeys {
    file: Option<At<NamedFile>>,
    options: Option<At<Vec<String>>>,
}

/// Reads the keys of `[launch]` that only starters use.
pub fn keys(table: &Table<'_, '_>) -> StarterKeys {
    StarterKeys {
        file: At::key(table, "file", |field| named_file("file", field)),
        options: At::key(table, "options", read_words),
    }
}

/// Returns the starter by a Slurm step.
pub fn step(reader: &Reader<'_>, section: StarterKeys) -> Starter {
    if let Some(named) = At::said(&section.file) {
        useless(reader, named.spot, "file", "compose");
    }
    Starter::Slurm(SlurmStep {
        options: At::said(&section.options).unwrap_or_default(),
    })
}

/// Returns the starter by a compose file; a missing file is reported at the position `kind`.
pub fn services(
    reader: &Reader<'_>,
    section: StarterKeys,
    kind: SourcePosition,
) -> Option<(Starter, NamedFile)> {
    let Some(file) = section.file else {
        reader.fault(
            kind,
            "kind = \"compose\" needs the compose file: file = \"compose.yaml\"",
        );
        return None;
    };
    let file = file.said?;
    let starter = Starter::Compose(Compose {
        file: file.path.clone(),
        options: At::said(&section.options).unwrap_or_default(),
    });
    Some((starter, file))
}

/// Reports a fault if starters are configured but not used.
pub fn without(reader: &Reader<'_>, section: &StarterKeys) {
    if let Some(named) = At::said(&section.file) {
        useless(reader, named.spot, "file", "compose");
    }
    if let Some(At { spot, .. }) = section.options {
        useless(reader, spot, "options", "slurm\" or \"compose");
    }
}

fn useless(reader: &Reader<'_>, spot: SourcePosition, key: &'static str, kind: &'static str) {
    reader.fault(
        spot,
        format!("{key} is for kind = \"{kind}\" in [launch]: leave it out, or say that"),
    );
}
