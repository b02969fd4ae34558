//! What is known of a request that may need several runs: who is dead, what was
//! delivered, and the request that follows from it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_node::payload::{PayloadError, Receipt, Standing, delivered_at, destination};
use flitcast_proto::ops::Layout;
use flitcast_proto::tree::Repair;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{DeliveryId, DeliveryName, PeId};
use thiserror::Error;

use super::progress::{Next, Progress};
use super::record::{self, Record};
use super::resumed;
use super::story::{Fate, Retry, Story, Undelivered};
use crate::files::user_file::FileError;
use crate::job::request::{Request, RequestError, Site};
use crate::options::args::ResumeArgs;
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::{Conducted, Ended};
use crate::site::guard::random_id;
use crate::text::deliveries;
use crate::text::words::names;

/// What is wrong with going on.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// The record is none.
    #[error(transparent)]
    Record(#[from] FileError),
    /// What it asks for cannot be done now.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A message that is said to be missing is there.
    #[error(
        "--output: {} is there, and by the record {} is missing: take it away, or replace it with --force", path.display(), deliveries::message(*.delivery)
    )]
    Stands {
        /// Which.
        delivery: DeliveryName,
        /// Where.
        path: PathBuf,
    },
    /// A message that is missing has no source any more.
    #[error("--input: {}, of {bytes} bytes by the record, is not in {} any more", deliveries::message(*.delivery), input.display())]
    Gone {
        /// Which.
        delivery: DeliveryName,
        /// How long it was.
        bytes: u64,
        /// Where it should be.
        input: PathBuf,
    },
    /// Dealt anew, files would go to others, twice or never.
    #[error(
        "--input: {} is not what it was, so that its files would be dealt otherwise: {pe}'s message was {was} bytes long and is {is} now", input.display()
    )]
    DealtOtherwise {
        /// The first whose message differs.
        pe: PeId,
        /// Its length by the record.
        was: u64,
        /// Its length now.
        is: u64,
        /// What is dealt.
        input: PathBuf,
    },
    /// All that is missing is of those who are left out.
    #[error("nothing can be sent: what is missing is of {}; --revive tries them again", deliveries::names(.0))]
    NothingToSend(Vec<DeliveryName>),
}

/// A request, and how far it has come.
#[derive(Clone, Debug)]
pub struct Undertaking {
    /// On the whole tree; its lengths are those that were known when it began.
    whole: Request,
    progress: Progress,
    /// The record, if there is one.
    record: Option<PathBuf>,
    /// Whether a round has failed.
    began: bool,
    /// Runs that have failed.
    runs: u32,
    resumed: bool,
    /// Whether it may be resumed, should it fail.
    keeps_record: bool,
}

/// How a run ended: well, or with a failure; `None` if it was interrupted.
type End<'a> = Option<Option<&'a Failure>>;

/// One run of it.
pub struct Attempt {
    /// What is run.
    pub request: Request,
    /// What is said of it; nothing of a first run.
    pub retry: Option<Retry>,
}

impl Undertaking {
    /// A request that begins.
    pub fn new(whole: Request) -> Undertaking {
        Undertaking {
            progress: Progress::new(
                whole.site.tree.clone(),
                whole.way.operation,
                whole.messages.bytes.clone(),
            ),
            whole,
            record: None,
            began: false,
            runs: 0,
            resumed: false,
            keeps_record: true,
        }
    }

    /// Gives it a name of its own, unless it has one.
    pub fn begin(&mut self) -> io::Result<()> {
        if self.whole.messages.undertaking == 0 {
            self.whole.messages.undertaking = random_id()?;
        }
        Ok(())
    }

    /// One that cannot be resumed, since what it moves does not stay.
    pub fn unrecorded(mut self) -> Undertaking {
        self.keeps_record = false;
        self
    }

    /// One that leaves these out from the start, each for its reason.
    pub fn without(mut self, dead: BTreeMap<PeId, String>) -> Undertaking {
        for (pe, why) in dead {
            self.progress.learn_dead(pe, why);
        }
        self
    }

