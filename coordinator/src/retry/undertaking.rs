//! A job: a request that may need several runs, its state, and the request of the next run.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use flitcast_node::payload::{
    OutputLock, Receipt, Standing, Sweep, delivered_at, destination, sweep_output,
};
use flitcast_proto::ops::Layout;
use flitcast_proto::tree::Repair;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{DeliveryId, DeliveryName, PeId};
use thiserror::Error;

use super::progress::{Next, Progress};
use super::record::{self, Record};
use super::resumed;
use super::story::{Continued, Fate, Retry, Story, Undelivered};
use crate::files::user_file::FileError;
use crate::job::request::{Request, RequestError, Site};
use crate::options::args::ResumeArgs;
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::{Conducted, Ended};
use crate::site::guard::random_id;
use crate::text::deliveries;
use crate::text::words::names;

/// The reason why `flitcast resume` is refused.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// An invalid record.
    #[error(transparent)]
    Record(#[from] FileError),
    /// A request that cannot be carried out.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An entry at the place of a message that the record lists as missing.
    #[error(
        "--output: {} is there, and by the record {} is missing: take it away, or replace it with --force", path.display(), deliveries::message(*.delivery)
    )]
    Stands {
        /// The message and its destination.
        delivery: DeliveryName,
        /// The path of the entry.
        path: PathBuf,
    },
    /// A missing message without a source.
    #[error("--input: {}, of {bytes} bytes by the record, is not in {} any more", deliveries::message(*.delivery), input.display())]
    Gone {
        /// The message and its destination.
        delivery: DeliveryName,
        /// The length of the message by the record, in bytes.
        bytes: u64,
        /// The input that lacks the message.
        input: PathBuf,
    },
    /// Files that are dealt differently than before, so that some would arrive twice or never.
    #[error(
        "--input: {} has changed, so that its files would be distributed differently: {pe}'s message was {was} bytes long and is {is} bytes now", input.display()
    )]
    DealtOtherwise {
        /// The first PE whose message differs.
        pe: PeId,
        /// The length of the message by the record, in bytes.
        was: u64,
        /// The present length of the message, in bytes.
        is: u64,
        /// The folder whose files are dealt.
        input: PathBuf,
    },
    /// Missing messages that all belong to excluded PEs.
    #[error("nothing can be sent: what is missing is of {}; --revive tries them again", deliveries::names(.0))]
    NothingToSend(Vec<DeliveryName>),
}

/// A job: a request and its state.
#[derive(Clone, Debug)]
pub struct Undertaking {
    /// The request on the whole tree, with the lengths known at the beginning.
    pub(super) whole: Request,
    pub(super) progress: Progress,
    /// The path of the record, if it was written. Clones share it, since a clone writes the record
    /// before a round.
    pub(super) record: Arc<OnceLock<PathBuf>>,
    /// The topmost folder that was created for the record.
    pub(super) made: Arc<OnceLock<PathBuf>>,
    /// Whether a round has failed.
    began: bool,
    /// The number of failed runs.
    runs: u32,
    pub(super) resumed: bool,
    /// Whether a failed run can be resumed.
    keeps_record: bool,
    /// The messages that were not sent because the output has them already.
    pub(super) skipped: BTreeSet<DeliveryId>,
    /// Whether changed messages are sent again to all PEs (`--force`).
    sends_changed: bool,
}

/// The end of a run: success or a failure; `None` if it was interrupted.
type End<'a> = Option<Option<&'a Failure>>;

/// One run of a job.
pub struct Attempt {
    /// The request of this run.
    pub request: Request,
    /// The description of the retry; `None` for the first run.
    pub retry: Option<Retry>,
}

