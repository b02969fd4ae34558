//! The output directory: the errors that are found before anything is written, and its creation.

use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use flitcast_node::payload::{self, Others, OutputLock};

use crate::job::fault::of_output;
use crate::options::args::RoundArgs;
use crate::system::process;

/// Creates the output directory, unless nothing is written to it; returns the error if that fails.
pub fn create_output(args: &RoundArgs) -> Option<anyhow::Error> {
    let output = args.output.as_ref().filter(|_| !args.dry_run)?;
    let error = payload::create_durable(output).err()?;
    Some(of_output(
        output,
        format_args!("cannot be created: {error}"),
    ))
}

/// Returns the error in an output directory, without writing to it; with `has_rows` it has a folder of
/// messages for each PE. Entries named after the PEs may exist: PEs compare them later.
pub fn output_fault(
    output: &Path,
    entries: (bool, Others),
    input: Option<&Path>,
    force: bool,
) -> Option<anyhow::Error> {
    let why = check(output, entries, input, force).err()?;
    Some(of_output(output, why))
}

fn check(
    output: &Path,
    (has_rows, pes): (bool, Others),
    input: Option<&Path>,
    force: bool,
) -> anyhow::Result<()> {
    let mut standing = output;
    let metadata = loop {
        match std::fs::metadata(standing) {
            Ok(metadata) => break metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let shown = standing.display();
                ensure!(
                    !standing.is_symlink(),
                    "`{shown}` is a symlink to what does not exist; make the folder that it leads to, or \
                     remove the symlink"
                );
                standing = match standing.parent() {
                    Some(above) if above.as_os_str().is_empty() => Path::new("."),
                    Some(above) => above,
                    None => return Err(error.into()),
                };
            }
            Err(error) => return Err(error.into()),
        }
    };
    let shown = standing.display();
    ensure!(metadata.is_dir(), "{shown} is not a directory");
    process::check_writable(standing)
        .map_err(|error| anyhow!("{shown} is not writable: {error}"))?;
    if standing == output {
        OutputLock::take(output)?;
        if let Some(found) = payload::in_the_way(output, has_rows, pes)?.filter(|_| !force) {
            bail!(
                "it holds files already; --force replaces those that arrive anew, and leaves {} alone",
                found.display()
            );
        }
    }
    // A run must not write to the files that it reads.
    if let Some(Ok(input)) = input.map(Path::canonicalize)
        && let Ok(standing) = standing.canonicalize()
    {
        ensure!(!standing.starts_with(&input), "it lies inside the input");
    }
    Ok(())
}
