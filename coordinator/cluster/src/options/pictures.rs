//! The pictures of a run that a user asks for, and checks that their files can be written.

use std::path::PathBuf;

use clap::Args;
use thiserror::Error;

use crate::text::whole_file::{check_place, resolved};

/// Pictures of a run.
#[derive(Debug, Default, Args)]
pub struct PictureArgs {
    /// Write a page that shows the run beside its prediction: each PE's sends over time, when each
    /// message arrived, and how the rounds differ. Opens in any browser, from disk.
    #[arg(long, value_name = "FILE.html", help_heading = "Pictures")]
    pub report: Option<PathBuf>,
    /// Write the same round as a trace for ui.perfetto.dev or chrome://tracing, with a
    /// track for each PE's send port and one for its receive port.
    #[arg(long, value_name = "FILE.json", help_heading = "Pictures")]
    pub trace: Option<PathBuf>,
}

/// The requested pictures.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Path of the Chrome trace.
    pub trace: Option<PathBuf>,
    /// Path of the page.
    pub report: Option<PathBuf>,
}

/// A reason why a picture cannot be written.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The file cannot be written.
    #[error("{option} {}: {why}", path.display())]
    Unwritable {
        /// `--trace` or `--report`.
        option: &'static str,
        /// As typed.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Two pictures in one file.
    #[error("--trace and --report are both to be written to {}", .0.display())]
    SameFile(PathBuf),
}

impl Pictures {
    /// Checks the paths without writing to them; returns all errors.
    pub fn of(args: &PictureArgs) -> Result<Pictures, Vec<PictureError>> {
        let mut faults = Vec::new();
        for (option, path) in [("--trace", &args.trace), ("--report", &args.report)] {
            let Some(path) = path else { continue };
            if let Err(why) = check_place(path) {
                let path = path.clone();
                faults.push(PictureError::Unwritable { option, path, why });
            }
        }
        if let (Some(trace), Some(report)) = (&args.trace, &args.report)
            && resolved(trace) == resolved(report)
        {
            faults.push(PictureError::SameFile(report.clone()));
        }
        match faults.is_empty() {
            true => Ok(Pictures {
                trace: args.trace.clone(),
                report: args.report.clone(),
            }),
            false => Err(faults),
        }
    }

    /// Returns whether there is any picture: PEs have to record events for it.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.report.is_some()
    }
}