impl Undertaking {
    /// Returns the job before its first run.
    pub fn new(whole: Request) -> Undertaking {
        Undertaking {
            progress: Progress::new(
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
        if self.whole.messages.undertaking == 0 {
            self.whole.messages.undertaking = random_id()?;
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
        let whole = &self.whole;
        let Some(output) = self.own_output() else {
            return Ok(());
        };
        let how = Sweep {
            // The runs of this job have no ids yet.
            run: 0,
            run_has_ended: true,
            job: whole.messages.undertaking,
            is_exclusive,
        };
        Ok(sweep_output(
            output,
            whole.way.operation.is_of_pairs(),
            &how,
        )?)
    }

    /// Returns the job without a record, since its messages are temporary.
    pub fn unrecorded(mut self) -> Undertaking {
        self.keeps_record = false;
        self
    }

    /// Returns the job without these PEs, each excluded for a reason.
    pub fn without(mut self, dead: BTreeMap<PeId, String>) -> Undertaking {
        for (pe, why) in dead {
            self.progress.learn_dead(pe, why);
        }
        self
    }

    /// Checks the command line of `flitcast resume`, and reads the record.
    pub fn resume(args: ResumeArgs) -> Result<Undertaking, Vec<ResumeError>> {
        let mut faults = Vec::new();
        let record = record::load(&args.record).map_err(|error| vec![error.into()])?;
        let Record {
            dead, delivered, ..
        } = record.clone();
        let delivered_list: Vec<DeliveryId> = delivered.iter().copied().collect();
        let request = resumed::request(&record, &delivered_list, &args);
        let request = request.map_err(|found| {
            let found = found.into_iter().map(ResumeError::from);
            faults.extend(found);
        });
        let Ok(whole) = request else {
            return Err(faults);
        };
        let local = !whole.site.placement.is_spread();
        let mut undertaking = Undertaking {
            record: Arc::new(OnceLock::from(args.record)),
            resumed: true,
            sends_changed: args.force,
            ..Undertaking::new(whole)
        };
        if !args.revive {
            undertaking = undertaking.without(dead);
        }
        undertaking.progress.recall_versions(&record.versions);
        undertaking.progress.learn_delivered(delivered);
        undertaking.learn_receipts();
        let whole = &undertaking.whole;
        let replaces = matches!(whole.messages.payload, Payload::Files { replace: true, .. });
        let (operation, tree) = (whole.way.operation, &whole.site.tree);
        for it in operation.all_deliveries(tree) {
            let (was, is) = (record.bytes[it.index()], whole.messages.bytes[it.index()]);
            let input = record.input.clone();
            let delivery = operation.delivery_name(tree, it);
            if record.spread && was != is && !args.force {
                let pe = delivery.row;
                faults.push(ResumeError::DealtOtherwise { pe, was, is, input });
                break;
            }
            // Files on other hosts cannot be examined here.
            if !local || was == 0 || undertaking.progress.delivered().contains(&it) {
                continue;
            }
            if is == 0 {
                let bytes = was;
                faults.push(ResumeError::Gone {
                    delivery,
                    bytes,
                    input,
                });
            }
            if !replaces && undertaking.standing(it) == Some(Standing::Another) {
                let path = undertaking.destination_of(it).unwrap_or_default();
                faults.push(ResumeError::Stands { delivery, path });
            }
        }
        if !local {
            // The record lists these as missing; on other hosts this cannot be checked here.
            let known = undertaking.whole.messages.bytes.iter().zip(&record.bytes);
            let bytes: Vec<u64> = known.map(|(known, of)| *known.max(of)).collect();
            undertaking.progress.learn_bytes(&bytes);
        }
        let missing = undertaking.progress.missing();
        if faults.is_empty() && !missing.is_empty() && undertaking.next().sendable.is_empty() {
            faults.push(ResumeError::NothingToSend(undertaking.names(&missing)));
        }
        match faults.is_empty() {
            true => Ok(undertaking),
            false => Err(faults),
        }
    }

    /// Returns the number of requested retries.
    pub fn retries(&self) -> u32 {
        self.whole.retries
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
        let names = deliveries.iter().map(|it| self.name(*it));
        let mut names: Vec<DeliveryName> = names.collect();
        names.sort_unstable();
        names
    }

    pub(super) fn name(&self, delivery: DeliveryId) -> DeliveryName {
        let (operation, tree) = (self.whole.way.operation, &self.whole.site.tree);
        operation.delivery_name(tree, delivery)
    }

    /// Returns the path of a delivered message that consists of files.
    pub(super) fn destination_of(&self, delivery: DeliveryId) -> Option<PathBuf> {
        let is_apart = self.whole.messages.payload.is_apart();
        Some(delivered_at(self.output()?, self.name(delivery), is_apart))
    }

    /// Returns the receipt of a delivery on this host; `None` if each PE has separate files, since
    /// a path on this host shows nothing about other hosts.
    pub(super) fn receipt(&self, delivery: DeliveryId) -> Option<Receipt> {
        if self.whole.messages.payload.is_apart() {
            return None;
        }
        let destination = self.destination_of(delivery)?;
        Some(Receipt::of(&destination, self.whole.messages.undertaking))
    }

    /// Returns the entry at the place of a delivery on this host.
    fn standing(&self, delivery: DeliveryId) -> Option<Standing> {
        self.receipt(delivery)?.look().ok()
    }

    /// Marks deliveries with a receipt on this host as complete: a PE that died after its delivery
    /// cannot report it. On other hosts the PEs of the next run report their receipts.
    pub fn learn_receipts(&mut self) {
        for it in self.progress.missing() {
            if let Some(Standing::Delivered(digest)) = self.standing(it)
                && self.progress.learn_digest(it, Some(&digest))
            {
                self.progress.learn_delivered([it]);
            }
        }
    }

    /// Stores the result of a failed run.
    pub fn learn(&mut self, failure: &Failure) {
        self.runs += 1;
        let culprits = failure.culprits.iter();
        let culprits = culprits.map(|pe| (*pe, failure.why(*pe)));
        self.progress.learn(&failure.aftermath, culprits);
        self.learn_receipts();
        self.began |= failure.round.is_some();
    }

    /// Returns whether a run failed before it sent anything because messages have changed, and
    /// whether these are to be sent again.
    fn takes_changed(&self, failure: &Failure) -> bool {
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
        self.whole.messages.undertaking = random_id()?;
        self.sends_changed = false;
        Ok(true)
    }

    /// Stores the result of a successful run.
    pub fn learn_done(&mut self, outcome: &Outcome) {
        let rounds = &outcome.rounds;
        self.progress.learn_bytes(&rounds.whole);
        let nonnull = (0..).map(DeliveryId).zip(&rounds.whole);
        let nonnull = nonnull.filter(|(_, bytes)| **bytes > 0);
        let delivered = nonnull.map(|(it, _)| it);
        let found = rounds.found.iter().copied();
        let delivered = delivered.chain(found);
        self.progress.learn_versions(delivered, &rounds.seen);
    }

    /// Returns the messages that a run has continued behind an existing prefix.
    pub fn continued(&self, outcome: &Outcome) -> Vec<Continued> {
        let rounds = &outcome.rounds;
        let lengths = rounds.whole.iter().zip(&rounds.bytes);
        let deliveries = (0..).map(DeliveryId).zip(lengths);
        let continued = deliveries.filter(|(_, (whole, sent))| sent < whole);
        continued
            .map(|(it, (whole, sent))| Continued {
                delivery: self.name(it),
                there: whole - sent,
                bytes: *whole,
            })
            .collect()
    }

    /// Returns all deliveries that are known to be complete.
    pub fn all_delivered(&self) -> &BTreeSet<DeliveryId> {
        self.progress.delivered()
    }

    /// Returns the complete deliveries as PE of the row and length in bytes.
    pub fn delivered(&self) -> Vec<(PeId, u64)> {
        let bytes = |it: &DeliveryId| (self.name(*it).row, self.progress.bytes()[it.index()]);
        self.progress.delivered().iter().map(bytes).collect()
    }

    /// Returns whether one PE can be the parent of another.
    fn can_reach(&self, orphan: PeId, ancestor: PeId) -> bool {
        let Site { reach, nodes, .. } = &self.whole.site;
        reach.leads(nodes.as_deref(), orphan, ancestor)
    }

    fn next(&self) -> Next {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        self.progress.next(self.whole.way.operation, can_reach)
    }

    /// Checks that another run follows a failure, if `left` of the requested retries are left.
    /// Returns the reason otherwise; `None` if no retry was requested.
    pub fn goes_on(&self, failure: &Failure, left: u32) -> Result<(), Option<String>> {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        let runs = [left, self.retries()];
        self.progress.goes_on(&failure.culprits, runs, can_reach)
    }

    /// Returns the next run, on the repaired tree, with the missing messages.
    pub fn attempt(&self) -> Attempt {
        let whole = &self.whole;
        let mut request = whole.clone();
        request.messages.bytes = self.progress.bytes().to_vec();
        request.messages.versions = self.progress.versions();
        request.messages.recorded = self.is_recorded();
        let is_first = self.runs == 0 && !self.resumed;
        if is_first && self.progress.dead().is_empty() {
            request.messages.left_out = self.progress.delivered().iter().copied().collect();
            return Attempt {
                request,
                retry: None,
            };
        }
        let next = self.next();
        let Repair {
            tree,
            moves,
            stranded,
        } = next.repair;
        let gone: Vec<PeId> = tree.absent().collect();
        for pe in &gone {
            request.site.links[pe.index()] = None;
        }
        let is_whole = gone.is_empty();
        let mut algorithm = None;
        if !is_whole {
            request.site.name = format!("{} without {}", whole.site.name, names(&gone));
            request.choice = None;
            let measured = request.profile.take();
            request.way.pacing = whole.way.pacing.or(measured.map(|profile| profile.pacing));
            request.site.tree = Arc::new(tree);
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
            moves,
            stranded,
            missing: self.names(&next.missing),
            sent: self.names(&next.sendable),
            found: Vec::new(),
            messages: bytes.filter(|bytes| **bytes > 0).count(),
            algorithm,
            without_profile: !is_whole && whole.profile.is_some(),
        };
        Attempt {
            request,
            retry: (!is_first).then_some(retry),
        }
    }

    /// Returns whether the job must have a record.
    pub(super) fn is_recorded(&self) -> bool {
        self.keeps_record && self.output().is_some()
    }

    pub(super) fn has_record(&self) -> bool {
        self.record.get().is_some()
    }

    /// Returns whether no further run follows, if `left` retries are left, so that receipts are no
    /// longer needed.
    pub fn is_over(&self, conducted: Conducted<'_, Box<Outcome>>, left: u32) -> bool {
        let mut after = self.clone();
        match conducted {
            // The receipts of earlier runs stay.
            _ if self.is_dry_run() => return false,
            None => {}
            Some(Ok(outcome)) => after.learn_done(outcome),
            // The run is repeated with the versions of the entries in the output.
            Some(Err(failure)) if !failure.holds.is_empty() => return false,
            // The next run is another job, with the changed messages.
            Some(Err(failure)) if self.takes_changed(failure) => return true,
            Some(Err(failure)) => {
                after.learn(failure);
                if after.goes_on(failure, left).is_ok() {
                    return false;
                }
            }
        }
        !after.leaves_record(conducted.map(|conducted| conducted.as_ref().err()))
    }

    /// Returns whether the missing messages of a run are known and final.
    fn counts(&self, end: End<'_>) -> bool {
        match end {
            // If rounds are repeated, the first one has delivered everything.
            Some(Some(failure)) => failure.round.is_none_or(|round| round.0 == 1),
            Some(None) => self.runs > 0 || self.resumed,
            None => self.has_record(),
        }
    }

    /// Returns whether a run leaves a record, so that it can be resumed.
    fn leaves_record(&self, end: End<'_>) -> bool {
        let failed_now = u32::from(matches!(end, Some(Some(_))));
        let has_begun = self.began || self.has_record() || self.runs > failed_now;
        self.is_recorded() && has_begun && self.counts(end) && !self.progress.missing().is_empty()
    }

    /// Writes or removes the record after the last run, and describes the missing messages.
    pub fn conclude<T>(&mut self, ended: &Ended<T>, story: &mut Story) {
        let repair = self.next().repair;
        let left = |it: DeliveryId| self.undelivered(it, &repair.stranded);
        let end = match ended {
            Ended::Failed(failure) => Some(Some(&**failure)),
            Ended::Done(_) => Some(None),
            Ended::Interrupted(interrupted) => interrupted.failure.as_deref().map(Some),
        };
        story.skipped = self.skipped();
        if self.is_dry_run() {
            return;
        }
        let counts = self.counts(end);
        if counts {
            story.undelivered = self.progress.missing().into_iter().map(left).collect();
            story.undelivered.sort_by_key(|left| left.delivery);
        }
        if self.leaves_record(end) {
            match self.write_record() {
                Ok(path) => {
                    story.record = Some(path);
                    story.resume_options = self.resume_options(end.flatten());
                }
                Err(why) => return story.add_note(why),
            }
        } else if let Err(why) = self.remove_record() {
            story.add_note(why);
        }
        let is_complete = matches!(end, Some(None)) && story.record.is_none();
        if is_complete && let Err(error) = self.remove_outdated_records() {
            story.add_note(format!("an outdated record is left: {error}"));
        }
        if let Err(error) = self.remove_receipts(story.record.is_some()) {
            story.add_note(error.to_string());
        }
        // Without a record, incomplete messages cannot be continued.
        if story.record.is_none()
            && let Err(error) = self.sweep_output(false)
        {
            story.add_note(format!("an incomplete message is left: {error}"));
        }
        if self.runs > 0 || end.is_none() {
            self.remove_empty_folders();
        }
    }

    /// Returns the options that `flitcast resume` needs to continue this job.
    fn resume_options(&self, failure: Option<&Failure>) -> Vec<&'static str> {
        let has_changed = failure.is_some_and(|failure| !failure.changed.is_empty());
        // A PE that could report its error, such as a full disk, is alive.
        let culprit_lives = failure.is_some_and(|failure| failure.culprit_lives);
        let is_worth_it = culprit_lives && !self.progress.dead().is_empty();
        let needs_dead = is_worth_it || self.next().sendable.is_empty();
        let revive = needs_dead.then_some("--revive");
        revive
            .into_iter()
            .chain(has_changed.then_some("--force"))
            .collect()
    }

    /// Removes the empty folders of PEs without deliveries from an exchange. Folders that cannot be
    /// removed, such as mount points, stay.
    fn remove_empty_folders(&self) {
        let (operation, site) = (self.whole.way.operation, &self.whole.site);
        if let Some(output) = self.output()
            && operation.is_of_pairs()
            && !site.placement.is_elsewhere()
        {
            for pe in site.tree.pes() {
                let _ = std::fs::remove_dir(destination(output, pe));
            }
        }
    }

    fn undelivered(&self, delivery: DeliveryId, stranded: &[PeId]) -> Undelivered {
        let name = self.name(delivery);
        let (row, source) = (name.row, name.source.unwrap_or(name.row));
        let (kept, kept_at) = match &self.whole.messages.payload {
            Payload::Synthetic { .. } => (None, None),
            Payload::Files {
                input,
                spread,
                apart,
                ..
            } => {
                let own = match apart {
                    true => input.clone(),
                    false => destination(input, source),
                };
                match self.whole.way.operation.layout() {
                    _ if *spread => (Some(input.clone()), None),
                    Layout::Whole => (Some(input.clone()), None),
                    Layout::ByDestination => (Some(destination(input, row)), None),
                    Layout::BySource => (Some(destination(input, row)), Some(row)),
                    Layout::Shards => (Some(own), Some(source)),
                    Layout::Pieces => (Some(destination(&own, row)), Some(source)),
                }
            }
        };
        let dead = self.progress.dead();
        let is_any = |is: &dyn Fn(&PeId) -> bool| is(&row) || is(&source);
        let fate = match () {
            _ if is_any(&|pe| dead.contains_key(pe)) => Fate::Dead,
            _ if is_any(&|pe| stranded.contains(pe)) => Fate::Stranded,
            _ => Fate::Missing,
        };
        Undelivered {
            delivery: name,
            bytes: self.progress.bytes()[delivery.index()],
            fate,
            kept,
            kept_at,
        }
    }
}
