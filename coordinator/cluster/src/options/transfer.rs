//! Options of commands that move messages, in groups: the division of one file, the choice of files, the
//! entries of the output, the bytes on all connections, their protection, and pictures.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use flitcast_proto::{Compression, Update};

use crate::options::names::given_options;
use crate::text::faults::Faults;
use crate::text::units::parse_bytes;
use crate::text::whole_file::{check_place, resolved};

/// The division of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// Whether it is divided at the ends of lines.
    pub lines: bool,
    /// The number of bytes at whose multiples it is divided, if not at lines.
    pub block_bytes: u64,
    /// The number of parts; 0 for one for each PE.
    pub parts: u32,
}

/// Options that divide a file.
#[derive(Clone, Debug, Default, Args)]
pub struct DivisionArgs {
    /// Divide one input file at the ends of its lines: in parts of about equal length, one for each other PE.
    #[arg(long, conflicts_with_all = ["spread", "blocks"])]
    pub lines: bool,
    /// Divide one input file at multiples of this SIZE: that of a record.
    #[arg(long, value_name = "SIZE", conflicts_with = "spread")]
    pub blocks: Option<String>,
    /// Divide one input file into N equal parts: for P1 to PN; with --lines or --blocks, at their ends.
    #[arg(long, value_name = "N", conflicts_with = "spread", value_parser = parse_parts)]
    pub split: Option<u32>,
}

/// Parses `--split N`.
fn parse_parts(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("there is at least 1 part".to_owned()),
        Ok(parts) => Ok(parts),
        Err(_) => Err("it is not a number of parts".to_owned()),
    }
}

impl DivisionArgs {
    pub fn is_given(&self) -> bool {
        self.lines || self.blocks.is_some() || self.split.is_some()
    }

    /// Returns the division, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the length of a block is not a size, or zero.
    pub fn parsed(&self) -> anyhow::Result<Option<Division>> {
        let block_bytes = match &self.blocks {
            Some(blocks) => {
                let bytes = parse_bytes(blocks).map_err(|why| anyhow::anyhow!("--blocks {why}"))?;
                anyhow::ensure!(bytes > 0, "--blocks {blocks}: a block has at least a byte");
                bytes
            }
            None => u64::from(!self.lines),
        };
        Ok(self.is_given().then_some(Division {
            lines: self.lines,
            block_bytes,
            parts: self.split.unwrap_or(0),
        }))
    }
}

/// Options that choose among files, in the form of gitignore, and among their attributes.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionArgs {
    /// Leave out what matches, like '*.tmp' or /cache/: by the rules of gitignore, from the top of each
    /// message. `!PATTERN` takes it all the same.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// Leave out what the rules in this file match, in the form of .gitignore; --exclude comes after them.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub exclude_from: Vec<PathBuf>,
    /// Send only files that match, like '*.log', and all files below a folder that does, like logs/.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub include: Vec<String>,
    /// Keep owners (if the receiver is root), setuid, setgid and sticky bits, extended attributes, ACLs and
    /// hard links within a message.
    #[arg(long, hide_short_help = true)]
    pub archive: bool,
}

impl SelectionArgs {
    /// Returns the first option that chooses among files and is given.
    pub fn first_option(&self) -> Option<&'static str> {
        let options = [
            ("--exclude", !self.exclude.is_empty()),
            ("--exclude-from", !self.exclude_from.is_empty()),
            ("--include", !self.include.is_empty()),
        ];
        given_options(options).next()
    }
}

/// Options about entries of the output that differ from what is sent.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ReplacingArgs {
    /// Accept files in the output: those that arrive again are replaced.
    #[arg(long)]
    pub force: bool,
    /// Like --force, but send no file that the output has with the same size and time; it is linked
    /// or copied there.
    #[arg(long, hide_short_help = true)]
    pub update: bool,
    /// Like --update, but compare files by their contents, which both sides read.
    #[arg(long, hide_short_help = true)]
    pub checksum: bool,
}

impl ReplacingArgs {
    /// Returns whether an entry that differs from what is sent is replaced.
    pub fn replaces(self) -> bool {
        self.first_option().is_some()
    }

