//! The pictures of a run that a user requests, and checks that their files can be written.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use crate::text::faults::Faults;
use crate::text::whole_file::{check_place, resolved};

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
    /// Checks the paths without writing to them.
    ///
    /// # Errors
    ///
    /// Returns all errors in them.
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
