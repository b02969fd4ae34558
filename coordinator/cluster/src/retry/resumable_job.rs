//! A job: a request that may need several runs, its state, and the request of its next run.
//!
//! An entry that another run has left in the output and that equals its message is skipped; any other entry is an
//! error. A run that finds such entries ends before its first round and is repeated with their versions, with which
//! the sources compare their messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use flitcast_node::payload::{DestinationState, OutputLock, Receipt, delivered_at};
use flitcast_proto::{DeliveryId, DeliveryName, MessageId, PeId};

use super::progress::{DeliveryProgress, NextRun};
use super::retry_report::{Continued, Retry};
use crate::job::request::{Request, Site};
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::sweep;
use crate::site::guard::random_id;
use crate::text::phrases::names;

/// A job: a request and its state.
#[derive(Clone, Debug)]
pub struct ResumableJob {
    /// The request on the whole tree, with the lengths known at the beginning.
    pub(super) whole: Request,
    pub(super) progress: DeliveryProgress,
    /// The path of the record, if it was written. Clones share it, since a clone writes the record
    /// before a round.
    pub(super) record: Arc<OnceLock<PathBuf>>,
    /// The topmost folder that was created for the record.
    pub(super) made: Arc<OnceLock<PathBuf>>,
    /// Whether a round has failed.
    pub(super) began: bool,
    /// The number of failed runs.
    pub(super) runs: u32,
    pub(super) resumed: bool,
    /// Whether a failed run can be resumed.
    pub(super) keeps_record: bool,
    /// The messages that were not sent because the output has them already.
    pub(super) skipped: BTreeSet<DeliveryId>,
    /// Whether changed messages are sent again to all PEs (`--force`).
    pub(super) sends_changed: bool,
}

impl ResumableJob {
    /// Returns the job before its first run.
    pub fn new(whole: Request) -> ResumableJob {
        ResumableJob {
            progress: DeliveryProgress::new(
                whole.site.tree.clone(),
                whole.way.operation,
                whole.messages.bytes.clone(),
            ),
            whole,
            record: Arc::default(),
            made: Arc::default(),
            began: false,
            runs: 0,
            resumed: false,
            keeps_record: true,
            sends_changed: false,
            skipped: BTreeSet::new(),
        }
    }

    /// Chooses a random id, unless the job has one.
    pub fn begin(&mut self) -> io::Result<()> {
        if self.whole.messages.job_id == 0 {
            self.whole.messages.job_id = random_id()?;
        }
        Ok(())
    }

    /// Locks the output, if that is on this host, until the result is dropped, and removes what
    /// runs that have ended left in it.
    ///
    /// # Errors
    ///
    /// Returns an error if another run has locked the output, or it cannot be listed.
    pub fn lock_output(&self) -> anyhow::Result<Option<OutputLock>> {
        let Some(output) = self.own_output() else {
            return Ok(None);
        };
        let lock = OutputLock::take(output).context("cannot lock the output")?;
        self.sweep_output(lock.is_exclusive())?;
        Ok(Some(lock))
    }

    /// Removes what runs that have ended left in the output, if that is on this host.
    pub(super) fn sweep_output(&self, is_exclusive: bool) -> anyhow::Result<()> {
        // The runs of this job have no ids yet.
        sweep(&self.whole, 0, is_exclusive)
    }

    /// Returns the job without a record, since its messages are temporary.
    pub fn unrecorded(mut self) -> ResumableJob {
        self.keeps_record = false;
        self
    }

    /// Returns the job without these PEs, each excluded for a reason.
    pub fn without(mut self, dead: BTreeMap<PeId, String>) -> ResumableJob {
        for (pe, why) in dead {
            self.progress.learn_dead(pe, why);
        }
        self
    }

    /// Returns the output of messages that consist of files.
    pub(super) fn output(&self) -> Option<&Path> {
        self.whole.messages.payload.output()
    }

    /// Returns the output, if it is on this host and may be changed.
    fn own_output(&self) -> Option<&Path> {
        let is_own = !self.whole.site.placement.is_elsewhere() && !self.is_dry_run();
        self.output().filter(|_| is_own)
    }

    /// Returns whether nothing is sent or written.
    pub fn is_dry_run(&self) -> bool {
        self.whole.is_dry_run()
    }

