//! The end of a job: whether another run follows, the record that is left, and the missing messages.

use std::path::Path;

use flitcast_node::payload::{Others, destination, output_entry};
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{FilePayload, Payload};
use flitcast_proto::{DeliveryId, PeId};

use super::resumable_job::ResumableJob;
use super::retry_report::{RetryReport, Undelivered, UndeliveredReason};
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::{Conducted, RunResult};

/// The end of a run: success or a failure; `None` if it was interrupted.
type End<'a> = Option<Option<&'a Failure>>;

impl ResumableJob {
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
                if after.check_retry(failure, left).is_ok() {
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
    pub fn conclude<T>(&mut self, ended: &RunResult<T>, story: &mut RetryReport) {
        let repair = self.next().repair;
        let left = |it: DeliveryId| self.undelivered(it, &repair.stranded);
        let end = match ended {
            RunResult::Failed(failure) => Some(Some(&**failure)),
            RunResult::Done(_) => Some(None),
            RunResult::Interrupted(interrupted) => interrupted.failure.as_deref().map(Some),
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
        let is_faulty_pe_alive = failure.is_some_and(|failure| failure.is_faulty_pe_alive);
        let is_worth_it = is_faulty_pe_alive && !self.progress.dead.is_empty();
        let needs_dead = is_worth_it || self.next().sendable.is_empty();
        let options = [
            needs_dead.then_some("--revive"),
            has_changed.then_some("--force"),
        ];
        options.into_iter().flatten().collect()
    }

    /// Removes the empty folders of PEs without deliveries from an exchange. Folders that cannot be
    /// removed, such as mount points, stay.
    fn remove_empty_folders(&self) {
        let (operation, site) = (self.whole.way.operation, &self.whole.site);
        if let Some(files) = self.whole.messages.payload.files()
            && operation.collective().is_of_pairs()
            && !site.placement.is_elsewhere()
        {
            for pe in site.tree.pes() {
                let _ = std::fs::remove_dir(output_entry(&files.output, pe, &files.output_names));
            }
        }
    }

    fn undelivered(&self, delivery: DeliveryId, stranded: &[PeId]) -> Undelivered {
        let name = self.name(delivery);
        let (row, source) = (name.row, name.source.unwrap_or(name.row));
        let (kept, kept_at) = match &self.whole.messages.payload {
            Payload::Synthetic { .. } => (None, None),
            Payload::Files(FilePayload {
                input,
                spread,
                apart,
                ..
            }) => {
                let names = self.whole.site.placement.names();
                let others = Others::of(&self.whole.site.tree).named(&names);
                let entry = |input: &Path, pe| {
                    let entry = others.entry(input, pe);
                    entry.unwrap_or_else(|_| destination(input, pe))
                };
                let own = match apart {
                    true => input.clone(),
                    false => entry(input, source),
                };
                match self.whole.way.operation.collective().layout() {
                    _ if *spread => (Some(input.clone()), None),
                    Layout::Whole => (Some(input.clone()), None),
                    Layout::ByDestination => (Some(entry(input, row)), None),
                    Layout::BySource => (Some(entry(input, row)), Some(row)),
                    Layout::Shards => (Some(own), Some(source)),
                    Layout::Pieces => (Some(entry(&own, row)), Some(source)),
                }
            }
        };
        let dead = &self.progress.dead;
        let is_any = |is: &dyn Fn(&PeId) -> bool| is(&row) || is(&source);
        let fate = match () {
            _ if is_any(&|pe| dead.contains_key(pe)) => UndeliveredReason::Dead,
            _ if is_any(&|pe| stranded.contains(pe)) => UndeliveredReason::Stranded,
            _ => UndeliveredReason::Missing,
        };
        Undelivered {
            delivery: name,
            bytes: self.progress.bytes[delivery.index()],
            fate,
            kept,
            kept_at,
        }
    }
}
