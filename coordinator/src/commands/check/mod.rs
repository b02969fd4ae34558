//! `flitcast check`: whether a cluster file is good, without starting anything. All that is
//! wrong is told, with its place; else the cluster is shown as a round would find it. What
//! a file may say is `cluster_file`'s business.

mod credentials;
mod json;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use crate::files::user_file::{FileError, Spot};
use crate::job::request::check_size;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::guard::GuardArgs;
use crate::options::tree::{ClusterArgs, SpanningArg, TreeArgs};
use crate::site::cluster_file;
use crate::site::guard::Guard;
use crate::site::topology::Topology;
use credentials::Shown;

const EXAMPLES: &str = "\
Examples:
  flitcast check cluster.toml
  flitcast check cluster.toml --root b --spanning broadcast
  flitcast check cluster.toml --format json

Exit status: 0 if the file is good, else 2.";

/// Arguments of `flitcast check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Which.
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How the result is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    format: Format,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    /// Where in the file; `None` if it is the file as a whole, or no part of it.
    spot: Option<Spot>,
    /// What.
    told: String,
}

/// A good cluster file, and what it says.
struct CheckedClusterFile {
    /// The file.
    path: PathBuf,
    /// The tree, and where its PEs are.
    topology: Topology,
    /// How its connections are guarded.
    guard: Guard,
    /// Whose certificates are in the folder, if there is one.
    shown: Vec<Shown>,
    /// How many certificates are revoked.
    revoked: usize,
}

/// Whether the file is good; prints what it says, or all that is wrong with it.
///
/// # Errors
///
/// It cannot be printed.
pub fn run(args: CheckArgs, out: &mut dyn Write) -> io::Result<bool> {
    let format = args.format;
    let path = args.cluster.file.clone();
    match check(args.cluster) {
        Ok(cluster) => {
            match format {
                Format::Json => json::cluster(&cluster, out)?,
                _ => text::cluster(&cluster, out)?,
            }
            Ok(true)
        }
        Err(faults) => {
            text::faults(&path, &faults, &mut io::stderr().lock())?;
            if format == Format::Json {
                json::faults(&path, &faults, out)?;
            }
            Ok(false)
        }
    }
}

fn check(args: ClusterArgs) -> Result<CheckedClusterFile, Vec<Wrong>> {
    let path = args.file.clone();
    let whole = |fault: &dyn std::fmt::Display| Wrong {
        spot: None,
        told: fault.to_string(),
    };
    let file = cluster_file::load(&path).map_err(|error| match error {
        FileError::Faults { faults, .. } => {
            let faults = faults.into_iter().map(|fault| Wrong {
                spot: fault.spot,
                told: fault.fault,
            });
            faults.collect()
        }
        unreadable => vec![whole(&unreadable)],
    })?;
    let tree = TreeArgs::from(args);
    let settings = file.settings.clone();
    let mut faults = Vec::new();
    let topology = match tree.of_cluster(&path, file, &[SpanningArg::Bfs]) {
        Ok(mut trees) => Some(trees.remove(0)),
        Err(all) => {
            faults.extend(all.iter().map(|fault| whole(fault)));
            None
        }
    };
    if let Some(Err(all)) = topology.as_ref().map(check_size) {
        faults.extend(all.iter().map(|fault| whole(fault)));
    }
    for named in &settings.files {
        let readable = std::fs::File::open(&named.path).and_then(|file| file.metadata());
        let why = match readable {
            Ok(metadata) if metadata.is_file() => continue,
            Ok(_) => "it is no file".to_owned(),
            Err(error) => error.to_string(),
        };
        let (key, path) = (named.key, named.path.display());
        faults.push(Wrong {
            spot: Some(named.spot),
            told: format!("{key}: {path}: {why}"),
        });
    }
    let (mut shown, mut revoked) = (Vec::new(), 0);
    if let (Some(said), Some(topology)) = (&settings.credentials, &topology) {
        let (found, wrong) = credentials::look(&said.folder, topology);
        shown = found;
        revoked = credentials::revoked_in(&said.folder);
        faults.extend(wrong.into_iter().map(|told| Wrong {
            spot: Some(said.spot),
            told: format!("credentials: {told}"),
        }));
    }
    match topology {
        Some(topology) if faults.is_empty() => Ok(CheckedClusterFile {
            path,
            guard: Guard::choose(&GuardArgs::default().or(&settings), &topology.places()),
            topology,
            shown,
            revoked,
        }),
        _ => Err(faults),
    }
}