    /// Returns the names of deliveries, in the order of their rows.
    pub fn names(&self, deliveries: &[DeliveryId]) -> Vec<DeliveryName> {
        let mut names: Vec<DeliveryName> = deliveries.iter().map(|it| self.name(*it)).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn name(&self, delivery: DeliveryId) -> DeliveryName {
        let (operation, tree) = (self.whole.way.operation, &self.whole.site.tree);
        operation.collective().delivery_name(tree, delivery)
    }

    /// Returns the path of a delivered message that consists of files.
    pub(super) fn destination_of(&self, delivery: DeliveryId) -> Option<PathBuf> {
        let files = self.whole.messages.payload.files()?;
        Some(delivered_at(&files.output, self.name(delivery), files))
    }

    /// Returns the receipt of a delivery on this host; `None` if each PE has separate files, since
    /// a path on this host shows nothing about other hosts.
    pub(super) fn receipt(&self, delivery: DeliveryId) -> Option<Receipt> {
        if self.whole.messages.payload.is_apart() {
            return None;
        }
        let destination = self.destination_of(delivery)?;
        Some(Receipt::of(&destination, self.whole.messages.job_id))
    }

    /// Returns the entry at the place of a delivery on this host.
    pub(super) fn standing(&self, delivery: DeliveryId) -> Option<DestinationState> {
        self.receipt(delivery)?.look().ok()
    }

    /// Marks deliveries with a receipt on this host as complete: a PE that died after its delivery
    /// cannot report it. On other hosts the PEs of the next run report their receipts.
    pub fn learn_receipts(&mut self) {
        for it in self.progress.missing() {
            if let Some(DestinationState::Delivered(digest)) = self.standing(it)
                && self.progress.learn_digest(it, Some(&digest))
            {
                self.progress.learn_delivered([it]);
            }
        }
    }

    /// Stores the result of a failed run.
    pub fn learn(&mut self, failure: &Failure) {
        self.runs += 1;
        let failed_pes = failure.failed_pes.iter();
        let failed_pes = failed_pes.map(|pe| (*pe, failure.why(*pe)));
        self.progress.learn(&failure.aftermath, failed_pes);
        self.learn_receipts();
        self.began |= failure.round.is_some();
    }

    /// Returns whether a run failed before it sent anything because messages have changed, and
    /// whether these are to be sent again.
    pub(super) fn takes_changed(&self, failure: &Failure) -> bool {
        self.sends_changed && failure.round.is_none() && !failure.changed.is_empty()
    }

    /// Removes the deliveries and receipts of changed messages, if these are to be sent again.
    /// Returns whether they are.
    ///
    /// # Errors
    ///
    /// Returns an error if the system gives no random number, or receipts cannot be removed.
    pub fn take_changed(&mut self, failure: &Failure) -> anyhow::Result<bool> {
        if !self.takes_changed(failure) {
            return Ok(false);
        }
        self.remove_receipts(false)?;
        for message in &failure.changed {
            self.progress.forget(*message);
        }
        self.whole.messages.job_id = random_id()?;
        self.sends_changed = false;
        Ok(true)
    }

    /// Stores the result of a successful run.
    pub fn learn_done(&mut self, outcome: &Outcome) {
        let rounds = &outcome.rounds;
        self.progress.learn_bytes(&rounds.unsent.lengths);
        let nonnull = (0..).map(DeliveryId).zip(&rounds.whole);
        let delivered = nonnull.filter_map(|(it, bytes)| (*bytes > 0).then_some(it));
        let delivered = delivered.chain(rounds.found.iter().copied());
        self.skipped.extend(&rounds.unsent.messages);
        self.progress.learn_versions(delivered, &rounds.seen);
    }

    /// Returns the messages that a run has continued behind an existing prefix.
    pub fn continued(&self, outcome: &Outcome) -> Vec<Continued> {
        let rounds = &outcome.rounds;
        let lengths = rounds.whole.iter().zip(&rounds.bytes);
        let deliveries = (0..).map(DeliveryId).zip(lengths);
        let continued = deliveries.filter(|(_, (whole, sent))| sent < whole);
        let continued = continued.map(|(it, (whole, sent))| Continued {
            delivery: self.name(it),
            there: whole - sent,
            bytes: *whole,
        });
        continued.collect()
    }

    /// Returns the complete deliveries as PE of the row and length in bytes.
    pub fn delivered(&self) -> Vec<(PeId, u64)> {
        let bytes = |it: &DeliveryId| (self.name(*it).row, self.progress.bytes[it.index()]);
        self.progress.delivered.iter().map(bytes).collect()
    }

    /// Returns whether the job must have a record.
    pub(super) fn is_recorded(&self) -> bool {
        self.keeps_record && self.output().is_some()
    }

    pub(super) fn has_record(&self) -> bool {
        self.record.get().is_some()
    }
}

impl ResumableJob {
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
        request.messages.bytes = self.progress.bytes.clone();
        request.messages.versions = self.progress.versions();
        request.messages.recorded = self.is_recorded();
        let is_first = self.runs == 0 && !self.resumed;
        if is_first && self.progress.dead.is_empty() {
            request.messages.left_out = self.progress.delivered.iter().copied().collect();
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
        let bytes = self.progress.bytes.iter();
        let retry = Retry {
            resumed: self.runs == 0,
            left_out: self.progress.dead.clone().into_iter().collect(),
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

impl ResumableJob {
    /// Marks entries that a run has found in the output as delivered, until a source differs from
    /// them. Returns whether the run must be repeated without them.
    pub fn skip_held(&mut self, failure: &Failure) -> bool {
        for (delivery, version) in &failure.holds {
            self.progress.hold(*delivery, version);
            self.skipped.insert(*delivery);
        }
        !failure.holds.is_empty()
    }

    /// Names the entries that differ from their sources, if that is the cause of the failure.
    pub fn explain_held(&mut self, failure: &mut Failure) {
        let changed: BTreeSet<MessageId> = failure.changed.iter().copied().collect();
        let (operation, tree) = (self.whole.way.operation, self.whole.site.tree.clone());
        let differs = |it: &DeliveryId| {
            let message = operation.collective().delivered(&tree, *it);
            message.is_some_and(|(message, _)| changed.contains(&message.id))
        };
        let (differing, same): (BTreeSet<DeliveryId>, BTreeSet<DeliveryId>) =
            self.skipped.iter().copied().partition(differs);
        self.skipped = same;
        if differing.is_empty() {
            return;
        }
        let places = differing.iter().filter_map(|it| {
            let (_, at) = operation.collective().delivered(&tree, *it)?;
            Some(self.whole.place_of(*it, at))
        });
        let places: Vec<String> = places.collect();
        failure.cause = format!(
            "--output: these exist already, and differ from what is sent; \
             move them away, or replace them with --force:\n    {}",
            places.join("\n    ")
        );
        failure.at = None;
        failure.refused = true;
        failure.failed_pes.clear();
        failure.changed.clear();
        for message in changed {
            self.progress.forget(message);
        }
    }

    /// Returns the messages that were skipped because they are in the output.
    pub fn skipped(&self) -> Vec<DeliveryName> {
        let skipped: Vec<DeliveryId> = self.skipped.iter().copied().collect();
        self.names(&skipped)
    }
}
