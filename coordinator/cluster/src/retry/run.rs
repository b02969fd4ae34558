//! The loop of all runs of a job.

use anyhow::Context as _;
use flitcast_proto::PeId;

use super::resumable_job::ResumableJob;
use super::retry_report::{RetryReport, UnkeptAttributes};
use crate::job::request::Request;
use crate::rounds::outcome::{DeliverySummary, Failure, Outcome};
use crate::rounds::run::{self, Conducted, RunResult};
use crate::system::interrupts::Interrupts;
use crate::text::phrases::counted;
use crate::text::stderr;

/// Result of all runs of a request.
#[derive(Debug)]
pub struct Concluded {
    /// Result of the last run.
    pub ended: RunResult<Box<Outcome>>,
    /// Request of the last run.
    pub request: Request,
    /// Description of the runs, and of the missing messages.
    pub story: RetryReport,
    /// Complete deliveries, as the PE of the row and the length in bytes.
    pub delivered: Vec<(PeId, u64)>,
}

/// Runs a request, and retries it without the PEs that fail as often as it permits.
///
/// # Errors
///
/// Returns an error if the output cannot be locked, or if leftovers of a run cannot be removed.
pub async fn run(
    mut job: ResumableJob,
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Concluded> {
    job.begin().context("cannot name what is begun")?;
    let _lock = job.lock_output()?;
    if let Some(record) = job.continue_from_record() {
        let record = record.display();
        stderr::note(format_args!("going on from the record {record}"));
    }
    let mut story = RetryReport::default();
    let mut left = job.whole.retries;
    loop {
        let (request, retry) = job.attempt();
        if let Some(retry) = retry {
            stderr::note(&retry);
            if !job.is_dry_run() {
                story.retries.push(retry);
            }
        }
        let is_over = |conducted: Conducted<'_, _>| job.is_over(conducted, left);
        let recorder = |known: &DeliverySummary| job.recorder(known);
        let mut ended = run::run(&request, logs, interrupts, &recorder, is_over).await?;
        match &mut ended {
            RunResult::Done(outcome) => {
                job.learn_done(outcome);
                story.continued = job.continued(outcome);
                story.unchanged = outcome.rounds.unsent.files;
                story.unkept = UnkeptAttributes::of(&request, outcome.rounds.unsent.unkept);
                if let Some(retry) = story.retries.last_mut() {
                    retry.learn_found(job.names(&outcome.rounds.found));
                }
            }
            RunResult::Interrupted(interrupted) => match &mut interrupted.failure {
                Some(failure) => learn(&mut job, failure),
                None => job.learn_receipts(),
            },
            RunResult::Failed(failure) if job.skip_held(failure) => {
                story.retries.pop();
                continue;
            }
            RunResult::Failed(failure) if job.take_changed(failure)? => {
                let count = counted(failure.changed.len() as u64, "message", "messages");
                stderr::note(format!(
                    "{count} changed since the run began; --force sends the new version to all"
                ));
                story.retries.pop();
                continue;
            }
            RunResult::Failed(failure) => {
                job.explain_held(failure);
                learn(&mut job, failure);
                if let Some(retry) = story.retries.last_mut() {
                    retry.learn_found(job.names(&failure.aftermath.found));
                }
                match job.check_retry(failure, left) {
                    Ok(()) => {
                        left -= 1;
                        continue;
                    }
                    Err(why) => story.note = why,
                }
            }
        }
        job.conclude(&ended, &mut story);
        return Ok(Concluded {
            ended,
            request,
            story,
            delivered: job.delivered(),
        });
    }
}

/// Stores the result of a failed run, and completes it from earlier ones.
fn learn(job: &mut ResumableJob, failure: &mut Failure) {
    job.learn(failure);
    failure.aftermath.learn_delivered(&job.progress.delivered);
}