    /// Understands `flitcast resume`.
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
            record: Some(args.record),
            resumed: true,
            ..Undertaking::new(whole)
        };
        if !args.revive {
            undertaking = undertaking.without(dead);
        }
        undertaking.progress.learn_delivered(delivered);
        undertaking.learn_receipts();
        let whole = &undertaking.whole;
        let replaces = matches!(whole.messages.payload, Payload::Files { replace: true, .. });
        let (operation, tree) = (whole.way.operation, &whole.site.tree);
        for it in operation.all_deliveries(tree) {
            let (was, is) = (record.bytes[it.index()], whole.messages.bytes[it.index()]);
            let input = record.input.clone();
            let delivery = operation.delivery_name(tree, it);
            if record.spread && was != is {
                let pe = delivery.row;
                faults.push(ResumeError::DealtOtherwise { pe, was, is, input });
                break;
            }
            // Nobody here can look at the files of other hosts.
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
                let path = delivered_at(&record.output, delivery, record.apart);
                faults.push(ResumeError::Stands { delivery, path });
            }
        }
        if !local {
            // By the record these are missing; elsewhere nobody here can tell.
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

    /// How often it goes on without a PE that fails.
    pub fn retries(&self) -> u32 {
        self.whole.retries
    }

    /// Where the messages made of files arrive.
    fn output(&self) -> Option<&Path> {
        self.whole.messages.payload.output()
    }

    /// What users call deliveries, in the order of their rows.
    pub fn names(&self, deliveries: &[DeliveryId]) -> Vec<DeliveryName> {
        let names = deliveries.iter().map(|it| self.name(*it));
        let mut names: Vec<DeliveryName> = names.collect();
        names.sort_unstable();
        names
    }

    fn name(&self, delivery: DeliveryId) -> DeliveryName {
        let (operation, tree) = (self.whole.way.operation, &self.whole.site.tree);
        operation.delivery_name(tree, delivery)
    }

    /// The receipt of a delivery, where it can be seen from here. Where each host has files of its
    /// own, a path is a place on all of them: what stands on this one says nothing of the others.
    fn receipt(&self, delivery: DeliveryId) -> Option<Receipt> {
        if self.whole.messages.payload.is_apart() {
            return None;
        }
        let destination = delivered_at(self.output()?, self.name(delivery), false);
        Some(Receipt::of(&destination, self.whole.messages.undertaking))
    }

    /// What stands where a message is to arrive, as far as that can be seen from here.
    fn standing(&self, delivery: DeliveryId) -> Option<Standing> {
        self.receipt(delivery)?.look().ok()
    }

    /// Takes for delivered what has a receipt: a PE that died after it had its message cannot
    /// tell any more. What another host has is not seen from here; there, the PE of the next
    /// run tells.
    pub fn learn_receipts(&mut self) {
        let is_there = |it: &DeliveryId| self.standing(*it) == Some(Standing::Delivered);
        let missing = self.progress.missing().into_iter();
        let there: Vec<DeliveryId> = missing.filter(is_there).collect();
        self.progress.learn_delivered(there);
    }

    /// Takes note of a run that failed.
    pub fn learn(&mut self, failure: &Failure) {
        self.runs += 1;
        let culprits = failure.culprits.iter();
        let culprits = culprits.map(|pe| (*pe, failure.why(*pe)));
        self.progress.learn(&failure.aftermath, culprits);
        self.learn_receipts();
        self.began |= failure.round.is_some();
    }

    /// Takes note of a run that ended well.
    pub fn learn_done(&mut self, outcome: &Outcome) {
        let rounds = &outcome.rounds;
        self.progress.learn_bytes(&rounds.bytes);
        let nonnull = (0..).map(DeliveryId).zip(&rounds.bytes);
        let nonnull = nonnull.filter(|(_, bytes)| **bytes > 0);
        let delivered = nonnull.map(|(it, _)| it);
        let found = rounds.found.iter().copied();
        self.progress.learn_delivered(delivered.chain(found));
    }

    /// In whose rows what was delivered stands, and how long each is.
    pub fn delivered(&self) -> Vec<(PeId, u64)> {
        let bytes = |it: &DeliveryId| (self.name(*it).row, self.progress.bytes()[it.index()]);
        self.progress.delivered().iter().map(bytes).collect()
    }

    /// Whether one PE can be another's parent.
    fn can_reach(&self, orphan: PeId, ancestor: PeId) -> bool {
        let Site { reach, nodes, .. } = &self.whole.site;
        reach.leads(nodes.as_deref(), orphan, ancestor)
    }

    fn next(&self) -> Next {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        self.progress.next(self.whole.way.operation, can_reach)
    }

    /// Whether there is another run after one that has failed, of which so many are left; if not,
    /// why not, where a retry was asked for.
    pub fn goes_on(&self, failure: &Failure, left: u32) -> Result<(), Option<String>> {
        let can_reach = |orphan, ancestor| self.can_reach(orphan, ancestor);
        let runs = [left, self.retries()];
        self.progress.goes_on(&failure.culprits, runs, can_reach)
    }

    /// The next run: on the tree repaired around the dead, with what is missing.
    pub fn attempt(&self) -> Attempt {
        let whole = &self.whole;
        let mut request = whole.clone();
        request.messages.bytes = self.progress.bytes().to_vec();
        let is_first = self.runs == 0 && !self.resumed;
        if is_first && self.progress.dead().is_empty() {
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

    /// Whether nobody will go on with it after a run, of which `left` more may follow: its
    /// receipts are of no more use.
    pub fn is_over(&self, conducted: Conducted<'_, Box<Outcome>>, left: u32) -> bool {
        let mut after = self.clone();
        match conducted {
            None => {}
            Some(Ok(outcome)) => after.learn_done(outcome),
            Some(Err(failure)) => {
                after.learn(failure);
                if after.goes_on(failure, left).is_ok() {
                    return false;
                }
            }
        }
        !after.leaves_record(conducted.map(|conducted| conducted.as_ref().err()))
    }

    /// Whether what is missing after a run is known, and is missing for good.
    fn counts(&self, end: End<'_>) -> bool {
        match end {
            // Repeated, everything was delivered in the first round.
            Some(Some(failure)) => failure.round.is_none_or(|round| round.0 == 1),
            Some(None) => self.runs > 0 || self.resumed,
            None => self.record.is_some(),
        }
    }

    /// Whether there is to be a record after a run, for who goes on with it later.
    fn leaves_record(&self, end: End<'_>) -> bool {
        let failed_now = u32::from(matches!(end, Some(Some(_))));
        let has_begun = self.began || self.record.is_some() || self.runs > failed_now;
        let is_kept = self.keeps_record && self.output().is_some();
        is_kept && has_begun && self.counts(end) && !self.progress.missing().is_empty()
    }

    /// What is left, and the record of it.
    pub fn conclude<T>(&mut self, ended: &Ended<T>, story: &mut Story) {
        let repair = self.next().repair;
        let left = |it: DeliveryId| self.undelivered(it, &repair.stranded);
        let end = match ended {
            Ended::Failed(failure) => Some(Some(&**failure)),
            Ended::Done(_) => Some(None),
            Ended::Interrupted => None,
        };
        let counts = self.counts(end);
        if counts {
            story.undelivered = self.progress.missing().into_iter().map(left).collect();
            story.undelivered.sort_by_key(|left| left.delivery);
        }
        if self.leaves_record(end) {
            match self.write_record() {
                Ok(path) => story.record = Some(path),
                Err(why) => return story.add_note(why),
            }
        } else if counts
            && story.undelivered.is_empty()
            && let Some(record) = &self.record
            && let Err(error) = std::fs::remove_file(record)
        {
            let record = record.display();
            story.add_note(format!("cannot remove the record {record}: {error}"));
        }
        if let Err(error) = self.remove_receipts(story.record.is_some()) {
            story.add_note(error.to_string());
        }
        if self.runs > 0 || end.is_none() {
            self.remove_empty_folders();
        }
    }

    /// Removes the folders of PEs that have got nothing of what is between any two. One that cannot
    /// be removed, such as where a disk is mounted, stays.
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

    /// Removes the receipts that can be seen from here, but for those that a record needs
    /// beside it. It needs none for what it says itself, and none of processes of this host:
    /// they are gone, and what they had delivered is known.
    fn remove_receipts(&self, is_recorded: bool) -> Result<(), PayloadError> {
        let (operation, tree) = (self.whole.way.operation, &self.whole.site.tree);
        let is_known = !is_recorded || !self.whole.site.placement.is_elsewhere();
        let delivered = self.progress.delivered();
        let spent = operation.all_deliveries(tree);
        let spent = spent.filter(|it| is_known || delivered.contains(it));
        let mut receipts = spent.filter_map(|it| self.receipt(it));
        receipts.try_for_each(|receipt| receipt.remove())
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

    /// Writes the record; where it stands, or why it does not.
    fn write_record(&mut self) -> Result<PathBuf, String> {
        let path = match (&self.record, self.output()) {
            (Some(path), _) => path.clone(),
            (None, Some(output)) => {
                let id = self.whole.messages.undertaking;
                // Where an output is the message itself, it may be one on this host as well.
                let is_message = self.whole.messages.payload.is_apart()
                    && self.whole.way.operation.layout() == Layout::Whole;
                let folder = match is_message {
                    true => output.parent().unwrap_or(output),
                    false => output,
                };
                folder.join(format!(".flitcast-round-{id:016x}.toml"))
            }
            (None, None) => return Err("there is nothing to record".to_owned()),
        };
        let mut whole = self.whole.clone();
        whole.messages.bytes = self.progress.bytes().to_vec();
        let (dead, delivered) = (self.progress.dead(), self.progress.delivered());
        let text = Record::of(&whole, dead, delivered)
            .map(|record| record.text())
            .map_err(|why| format!("no record is kept: {why}"))?;
        // PEs that run elsewhere write their output there; this may be the first file here.
        if let (true, Some(folder)) = (self.whole.site.placement.is_elsewhere(), path.parent()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        let written =
            crate::text::whole_file::write_whole(&path, |out| out.write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())?;
        self.record = Some(path.clone());
        Ok(path)
    }
}
