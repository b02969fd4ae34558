//! The next run of a job: its request, and its description.

use std::sync::Arc;

use flitcast_proto::PeId;

use super::progress::NextRun;
use super::resumable_job::ResumableJob;
use super::retry_report::Retry;
use crate::job::request::{Request, Site};
use crate::rounds::outcome::Failure;
use crate::text::phrases::names;

impl ResumableJob {
    /// Returns whether one PE can be the parent of another.
    fn can_reach(&self, orphan: PeId, ancestor: PeId) -> bool {
        let Site { reach, nodes, .. } = &self.whole.site;
        reach.leads(nodes.as_deref(), orphan, ancestor)
    }

    /// Returns what follows from the state: the repaired tree and the missing messages.
    pub(super) fn next(&self) -> NextRun {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        self.progress.next(self.whole.way.operation, can_reach)
    }

    /// Checks that another run follows a failure, if `left` of the requested retries are left.
    /// Returns the reason otherwise; `None` if no retry was requested.
    pub fn check_retry(&self, failure: &Failure, left: u32) -> Result<(), Option<String>> {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        let runs = [left, self.whole.retries];
        self.progress
            .check_can_continue(&failure.failed_pes, runs, can_reach)
    }

    /// Returns the request of the next run, on the repaired tree, with the missing messages, and its
    /// description; `None` for the first run.
    pub(super) fn attempt(&self) -> (Request, Option<Retry>) {
        let whole = &self.whole;
        let mut request = whole.clone();
        request.messages.bytes = self.progress.bytes().to_vec();
        request.messages.versions = self.progress.versions();
        request.messages.recorded = self.is_recorded();
        let is_first = self.runs == 0 && !self.resumed;
        if is_first && self.progress.dead().is_empty() {
            request.messages.left_out = self.progress.delivered().iter().copied().collect();
            return (request, None);
        }
        let (request, retry) = self.on_repaired_tree(request);
        (request, (!is_first).then_some(retry))
    }

    /// Returns the request on the repaired tree, without the messages that are there, and its
    /// description.
    fn on_repaired_tree(&self, mut request: Request) -> (Request, Retry) {
        let whole = &self.whole;
        let next = self.next();
        let repair = next.repair;
        let absent: Vec<PeId> = repair.tree.absent().collect();
        for pe in &absent {
            request.site.links[pe.index()] = None;
        }
        let is_whole = absent.is_empty();
        let mut algorithm = None;
        if !is_whole {
            request.site.name = format!("{} without {}", whole.site.name, names(&absent));
            request.choice = None;
            request.others = Vec::new();
            let measured = request.profile.take();
            request.way.pacing = whole.way.pacing.or(measured.map(|profile| profile.pacing));
            request.site.tree = Arc::new(repair.tree);
        }
        if next.operation != whole.way.operation {
            request.way.operation = next.operation;
            algorithm = Some(request.way.algorithm());
        }
        request.messages.left_out = next.left_out;
        let bytes = self.progress.bytes().iter();
        let retry = Retry {
            resumed: self.runs == 0,
            left_out: self.progress.dead().clone().into_iter().collect(),
            moves: repair.moves,
            stranded: repair.stranded,
            missing: self.names(&next.missing),
            sent: self.names(&next.sendable),
            found: Vec::new(),
            messages: bytes.filter(|bytes| **bytes > 0).count(),
            algorithm,
            without_profile: !is_whole && whole.profile.is_some(),
        };
        (request, retry)
    }
}
