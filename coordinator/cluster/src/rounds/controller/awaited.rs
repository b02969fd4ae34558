//! The PEs that have not answered a request yet, and the limits of these waits.

use std::time::Duration;

use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::{PeId, Time};

use super::clock::after;
use super::failure_cause::{FailureCause, out_of_turn};
use crate::tuning::{ANSWER, PROBE};

/// An expected answer of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The PE is connected and has examined its files, within this time.
    Ready(Duration),
    /// The PE has measured the edge to this child, for about this time.
    Probe {
        child: PeId,
        budget: Duration,
    },
    FilesMeasured,
    HostMeasured,
    /// The PE has read this many prefixes. Each block is read within this time.
    PrefixesChecked(usize, Duration),
    /// The PE has compared this many messages with what their destinations have.
    FilesSkipped(usize, Duration),
    Prepared,
    ClockRead,
}

impl Answer {
    /// Returns the expected answer to a command, within `disk` if it concerns files; `None` if it has none.
    pub fn to(command: &ToPe, disk: Duration) -> Option<Answer> {
        Some(match command {
            ToPe::Assignment(_) => Answer::Ready(disk),
            ToPe::ProbeEdge { child, budget_ns } => Answer::Probe {
                child: *child,
                budget: Duration::from_nanos(*budget_ns),
            },
            ToPe::MeasureFiles => Answer::FilesMeasured,
            ToPe::MeasureHost { .. } => Answer::HostMeasured,
            ToPe::CheckPrefixes { prefixes } => Answer::PrefixesChecked(prefixes.len(), disk),
            ToPe::SkipFiles { present } => Answer::FilesSkipped(present.len(), disk),
            ToPe::Prepare(_) => Answer::Prepared,
            ToPe::ReadClock => Answer::ClockRead,
            _ => return None,
        })
    }

    /// Returns the time limit and the activity of the PE meanwhile, for error messages.
    fn limit(self) -> (Duration, &'static str) {
        match self {
            Answer::Ready(limit) => (limit, "reading the input and connecting"),
            Answer::Probe { .. } => (PROBE, "measuring its edges"),
            Answer::FilesMeasured => (ANSWER, "measuring what files cost"),
            Answer::HostMeasured => (ANSWER, "measuring what processes cost"),
            Answer::PrefixesChecked(_, limit) => (limit, "reading what earlier runs have left"),
            Answer::FilesSkipped(_, limit) => (limit, "reading the input"),
            Answer::Prepared => (ANSWER, "preparing the rounds"),
            Answer::ClockRead => (ANSWER, "reading its clock"),
        }
    }

    fn patience(self) -> Duration {
        match self {
            Answer::Probe { budget, .. } => PROBE + budget,
            _ => self.limit().0,
        }
    }

    /// Returns whether each processed file extends the limit.
    fn waits_for_files(self) -> bool {
        use Answer::{FilesSkipped, PrefixesChecked, Prepared, Ready};
        matches!(
            self,
            Ready(_) | PrefixesChecked(..) | FilesSkipped(..) | Prepared
        )
    }

    fn is(self, reply: &FromPe) -> bool {
        match (self, reply) {
            (Answer::Probe { child, .. }, FromPe::ProbeResult { child: of, .. }) => child == *of,
            (Answer::Ready(_), FromPe::Ready(_))
            | (Answer::FilesMeasured, FromPe::FilesMeasured(_))
            | (Answer::HostMeasured, FromPe::HostMeasured { .. })
            | (Answer::Prepared, FromPe::Prepared)
            | (Answer::ClockRead, FromPe::ClockRead { .. }) => true,
            (Answer::PrefixesChecked(count, _), FromPe::PrefixesChecked { digests }) => {
                digests.len() == count
            }
            (Answer::FilesSkipped(count, _), FromPe::FilesSkipped { skipped }) => {
                skipped.len() == count
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
struct PendingAnswer {
    pe: PeId,
    answer: Answer,
    deadline: Time,
}

#[derive(Debug)]
pub struct Awaited {
    pending: Vec<PendingAnswer>,
    /// When any PE last finished work on a file.
    worked_at: Time,
}

impl Awaited {
    pub fn new(now: Time) -> Awaited {
        Awaited {
            pending: Vec::new(),
            worked_at: now,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn add(&mut self, now: Time, pe: PeId, answer: Answer) {
        let deadline = after(now, answer.patience());
        self.pending.push(PendingAnswer {
            pe,
            answer,
            deadline,
        });
    }

    /// Records that a PE finished work on a file.
    pub fn works(&mut self, at: Option<Time>) {
        self.worked_at = self.worked_at.max(at.unwrap_or_default());
    }

    /// Removes an expected answer.
    ///
    /// # Errors
    ///
    /// Returns an error if no such answer is expected.
    pub fn take(&mut self, pe: PeId, reply: &FromPe) -> Result<(), FailureCause> {
        let is_it = |pending: &PendingAnswer| pending.pe == pe && pending.answer.is(reply);
        let Some(place) = self.pending.iter().position(is_it) else {
            return Err(out_of_turn(pe, reply));
        };
        self.pending.swap_remove(place);
        Ok(())
    }

    fn deadline_of(&self, pending: &PendingAnswer) -> Time {
        let of_files = after(self.worked_at, pending.answer.limit().0);
        match pending.answer.waits_for_files() {
            true => pending.deadline.max(of_files),
            false => pending.deadline,
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        self.pending
            .iter()
            .map(|pending| self.deadline_of(pending))
            .min()
    }

    /// Returns an error with the PEs whose answers are late, if there are any.
    pub fn late(&self, now: Time) -> Option<FailureCause> {
        let is_late = |pending: &&PendingAnswer| self.deadline_of(pending) <= now;
        let mut late: Vec<&PendingAnswer> = self.pending.iter().filter(is_late).collect();
        late.sort_by_key(|pending| pending.pe);
        let (limit, doing) = late.first()?.answer.limit();
        let late = late.iter().map(|pending| pending.pe).collect();
        Some(FailureCause::silent(late, limit, doing))
    }
}