    pub fn first_option(self) -> Option<&'static str> {
        let options = [
            ("--force", self.force),
            ("--update", self.update),
            ("--checksum", self.checksum),
        ];
        given_options(options).next()
    }

    /// Returns which files are not sent.
    pub fn comparison(self) -> Update {
        match self {
            ReplacingArgs { checksum: true, .. } => Update::ByContent,
            ReplacingArgs { update: true, .. } => Update::ByTime,
            _ => Update::Never,
        }
    }
}

/// Names of updates in a record.
const NAMES: [(Update, &str); 2] = [(Update::ByTime, "time"), (Update::ByContent, "content")];

/// Returns the name of an update; `None` without one.
pub fn update_name(update: Update) -> Option<&'static str> {
    let named = NAMES.iter().find(|(named, _)| *named == update);
    named.map(|(_, name)| *name)
}

pub fn update_named(name: &str) -> Result<Update, String> {
    let named = NAMES.iter().find(|(_, of)| *of == name);
    let unknown = || format!("`{name}` is not an update: time or content");
    named.map(|(update, _)| *update).ok_or_else(unknown)
}

/// Options about the bytes on all connections.
#[derive(Clone, Debug, Default, Args)]
pub struct TransmissionArgs {
    /// Let each PE send at this rate at most, on all its connections together, like 200mbit (kbit, mbit,
    /// gbit), from 64kbit on.
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    pub bwlimit: Option<String>,
    /// Compress flits if that is predicted to be quicker: with lz4, or with zstd, which saves more bytes in
    /// more time and is the default if Flitcast was built with it.
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = Compression::BEST.name(),
        value_parser = available_compression,
        hide_short_help = true
    )]
    pub compress: Option<Compression>,
}

/// Returns the compression with this name, if there is one and this program was built with it.
pub fn available_compression(name: &str) -> Result<Compression, String> {
    match Compression::named(name) {
        Some(compression) if compression.is_available() => Ok(compression),
        Some(_) => Err(format!(
            "this flitcast was built without {name}; use lz4, or build it with `--features {name}`"
        )),
        None => Err(format!("`{name}` is not a compression: lz4 or zstd")),
    }
}

/// Security options of connections.
#[derive(Clone, Debug, Default, Args)]
pub struct GuardArgs {
    /// Authenticate and encrypt with the certificates in this folder (see `flitcast ca`), which
    /// must exist at the same path on each PE's host [default: certificates made for this run, or a
    /// secret on loopback addresses, where no other host can listen in].
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Security",
        conflicts_with = "insecure"
    )]
    pub credentials: Option<PathBuf>,
    /// Send everything unencrypted and unauthenticated: any host on the network can read and change
    /// it.
    #[arg(long, help_heading = "Security")]
    pub insecure: bool,
}

/// Pictures of a run.
#[derive(Clone, Debug, Default, Args)]
pub struct PictureArgs {
    /// Write a page of the run beside its prediction: each PE's sends over time, when each
    /// message arrived, and how the rounds differ. Opens in any browser, from disk.
    #[arg(long, value_name = "FILE.html", help_heading = "Pictures")]
    pub report: Option<PathBuf>,
    /// Write the same round as a trace for ui.perfetto.dev or chrome://tracing, with a
    /// track for each PE's send port and one for its receive port.
    #[arg(long, value_name = "FILE.json", help_heading = "Pictures")]
    pub trace: Option<PathBuf>,
}

impl PictureArgs {
    /// Checks the paths without writing to them; returns all errors in them.
    pub fn check(&self) -> Result<(), Faults> {
        let mut faults = Faults::default();
        for (option, path) in [("--trace", &self.trace), ("--report", &self.report)] {
            let Some(path) = path else { continue };
            if let Err(why) = check_place(path) {
                faults.add(anyhow!("{option} {}: {why}", path.display()));
            }
        }
        if let (Some(trace), Some(report)) = (&self.trace, &self.report)
            && resolved(trace) == resolved(report)
        {
            let path = report.display();
            faults.add(anyhow!(
                "--trace and --report are both to be written to {path}"
            ));
        }
        faults.check()
    }

    /// Returns whether there is any picture: PEs have to record events for it.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.report.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_the_program_lacks_are_refused() {
        assert_eq!(available_compression("lz4"), Ok(Compression::Lz4));
        let zstd = available_compression("zstd");
        match Compression::Zstd.is_available() {
            true => assert_eq!(zstd, Ok(Compression::Zstd)),
            false => assert!(zstd.unwrap_err().contains("--features zstd")),
        }
        assert!(available_compression("gzip").is_err());
    }
}
