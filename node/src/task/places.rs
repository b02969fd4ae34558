//! P0's part of a map beside the runs: the shards in its input, and the places of results in its output.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use flitcast_proto::wire::control::{FromPe, PlaceResults};

use super::folders::checked;
use crate::payload::{self, remove};

/// Returns the shards in an input and the entries of an output, as the answer to the coordinator.
pub fn list_shards(input: &Path, output: &Path) -> FromPe {
    let answer = |names, sizes, fault| FromPe::ShardsListed {
        names,
        sizes,
        results: entries(output).unwrap_or_default(),
        fault,
    };
    let names = match entries(input) {
        Ok(names) => names,
        Err(fault) => return answer(Vec::new(), Vec::new(), fault),
    };
    match payload::measure_shards(input, &names) {
        Ok(shards) => {
            let (names, sizes) = shards.into_iter().unzip();
            answer(names, sizes, String::new())
        }
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            answer(Vec::new(), Vec::new(), faults.join("\n"))
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<OsString>, String> {
    let names = payload::list(folder).map_err(|fault| fault.to_string())?;
    Ok(names.into_iter().map(OsString::from).collect())
}

/// Moves gathered results to the output, and removes what is obsolete then. Returns for each result the
/// reason why it was not moved; empty if it was.
pub fn place_results(results: &PlaceResults) -> Vec<String> {
    let PlaceResults {
        gathered, output, ..
    } = results;
    let places = results.from.iter().zip(&results.to);
    let mut faults: Vec<String> = places
        .map(|(from, to)| {
            let to = output.join(to);
            let moved = move_entry(&gathered.join(from), &to, results.replace);
            let fault = |error| format!("its result cannot become `{}`: {error}", to.display());
            moved.err().map(fault).unwrap_or_default()
        })
        .collect();
    for (fault, name) in faults.iter_mut().zip(&results.obsolete) {
        let obsolete = output.join(name);
        if fault.is_empty()
            && !name.is_empty()
            && let Err(error) = remove(&obsolete)
        {
            *fault = format!("cannot remove `{}`: {error}", obsolete.display());
        }
    }
    // Other entries in it are leftovers of failed attempts.
    if let Ok(gathered) = checked(gathered)
        && let Err(error) = remove(gathered)
    {
        tracing::warn!(%error, "a hidden folder in the output cannot be removed");
    }
    if let Err(error) = File::open(output).and_then(|folder| folder.sync_all()) {
        tracing::warn!(%error, "the names of the results may not be durable");
    }
    faults
}

fn move_entry(from: &Path, to: &Path, replace: bool) -> io::Result<()> {
    // A rename would replace an empty folder.
    match to.symlink_metadata() {
        Ok(_) if replace => remove(to)?,
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::rename(from, to)
}
