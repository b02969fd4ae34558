//! The PEs that were asked for something and have not answered, and how long they may take.

use std::time::Duration;

use flitcast_proto::wire::control::FromPe;
use flitcast_proto::{PeId, Time};

use super::Update;
use super::clock::after;
use super::trouble::{Trouble, out_of_turn};

/// For a word to go to a PE and back.
pub const ANSWER: Duration = Duration::from_secs(10);
/// For one edge to be measured, beyond its budget and what the PE itself allows.
const PROBE: Duration = Duration::from_secs(30);

/// What a PE is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To be connected, with its files looked at, within this time.
    Ready(Duration),
    /// To have measured the edge to this child, for about so long.
    Probe { child: PeId, budget: Duration },
    /// To have found out what files cost.
    FilesMeasured,
    /// To have found out what processes cost.
    HostMeasured,
    /// To be prepared for rounds.
    Prepared,
}

impl Answer {
    /// How long a PE may take, as it is told.
    fn limit(self) -> Duration {
        match self {
            Answer::Ready(limit) => limit,
            Answer::Probe { .. } => PROBE,
            Answer::FilesMeasured | Answer::HostMeasured | Answer::Prepared => ANSWER,
        }
    }

    /// How long it may take.
    fn patience(self) -> Duration {
        match self {
            Answer::Probe { budget, .. } => PROBE + budget,
            _ => self.limit(),
        }
    }

    /// What the PE is doing meanwhile.
    fn doing(self) -> &'static str {
        match self {
            Answer::Ready(_) => "reading the input and connecting",
            Answer::Probe { .. } => "measuring its edges",
            Answer::FilesMeasured => "measuring what files cost",
            Answer::HostMeasured => "measuring what processes cost",
            Answer::Prepared => "preparing the rounds",
        }
    }

    /// Whether who looks through a million files may take longer, file by file.
    fn waits_for_files(self) -> bool {
        matches!(self, Answer::Ready(_) | Answer::Prepared)
    }

    /// Whether a word answers it.
    fn is(self, word: &FromPe) -> bool {
        match (self, word) {
            (Answer::Probe { child, .. }, FromPe::ProbeResult { child: of, .. }) => child == *of,
            (Answer::Ready(_), FromPe::Ready(_))
            | (Answer::FilesMeasured, FromPe::FilesMeasured(_))
            | (Answer::HostMeasured, FromPe::HostMeasured { .. })
            | (Answer::Prepared, FromPe::Prepared) => true,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Asked {
    pe: PeId,
    answer: Answer,
    deadline: Time,
}

/// All answers that are awaited.
#[derive(Debug)]
pub struct Awaited {
    asked: Vec<Asked>,
    /// When any PE last got done with a file.
    worked_at: Time,
}

impl Awaited {
    pub fn new(now: Time) -> Awaited {
        Awaited {
            asked: Vec::new(),
            worked_at: now,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// A PE is asked for something.
    pub fn ask(&mut self, now: Time, pe: PeId, answer: Answer) {
        let deadline = after(now, answer.patience());
        self.asked.push(Asked {
            pe,
            answer,
            deadline,
        });
    }

    /// A PE got done with a file.
    pub fn works(&mut self, at: Option<Time>) {
        self.worked_at = self.worked_at.max(at.unwrap_or_default());
    }

    /// Takes an answer, and what it tells.
    ///
    /// # Errors
    ///
    /// The word answers nothing.
    pub fn take(&mut self, pe: PeId, word: FromPe) -> Result<Option<Update>, Trouble> {
        let is_it = |asked: &Asked| asked.pe == pe && asked.answer.is(&word);
        let Some(place) = self.asked.iter().position(is_it) else {
            return Err(out_of_turn(pe, &word));
        };
        self.asked.swap_remove(place);
        Ok(match word {
            FromPe::Ready(ready) => Some(Update::Ready(pe, ready)),
            FromPe::ProbeResult { child, exchanges } => Some(Update::Probed(child, exchanges)),
            FromPe::FilesMeasured(costs) => Some(Update::FilesMeasured(pe, costs)),
            FromPe::HostMeasured { found } => Some(Update::HostMeasured(pe, found)),
            _ => None,
        })
    }

    fn deadline_of(&self, asked: &Asked) -> Time {
        match asked.answer.waits_for_files() {
            true => asked
                .deadline
                .max(after(self.worked_at, asked.answer.limit())),
            false => asked.deadline,
        }
    }

    /// When the first answer is late.
    pub fn deadline(&self) -> Option<Time> {
        self.asked.iter().map(|asked| self.deadline_of(asked)).min()
    }

    /// Those who have not answered in time, if there are any.
    pub fn late(&self, now: Time) -> Option<Trouble> {
        let is_late = |asked: &&Asked| self.deadline_of(asked) <= now;
        let mut late: Vec<&Asked> = self.asked.iter().filter(is_late).collect();
        late.sort_by_key(|asked| asked.pe);
        let answer = late.first()?.answer;
        Some(Trouble::Silent {
            silent: late.iter().map(|asked| asked.pe).collect(),
            limit: answer.limit(),
            doing: answer.doing(),
        })
    }
}
