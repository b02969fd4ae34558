//! Going on after a failure: a request is run, and when a PE fails that is not P0, run
//! again on the tree repaired around it, with what is missing only. `--retry` does it at
//! once, `flitcast resume` later; both are one loop, here.
//!
//! What is known between two runs, and what follows from that, is `progress`; `undertaking` makes
//! the next request of it, and looks at what lies on the disk. How it is kept in a file is told in
//! `record`, how a request is made of such a file in `resumed`, what the user is told of it in
//! `story`. Nothing here starts a process.
//!
//! Nobody is moved while a cluster runs: a new one starts in some 10 ms, and has no connection,
//! word or staged file of a round that failed.

mod progress;
mod record;
mod resumed;
mod story;
mod undertaking;

use anyhow::Context as _;
use flitcast_proto::PeId;

use crate::job::request::Request;
use crate::launch::log_args::LogArgs;
use crate::rounds::outcome::Outcome;
use crate::rounds::run::{self, Conducted, Ended, Interrupts};
use crate::text::printable::printable;

pub use progress::{Next, Progress};
pub use record::{Record, parse as parse_record};
pub use story::Story;
pub use undertaking::Undertaking;

/// How it all ended.
#[derive(Debug)]
pub struct Concluded {
    /// The last run.
    pub ended: Ended<Box<Outcome>>,
    /// What it was.
    pub request: Request,
    /// What was done, and what is left.
    pub story: Story,
    /// In whose rows what was delivered stands, and how long each is.
    pub delivered: Vec<(PeId, u64)>,
}

/// Runs a request, and goes on without whom it loses for as often as it is allowed to.
///
/// # Errors
///
/// What was half written could not be removed.
pub async fn run(
    mut undertaking: Undertaking,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Concluded> {
    undertaking.begin().context("cannot name what is begun")?;
    let mut story = Story::default();
    let mut left = undertaking.retries();
    loop {
        let attempt = undertaking.attempt();
        if let Some(retry) = attempt.retry {
            eprintln!("{}", printable(&retry));
            story.retries.push(retry);
        }
        let request = attempt.request;
        let is_over = |conducted: Conducted<'_, _>| undertaking.is_over(conducted, left);
        let ended = run::run(&request, logs, interrupts, is_over).await?;
        match &ended {
            Ended::Done(outcome) => {
                undertaking.learn_done(outcome);
                if let Some(retry) = story.retries.last_mut() {
                    retry.learn_found(undertaking.names(&outcome.rounds.found));
                }
            }
            Ended::Interrupted => undertaking.learn_receipts(),
            Ended::Failed(failure) => {
                undertaking.learn(failure);
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
