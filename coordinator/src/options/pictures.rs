//! Which pictures of a run are asked for, and whether they can be written where they are to
//! stand. How they are drawn is not said here.

use std::path::PathBuf;

use clap::Args;
use thiserror::Error;

use crate::text::whole_file::{check_place, resolved};

/// Pictures of a run.
#[derive(Debug, Default, Args)]
pub struct PictureArgs {
    /// Write a page that shows the run beside its prediction: who sent what when, when
    /// each message arrived, how the rounds differ. Opens in any browser, from disk.
    #[arg(long, value_name = "FILE.html", help_heading = "Pictures")]
    pub report: Option<PathBuf>,
    /// Write the same round as a trace for ui.perfetto.dev or chrome://tracing, with a
    /// track for each PE's send port and one for its receive port.
    #[arg(long, value_name = "FILE.json", help_heading = "Pictures")]
    pub trace: Option<PathBuf>,
}

/// The pictures that are asked for.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Where the Chrome trace goes.
    pub trace: Option<PathBuf>,
    /// Where the page goes.
    pub report: Option<PathBuf>,
}

/// Why a picture cannot be written where it is asked for.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The file can be known to be unwritable.
    #[error("{option} {}: {why}", path.display())]
    Unwritable {
        /// `--trace` or `--report`.
        option: &'static str,
        /// As typed.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Two pictures in one file.
    #[error("--trace and --report are both to be written to {}", .0.display())]
    SameFile(PathBuf),
}

impl Pictures {
    /// Checks the places, without writing to them; all that is wrong, if something is.
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

    /// Whether there is any: the PEs have to record for it.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.report.is_some()
    }
}
