//! A PE of a predicted round: its part of the round, its ports and its current work.

use std::collections::{BTreeSet, VecDeque};

use flitcast_proto::items::Packing;
use flitcast_proto::ops::{COALESCE_LIMIT_BYTES, PeSchedule};
use flitcast_proto::round::{Action, Piece, Round, Sized};
use flitcast_proto::{MessageId, PeId};

use super::resources::PortQueue;

/// A PE of a predicted round.
pub struct PredictedPe {
    pub round: Round,
    /// The work in progress.
    pub work: Option<Work>,
    /// Since when it waits for an event.
    pub waits_since: Option<u64>,
    /// Whether it polls a few times before it sleeps.
    pub polls_before_sleep: bool,
    /// Whether consecutive short frames to one neighbour go together.
    pub gathers: bool,
    pub gathered: CoalescedFrames,
    /// Own messages for several neighbours that were sent to at least one of them.
    pub set_up: BTreeSet<MessageId>,
    /// Whether it has done nothing yet.
    pub fresh: bool,
    /// Transmissions in progress, while wires have no room for them.
    pub writes: VecDeque<Action>,
    /// When the work was requested.
    pub began: u64,
    /// Since when it waits for its files.
    pub waiting_for_files_since: Option<u64>,
    /// Total time of waits for its files.
    pub files_ns: u64,
    /// The ports, if all edges share them.
    pub send: PortQueue,
    pub receive: PortQueue,
}

impl PredictedPe {
    /// Creates a PE that has done nothing; it may sleep until something happens.
    pub fn new(round: Round, schedule: &PeSchedule, sleeps: bool) -> PredictedPe {
        PredictedPe {
            round,
            work: None,
            waits_since: sleeps.then_some(0),
            polls_before_sleep: schedule.polls_before_sleep,
            gathers: schedule.in_any_order,
            gathered: CoalescedFrames::default(),
            set_up: BTreeSet::new(),
            fresh: true,
            writes: VecDeque::new(),
            began: 0,
            waiting_for_files_since: None,
            files_ns: 0,
            send: PortQueue::default(),
            receive: PortQueue::default(),
        }
    }

    /// Records whether its files let it continue at `now`.
    pub fn record_file_wait(&mut self, now: u64, can: bool) -> bool {
        let since = *self.waiting_for_files_since.get_or_insert(now);
        if can {
            self.files_ns += now - since;
            self.waiting_for_files_since = None;
        }
        can
    }
}

/// Short frames that go together with the next one: the receiver, and the number of bytes.
#[derive(Default)]
pub struct CoalescedFrames(Option<(PeId, u64)>);

impl CoalescedFrames {
    /// Returns whether a frame for this neighbour goes together with them.
    pub fn is_for(&self, to: PeId) -> bool {
        self.0.is_some_and(|(receiver, _)| receiver == to)
    }

    /// Adds a frame of `bytes` bytes to a neighbour.
    pub fn add(&mut self, to: PeId, bytes: u64) {
        let before = self.0.filter(|(receiver, _)| *receiver == to);
        let bytes = before.map_or(0, |(_, bytes)| bytes) + bytes;
        self.0 = (bytes <= COALESCE_LIMIT_BYTES as u64).then_some((to, bytes));
    }
}

/// Work on one frame, which takes a core.
pub enum Work {
    /// An action that puts a frame into a wire.
    Out(Action),
    /// A frame received from a wire, and whether it arrived together with the previous one.
    In(PeId, Sized, bool),
}

/// Outgoing flits.
#[derive(Clone, Copy)]
pub struct FlitsOut {
    pub to: PeId,
    pub piece: Piece,
    pub packing: Packing,
}

impl FlitsOut {
    /// Returns the flits that an action sends, if it sends any.
    pub fn of(action: &Action) -> Option<FlitsOut> {
        let (to, piece, packing) = match *action {
            Action::SendFlit { to, piece, packing }
            | Action::SendHeld {
                to, piece, packing, ..
            } => (to, piece, packing),
            Action::SendAgain { to, piece } | Action::Forward { to, piece, .. } => {
                (to, piece, Packing::Flits)
            }
            _ => return None,
        };
        Some(FlitsOut { to, piece, packing })
    }
}

/// The next step of a PE.
pub enum Next {
    Act(Work),
    /// Wait for an event, or until this time.
    Sleep(Option<u64>),
    /// Wait for files, without sleeping.
    Stays,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_to_one_neighbour_are_coalesced_up_to_a_limit() {
        let mut gathered = CoalescedFrames::default();
        let bytes = COALESCE_LIMIT_BYTES as u64 / 2;
        let mut is_coalesced = |to, bytes| {
            let joins = gathered.is_for(PeId(to));
            gathered.add(PeId(to), bytes);
            joins
        };
        assert!(!is_coalesced(1, bytes), "it is the first");
        assert!(is_coalesced(1, bytes));
        assert!(is_coalesced(1, 1), "it does not fit, and takes them along");
        assert!(!is_coalesced(1, bytes));
        assert!(!is_coalesced(2, bytes), "it goes elsewhere");
        assert!(!is_coalesced(1, 3 * bytes), "it is too long");
        assert!(!is_coalesced(1, bytes));
    }
}
