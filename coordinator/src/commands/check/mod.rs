//! `flitcast check`: checks a cluster file without starting a PE. It prints all faults with their
//! positions, or else the cluster as a round would find it, and on request tries its hosts.
//! `cluster_file` defines the format.

mod report;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use flitcast_node::security::{Identity, Name, revoked as revoked_in};
use flitcast_node::system::regular;

use crate::render::exit::{FAILED, REFUSED, refused, write_out};
use flitcast_cluster::files::user_file::{FileError, PositionedError};
use flitcast_cluster::job::request::check_size;
use flitcast_cluster::launch::reach::{Tried, reach};
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::transfer::GuardArgs;
use flitcast_cluster::options::tree::{ClusterArgs, SpanningArg, TreeArgs};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::site::{cluster_file, running_cluster};
use flitcast_cluster::text::stderr;

const EXAMPLES: &str = "\
Examples:
  flitcast check cluster.toml
  flitcast check cluster.toml --root b --spanning broadcast
  flitcast check cluster.toml --format json
  flitcast check -w 'node[1-8]' --reach

Exit status: 0 if the file is good, else 2; with --reach 1 if a host fails.";

/// Arguments of `flitcast check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// The cluster file (TOML), or hosts:HOSTS for the hosts of -w HOSTS.
    #[arg(
        value_name = "FILE",
        required_unless_present = "hosts",
        conflicts_with = "hosts"
    )]
    file: Option<PathBuf>,
    /// Check hosts that ssh reaches, like node[01-64],login, instead of a cluster file.
    #[arg(short = 'w', long, value_name = "HOSTS")]
    hosts: Option<String>,
    /// With [network] in the file: the PE that becomes P0, by its name or its number in the file
    /// [default: 0].
    #[arg(long, value_name = "R")]
    root: Option<String>,
    /// With [network] in the file: how the tree spans it [default: bfs].
    #[arg(long, value_enum)]
    spanning: Option<SpanningArg>,
    /// Try all hosts: ssh, the program, which is copied to them, and the way there and back.
    #[arg(long)]
    reach: bool,
    /// Format of the result on stdout
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    format: Format,
}

/// A process, and whether its certificate or its key is in the folder; an invalid one is reported as a fault.
type Shown = (Name, bool);

/// A valid cluster file and its content.
struct CheckedClusterFile {
    path: PathBuf,
    topology: Topology,
    guard: Guard,
    /// Certificates in the folder, if there is one.
    shown: Vec<Shown>,
    revoked: usize,
}

/// Checks the file and prints its content or all faults; on request, tries its hosts.
pub fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let format = args.format;
    let hosts = args.hosts.map(|hosts| format!("hosts:{hosts}").into());
    let path: PathBuf = args.file.or(hosts).unwrap_or_default();
    let cluster = ClusterArgs {
        file: path.clone(),
        root: args.root,
        spanning: args.spanning,
    };
    let mut out = Vec::new();
    let mut code = ExitCode::SUCCESS;
    match check(cluster) {
        Ok(cluster) => {
            let tried = args.reach.then(|| tried(&cluster)).transpose()?;
            match format {
                Format::Json => report::cluster_json(&cluster, tried.as_deref(), &mut out)?,
                _ => report::cluster(&cluster, tried.as_deref(), &mut out)?,
            }
            // The result comes first, as a whole.
            write_out(&out)?;
            out.clear();
            for one in tried.iter().flatten() {
                if let Err(fault) = &one.found {
                    let pes = report::pes(&cluster, &one.pes);
                    stderr::error(format_args!("{pes}: {fault}"));
                    code = ExitCode::from(FAILED);
                }
            }
        }
        Err(faults) => {
            stderr::note(report::faults(&path, &faults).trim_end());
            if format == Format::Json {
                report::faults_json(&path, &faults, &mut out)?;
            }
            code = ExitCode::from(REFUSED);
        }
    }
    write_out(&out)?;
    Ok(code)
}

/// Tries the hosts: of a cluster that is up, as its next command would find them.
fn tried(cluster: &CheckedClusterFile) -> anyhow::Result<Vec<Tried>> {
    let mut placement = cluster.topology.places();
    if let Some(kept) = running_cluster::find(&cluster.path).map_err(|fault| refused([fault]))? {
        kept.adopt(&mut placement, running_cluster::JOIN);
    }
    let program = std::env::current_exe()?;
    conducting()?.block_on(reach(&placement, &cluster.topology.tree, &program))
}

fn check(args: ClusterArgs) -> Result<CheckedClusterFile, Vec<PositionedError>> {
    let path = args.file.clone();
    let error = |spot, fault: &dyn Display| PositionedError {
        spot,
        fault: fault.to_string(),
    };
    let whole = |fault: &dyn Display| error(None, fault);
    let file = cluster_file::load(&path).map_err(|error| match error {
        FileError::Faults { faults, .. } => faults,
        unreadable => vec![whole(&unreadable)],
    })?;
    let tree = TreeArgs::from(args);
    let settings = file.settings.clone();
    let mut faults = Vec::new();
    let trees = tree.of_cluster(&path, file, &[SpanningArg::Bfs]);
    let topology = trees.map(|mut trees| trees.remove(0));
    let topology = topology.map_err(|all| faults.extend(all.into_iter().map(|it| whole(&it))));
    let topology = topology.ok();
    if let Some(Err(fault)) = topology.as_ref().map(check_size) {
        faults.push(whole(&fault));
    }
    for named in &settings.files {
        let why = match regular::open_file(&named.path) {
            Ok(_) => continue,
            Err(error) => error.to_string(),
        };
        let (key, path) = (named.key, named.path.display());
        faults.push(error(Some(named.spot), &format!("{key}: {path}: {why}")));
    }
    let (mut shown, mut revoked) = (Vec::new(), 0);
    if let (Some(credentials), Some(topology)) = (&settings.credentials, &topology) {
        let (found, wrong) = certificates_in(&credentials.folder, topology);
        shown = found;
        // Faults of the list are reported with the coordinator's certificate.
        revoked = revoked_in(&credentials.folder).map_or(0, |list| list.len());
        let wrong = wrong.iter().map(|fault| format!("credentials: {fault}"));
        faults.extend(wrong.map(|fault| error(Some(credentials.spot), &fault)));
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

/// Returns the processes with certificates in `folder`, and the distinct faults of the
/// certificates. Only the coordinator's must be there: a PE's may be on its own host only.
fn certificates_in(folder: &Path, topology: &Topology) -> (Vec<Shown>, Vec<String>) {
    let mut shown = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    let pes = topology.tree.pes().map(Name::Pe);
    for name in std::iter::once(Name::Coordinator).chain(pes) {
        let files = [name.certificate_file(), name.key_file()];
        let exists = |file: &String| folder.join(file).symlink_metadata().is_ok();
        let is_here = files.iter().any(exists);
        if (is_here || name == Name::Coordinator)
            && let Err(fault) = Identity::load(folder, name)
        {
            // A fault of the authority concerns all certificates; it is reported once.
            let message = fault.to_string();
            if !wrong.contains(&message) {
                wrong.push(message);
            }
        }
        shown.push((name, is_here));
    }
    (shown, wrong)
}
