//! The expected times of a round.

use flitcast_proto::spans::Span;
use flitcast_proto::streams::Streams;

/// The expected times of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// For each delivery, when its last byte arrives after the root's trigger; `None` for a null
    /// message.
    pub arrivals_ns: Vec<Option<u64>>,
    /// For each delivery, when it is durable and visible after the root's trigger; without files,
    /// when it arrives.
    pub visible_ns: Vec<Option<u64>>,
    /// For each PE index, for how long the PE waits for its files while it has messages to send or
    /// to receive.
    pub files_ns: Vec<u64>,
    /// For each PE index, the activity of its ports after the root's trigger.
    pub spans: Vec<Vec<Span>>,
    /// For each PE index, the certificates, the order and the streams of a gather by certification,
    /// after the root's trigger.
    pub streams: Vec<Streams>,
    /// Maximum number of flits of other PEs' messages that a PE holds at once.
    pub held_flits: u64,
}

impl Prediction {
    /// Returns the last arrival; 0 if there is nothing to send.
    pub fn round_ns(&self) -> u64 {
        let arrivals = self.arrivals_ns.iter().copied().flatten();
        arrivals.max().unwrap_or(0)
    }

    /// Returns the time from the last arrival until all messages are durable and visible.
    pub fn commit_ns(&self) -> u64 {
        let visible = self.visible_ns.iter().copied().flatten();
        visible.max().unwrap_or(0).saturating_sub(self.round_ns())
    }

    /// Combines the prediction with one for another part of the round on separate ports.
    #[must_use]
    pub fn beside(self, part: Prediction) -> Prediction {
        let later = |one: Vec<Option<u64>>, other: Vec<Option<u64>>| {
            let both = one.into_iter().zip(other);
            both.map(|(one, other)| one.max(other)).collect()
        };
        let files = self.files_ns.into_iter().zip(part.files_ns);
        let spans = self.spans.into_iter().zip(part.spans);
        Prediction {
            arrivals_ns: later(self.arrivals_ns, part.arrivals_ns),
            visible_ns: later(self.visible_ns, part.visible_ns),
            files_ns: files.map(|(one, other)| one.max(other)).collect(),
            spans: spans.map(|(one, other)| [one, other].concat()).collect(),
            streams: self.streams,
            held_flits: self.held_flits.max(part.held_flits),
        }
    }

    /// Replaces the costs of files by those in a prediction for another round of the same messages.
    #[must_use]
    pub fn with_files_of(self, other: &Prediction) -> Prediction {
        let of = self.arrivals_ns.iter().enumerate();
        let visible = of.map(|(at, arrives)| {
            let [arrived, was] = [other.arrivals_ns[at]?, other.visible_ns[at]?];
            Some((*arrives)? + was.saturating_sub(arrived))
        });
        Prediction {
            visible_ns: visible.collect(),
            files_ns: other.files_ns.clone(),
            ..self
        }
    }

    /// Returns the maximum time for which a PE waits for its files.
    pub fn disk_ns(&self) -> u64 {
        self.files_ns.iter().copied().max().unwrap_or(0)
    }
}
