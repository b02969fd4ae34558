//! The errors in an output directory that are found before anything is written.

use std::path::Path;

use flitcast_node::payload::{self, OutputLock};

use crate::job::fault::RequestError;
use crate::system::folder;

/// Returns the error in an output directory, without writing to it; with `has_rows` it has a folder of
/// messages for each PE. Entries named after `pes` PEs may exist: PEs compare them later.
pub fn output_fault(
    output: &Path,
    (has_rows, pes): (bool, usize),
    input: Option<&Path>,
    force: bool,
) -> Option<RequestError> {
    let fault = |why: String| {
        Some(RequestError::Output {
            path: output.to_owned(),
            why,
        })
    };
    let mut standing = output;
    let metadata = loop {
        match std::fs::metadata(standing) {
            Ok(metadata) => break metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if standing.is_symlink() {
                    return fault(format!(
                        "`{}` is a symlink to what does not exist; make the folder that it leads \
                         to, or remove the symlink",
                        standing.display()
                    ));
                }
                standing = match standing.parent() {
                    Some(above) if above.as_os_str().is_empty() => Path::new("."),
                    Some(above) => above,
                    None => return fault(error.to_string()),
                };
            }
            Err(error) => return fault(error.to_string()),
        }
    };
    if !metadata.is_dir() {
        return fault(format!("{} is not a directory", standing.display()));
    }
    if let Err(error) = folder::check_writable(standing) {
        return fault(format!("{} is not writable: {error}", standing.display()));
    }
    if standing == output {
        if let Err(error) = OutputLock::take(output) {
            return fault(error.to_string());
        }
        let found = match payload::in_the_way(output, has_rows, pes) {
            Ok(found) => found,
            Err(error) => return fault(error.to_string()),
        };
        if let Some(found) = found.filter(|_| !force) {
            return fault(format!(
                "it holds files already; --force replaces those that arrive anew, and leaves {} alone",
                found.display()
            ));
        }
    }
    // A run must not write to the files that it reads.
    let inside =
        input.and_then(|input| Some((input.canonicalize().ok()?, standing.canonicalize().ok()?)));
    match inside {
        Some((input, standing)) if standing.starts_with(&input) => {
            fault("it lies inside the input".to_owned())
        }
        _ => None,
    }
}
