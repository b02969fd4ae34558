//! A file of all timed rounds: lines that begin with `#` contain time, host, commit and command
//! line; CSV follows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::csv_line::{line, micros};
use super::samples::Sample;
use flitcast_cluster::rounds::outcome::MedianMinMax;
use flitcast_cluster::system::folder::check_writable;
use flitcast_cluster::system::machine;
use flitcast_cluster::text::words::counted;

/// The commit that this program was built from, with `+changes` if the sources differed from it.
const COMMIT: &str = env!("FLITCAST_COMMIT");

const COLUMNS: [&str; 8] = [
    "algorithm",
    "pass",
    "round",
    "predicted_us",
    "measured_us",
    "collisions",
    "slip_median_us",
    "slip_max_us",
];

/// A file of samples that cannot be written.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct SamplesFileError {
    path: PathBuf,
    why: String,
}

/// An open file of samples.
#[derive(Debug)]
pub struct Raw {
    path: PathBuf,
    file: File,
}

impl Raw {
    /// Checks a path without writing to it.
    pub fn fault(path: &Path) -> Option<SamplesFileError> {
        let fault = |why: String| {
            let path = path.to_owned();
            Some(SamplesFileError { path, why })
        };
        if path.symlink_metadata().is_ok() {
            return fault("it is there already, and measurements are not overwritten".to_owned());
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return fault(format!("there is no folder {}", folder.display()));
        }
        match check_writable(folder) {
            Ok(()) => None,
            Err(error) => fault(format!("{} is not writable: {error}", folder.display())),
        }
    }

    /// Creates the file with the text above the samples.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or already exists.
    pub fn create(path: &Path) -> Result<Raw, SamplesFileError> {
        let fault = |error: io::Error| SamplesFileError {
            path: path.to_owned(),
            why: format!("it cannot be made: {error}"),
        };
        let mut raw = Raw {
            path: path.to_owned(),
            file: OpenOptions::new()
                .create_new(true)
                .append(true)
                .open(path)
                .map_err(fault)?,
        };
        let (host, command) = (host(), command_line());
        let above = format!("# commit: {COMMIT}\n# host: {host}\n# command: {command}\n");
        let begun = raw.append(&(above + &line(COLUMNS)));
        begun.map(|()| raw).map_err(|error| {
            // The file contains no measurements, and would block the next attempt.
            let _ = fs::remove_file(path);
            fault(error)
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends samples immediately, so that an interrupted bench keeps those that it has.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails.
    pub fn add(&mut self, algorithm: &str, samples: &[Sample]) -> Result<(), SamplesFileError> {
        let records = samples.iter().map(|sample| record(algorithm, sample));
        let text: String = records
            .map(|record| line(record.iter().map(String::as_str)))
            .collect();
        self.append(&text).map_err(|error| SamplesFileError {
            path: self.path.clone(),
            why: format!("it cannot be written: {error}"),
        })
    }

    /// Appends these lines, or none of them if writing fails.
    fn append(&mut self, text: &str) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(text.as_bytes());
        if written.is_err() {
            self.file.set_len(before)?;
        }
        written
    }
}

fn record(algorithm: &str, sample: &Sample) -> [String; 8] {
    let slip = MedianMinMax::of(sample.slips_ns.iter().copied());
    let slip = |pick: fn(MedianMinMax) -> u64| slip.map_or(String::new(), |s| micros(pick(s)));
    [
        algorithm.to_owned(),
        sample.pass.to_string(),
        sample.round.to_string(),
        micros(sample.predicted_ns),
        micros(sample.measured_ns),
        sample.collisions.to_string(),
        slip(|s| s.median),
        slip(|s| s.max),
    ]
}

/// Describes the host: name, system and cores.
fn host() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cores = counted(cores as u64, "core", "cores");
    format!("{}, {cores}", machine::described())
}

/// Returns the command line, quoted for a shell.
fn command_line() -> String {
    let words = std::env::args_os().map(|word| quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, on one line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''").replace('\n', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        for (word, pasted) in [
            ("--lengths", "--lengths"),
            ("uniform:0..1MiB:7", "uniform:0..1MiB:7"),
            ("", "''"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;*", "'$HOME;*'"),
            ("a\nb", "'a b'"),
        ] {
            assert_eq!(quoted(word), pasted);
        }
    }
}
