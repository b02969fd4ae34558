//! Retries: a request is run and, if a PE other than P0 fails, run again on the tree repaired
//! around that PE, with the missing messages only. `--retry` does this at once and
//! `flitcast resume` later; this module has the loop of both.
//!
//! `progress` has the state between two runs and derives the next run from it; `undertaking`
//! creates the request of that run, and examines the files on the disk. `record` writes the state
//! to a file, `resumed` creates a request from such a file, and `story` describes the runs to
//! the user. Nothing here starts a process.
//!
//! A running cluster is never rearranged: a new one starts in some 10 ms, and has no connection or
//! frame of a round that failed. It has only those files that belong to messages that it continues.

mod held;
mod kept_record;
mod progress;
mod record;
mod resumed;
mod story;
mod undertaking;

use anyhow::Context as _;
use flitcast_proto::PeId;

use crate::job::request::Request;
use crate::launch::log_args::LogArgs;
use crate::rounds::outcome::{Aftermath, Outcome};
use crate::rounds::run::{self, Conducted, Ended};
use crate::system::interrupts::Interrupts;
use crate::text::stderr;
use crate::text::words::counted;

pub use progress::{Next, Progress};
pub use record::parse as parse_record;
pub use story::Story;
pub use undertaking::Undertaking;

/// Result of all runs of a request.
#[derive(Debug)]
pub struct Concluded {
    /// Result of the last run.
    pub ended: Ended<Box<Outcome>>,
    /// Request of the last run.
    pub request: Request,
    /// Description of the runs, and of the missing messages.
    pub story: Story,
    /// Complete deliveries, as the PE of the row and the length in bytes.
    pub delivered: Vec<(PeId, u64)>,
}

/// Runs a request, and retries it without the PEs that fail as often as it permits.
///
/// # Errors
///
/// Returns an error if the output cannot be locked, or if leftovers of a run cannot be removed.
pub async fn run(
    mut undertaking: Undertaking,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Concluded> {
    undertaking.begin().context("cannot name what is begun")?;
    let _lock = undertaking.lock_output()?;
    if let Some(record) = undertaking.go_on_from_record() {
        let record = record.display();
        stderr::note(format_args!("going on from the record {record}"));
    }
    let mut story = Story::default();
    let mut left = undertaking.retries();
    loop {
        let attempt = undertaking.attempt();
        if let Some(retry) = attempt.retry {
            stderr::note(&retry);
            if !undertaking.is_dry_run() {
                story.retries.push(retry);
            }
        }
        let request = attempt.request;
        let is_over = |conducted: Conducted<'_, _>| undertaking.is_over(conducted, left);
        let recorder = |known: &Aftermath| undertaking.recorder(known);
        let mut ended = run::run(&request, logs, interrupts, &recorder, is_over).await?;
        match &mut ended {
            Ended::Done(outcome) => {
                undertaking.learn_done(outcome);
                story.continued = undertaking.continued(outcome);
                if let Some(retry) = story.retries.last_mut() {
                    retry.learn_found(undertaking.names(&outcome.rounds.found));
                }
            }
            Ended::Interrupted(interrupted) => match &mut interrupted.failure {
                Some(failure) => {
                    undertaking.learn(failure);
                    failure
                        .aftermath
                        .learn_delivered(undertaking.all_delivered());
                }
                None => undertaking.learn_receipts(),
            },
            Ended::Failed(failure) if undertaking.skip_held(failure) => {
                story.retries.pop();
                continue;
            }
            Ended::Failed(failure) if undertaking.take_changed(failure)? => {
                let count = counted(failure.changed.len() as u64, "message", "messages");
                stderr::note(format!(
                    "{count} changed since the run began; --force sends the new version to all"
                ));
                story.retries.pop();
                continue;
            }
            Ended::Failed(failure) => {
                undertaking.explain_held(failure);
                undertaking.learn(failure);
                failure
                    .aftermath
                    .learn_delivered(undertaking.all_delivered());
                if let Some(retry) = story.retries.last_mut() {
                    retry.learn_found(undertaking.names(&failure.aftermath.found));
                }
                match undertaking.goes_on(failure, left) {
                    Ok(()) => {
                        left -= 1;
                        continue;
                    }
                    Err(why) => story.note = why,
                }
            }
        }
        undertaking.conclude(&ended, &mut story);
        return Ok(Concluded {
            ended,
            request,
            story,
            delivered: undertaking.delivered(),
        });
    }
}
