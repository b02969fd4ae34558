//! The loop of all runs of a job.

use anyhow::Context as _;
use flitcast_proto::PeId;

use super::story::Story;
use super::undertaking::Undertaking;
use crate::job::request::Request;
use crate::launch::log_args::LogArgs;
use crate::rounds::outcome::{Aftermath, Failure, Outcome};
use crate::rounds::run::{self, Conducted, Ended};
use crate::system::interrupts::Interrupts;
use crate::text::stderr;
use crate::text::words::counted;

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
                Some(failure) => learn(&mut undertaking, failure),
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
                learn(&mut undertaking, failure);
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

/// Stores the result of a failed run, and completes it from earlier ones.
fn learn(undertaking: &mut Undertaking, failure: &mut Failure) {
    undertaking.learn(failure);
    let delivered = undertaking.all_delivered();
    failure.aftermath.learn_delivered(delivered);
}
