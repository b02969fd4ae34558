//! Messages in parts, and when they are durable. The node's own code combines the parts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use flitcast_node::parts::{PartSink, Parts};
use flitcast_node::payload::PayloadError;
use flitcast_node::round::Committed;
use flitcast_plan::Algorithm;
use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, Tree};

/// The messages of a PE on all of its trees.
pub(super) struct Wholes {
    pub(super) parts: Parts,
    /// Whether messages can be in parts.
    pub(super) in_parts: bool,
    /// For each message, the number of parts that end here.
    expected: BTreeMap<MessageId, usize>,
    received: RefCell<BTreeMap<MessageId, ReceivedParts>>,
}

/// The received parts of a message in this round.
#[derive(Default)]
struct ReceivedParts {
    parts: usize,
    wrong: bool,
    durable_at: u64,
}

impl Wholes {
    pub(super) fn new(
        operation: Algorithm,
        tree: &std::sync::Arc<Tree>,
        schedules: &[PeSchedule],
    ) -> Self {
        let mut expected = BTreeMap::new();
        for message in schedules.iter().flat_map(|schedule| &schedule.receives) {
            let (whole, _) = operation.collective().whole(tree, message.id);
            *expected.entry(whole).or_default() += 1;
        }
        let parts = Parts::of(tree, schedules).expect("they are parts of messages");
        Wholes {
            in_parts: schedules.len() > 1 || parts.are_any(),
            parts,
            expected,
            received: RefCell::default(),
        }
    }

    /// Clears the state at the begin of a round.
    pub(super) fn forget(&self) {
        self.parts.forget();
        self.received.borrow_mut().clear();
    }

    /// Records that bytes of a message differ from its source's.
    pub(super) fn is_wrong(&self, whole: MessageId) {
        self.received.borrow_mut().entry(whole).or_default().wrong = true;
    }

    /// Records a complete part of a message, which is durable at `at` if it is the last one. For
    /// the last part returns whether the message is correct.
    pub(super) fn completes(&self, whole: MessageId, at: u64) -> Option<bool> {
        let mut received = self.received.borrow_mut();
        let it = received.entry(whole).or_default();
        it.parts += 1;
        it.durable_at = at;
        let all = self.expected.get(&whole).copied().unwrap_or(1);
        (it.parts >= all).then_some(!it.wrong)
    }

    fn durable_at(&self, whole: MessageId) -> u64 {
        let received = self.received.borrow();
        received.get(&whole).map_or(0, |it| it.durable_at)
    }
}

type Completion = Pin<Box<dyn Future<Output = Result<Option<Digest>, PayloadError>>>>;

/// A message or a part that is becoming durable.
struct Commit {
    message: Message,
    whole: MessageId,
    /// When it is durable; unknown while other parts are missing.
    at: Option<u64>,
    /// A future that completes with the last part.
    completion: Option<Completion>,
}

/// Messages of a lane that are becoming durable, in the order of their arrival.
#[derive(Default)]
pub(super) struct Commits(Vec<Commit>);

impl Commits {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(
        &mut self,
        message: Message,
        whole: MessageId,
        at: u64,
        part: Option<PartSink>,
    ) {
        let completion = part.map(|part| Box::pin(part.commit()) as Completion);
        self.0.push(Commit {
            message,
            whole,
            at: completion.is_none().then_some(at),
            completion,
        });
    }

    /// Returns when the next message is durable. Drops parts of messages that were given up.
    pub(super) fn next_at(&mut self, wholes: &Wholes) -> Option<u64> {
        let mut context = Context::from_waker(Waker::noop());
        self.0.retain_mut(|commit| {
            let completion = commit.completion.as_mut();
            match completion.map(|completion| completion.as_mut().poll(&mut context)) {
                Some(Poll::Ready(Ok(_))) => {
                    commit.completion = None;
                    commit.at = Some(wholes.durable_at(commit.whole));
                    true
                }
                Some(Poll::Ready(Err(_))) => false,
                Some(Poll::Pending) | None => true,
            }
        });
        self.0.iter().filter_map(|commit| commit.at).min()
    }

    /// Removes and returns the first message that is durable at `now`.
    pub(super) fn take(&mut self, now: u64) -> Option<Committed> {
        let is_durable = |commit: &Commit| commit.at.is_some_and(|at| at <= now);
        let place = self.0.iter().position(is_durable)?;
        let message = self.0.remove(place).message;
        let digest = None;
        Some(Committed { message, digest })
    }
}
