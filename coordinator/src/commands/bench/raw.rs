//! A file of all timed rounds: lines that begin with `#` contain time, host, commit and command
//! line; CSV follows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::samples::Sample;
use flitcast_cluster::rounds::outcome::MedianMinMax;
use flitcast_cluster::system::machine;
use flitcast_cluster::text::phrases::{command_line, counted};
use flitcast_cluster::text::whole_file::check_place;

/// The commit that this program was built from, with `+changes` if the sources differed from it.
const COMMIT: &str = env!("FLITCAST_COMMIT");

const HEADER: &str =
    "algorithm,pass,round,predicted_us,measured_us,collisions,slip_median_us,slip_max_us\n";

fn fault(path: &Path, why: String) -> anyhow::Error {
    anyhow!("--raw {}: {why}", path.display())
}

#[derive(Debug)]
pub struct Raw {
    path: PathBuf,
    file: File,
}

impl Raw {
    /// Checks a path without writing to it.
    pub fn fault(path: &Path) -> Option<anyhow::Error> {
        if path.symlink_metadata().is_ok() {
            let why = "it exists already, and measurements are not overwritten";
            return Some(fault(path, why.to_owned()));
        }
        check_place(path).map_err(|why| fault(path, why)).err()
    }

    /// Creates the file, which must not exist, with the text above the samples.
    pub fn create(path: &Path) -> anyhow::Result<Raw> {
        let fault = |error: io::Error| fault(path, format!("it cannot be made: {error}"));
        let mut raw = Raw {
            path: path.to_owned(),
            file: OpenOptions::new()
                .create_new(true)
                .append(true)
                .open(path)
                .map_err(fault)?,
        };
        let (host, command) = (host(), command_line(std::env::args_os()).replace('\n', " "));
        let above = format!("# commit: {COMMIT}\n# host: {host}\n# command: {command}\n");
        let begun = raw.append(&(above + HEADER));
        begun.map(|()| raw).map_err(|error| {
            // The file contains no measurements, and would block the next attempt.
            let _ = fs::remove_file(path);
            fault(error)
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends samples immediately, so that an interrupted bench keeps those that it has.
    pub fn add(&mut self, algorithm: &str, samples: &[Sample]) -> anyhow::Result<()> {
        let records = samples.iter().map(|sample| record(algorithm, sample));
        let text: String = records
            .map(|record| line(record.iter().map(String::as_str)))
            .collect();
        let written = self.append(&text);
        written.map_err(|error| fault(&self.path, format!("it cannot be written: {error}")))
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

fn host() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cores = counted(cores as u64, "core", "cores");
    format!("{}, {cores}", machine::described())
}

/// Returns a line of CSV; a value with a comma, a quote or a line break is quoted (RFC 4180).
pub fn line<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |value: &'a str| match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    };
    let values: Vec<String> = values.into_iter().map(quoted).collect();
    values.join(",") + "\n"
}

/// Formats nanoseconds as microseconds, with all digits.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
