//! The record file of a job. It is written before the first round, so that it exists if the
//! coordinator is killed; later deliveries have receipts. It is written again if a round ends with
//! messages missing, and removed when all are delivered.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_node::payload::{PayloadError, create_durable, record_name, records_in};
use flitcast_proto::DeliveryId;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{FilePayload, Payload};

use super::record::{self, Record};
use super::resumable_job::ResumableJob;
use crate::rounds::outcome::{self, DeliverySummary};
use crate::text::whole_file::write_whole;

impl ResumableJob {
    /// Returns a function that writes the record with the state before a round, or `None` if the
    /// job has no record. A failure to write does not stop the round.
    pub fn recorder(&self, known: &DeliverySummary) -> Option<outcome::Record> {
        let mut before = self.clone();
        before.progress.learn(known, []);
        let is_needed =
            self.is_recorded() && !self.is_dry_run() && !before.progress.missing().is_empty();
        is_needed.then(|| -> outcome::Record {
            Box::new(move || {
                if let Err(why) = before.write_record() {
                    tracing::info!("after a kill nothing can go on with this round: {why}");
                }
            })
        })
    }

    /// Loads the record of the same messages from the output and continues from it, unless
    /// everything is to be replaced. Returns the path of the record. Records of other messages are
    /// not changed.
    pub fn continue_from_record(&mut self) -> Option<PathBuf> {
        let replaces = matches!(&self.whole.messages.payload, Payload::Files(it) if it.replace);
        if !self.is_recorded() || self.resumed || replaces {
            return None;
        }
        let records = records_in(self.record_folder()?).ok()?;
        let mut records = records.into_iter().filter_map(|path| {
            let record = record::load(&path).ok()?;
            self.is_of_same_messages(&record).then_some((path, record))
        });
        let (path, record) = records.next()?;
        let mut bytes = vec![0; record.bytes.len()];
        let is_there = |it: &DeliveryId| {
            let place = self.destination_of(*it).filter(|_| !self.is_elsewhere());
            place.is_none_or(|place| place.symlink_metadata().is_ok())
        };
        let delivered = record.delivered.iter().copied();
        let delivered: Vec<DeliveryId> = delivered.filter(is_there).collect();
        for it in &delivered {
            bytes[it.index()] = record.bytes[it.index()];
        }
        self.whole.messages.job_id = record.job_id;
        self.progress.learn_bytes(&bytes);
        self.progress.recall_versions(&record.versions);
        self.progress.learn_delivered(delivered);
        self.learn_receipts();
        self.record.get_or_init(|| path.clone());
        self.resumed = true;
        Some(path)
    }

    fn is_elsewhere(&self) -> bool {
        self.whole.site.placement.is_elsewhere()
    }

    /// Returns whether a record has the same messages, sources and destinations as this job. The
    /// algorithm may differ.
    fn is_of_same_messages(&self, record: &Record) -> bool {
        let nothing = Default::default();
        let Ok(own) = Record::of(&self.whole, &nothing, &Default::default()) else {
            return false;
        };
        let of = |it: &Record| {
            let files = FilePayload {
                output: PathBuf::new(),
                replace: false,
                ..it.files.clone()
            };
            let (site, operation) = (it.site.clone(), it.way.operation.collective());
            let tree = (it.tree.len(), it.tree.root());
            (operation, tree, site.cluster, site.pes, files)
        };
        of(&own) == of(record)
    }

    /// Returns the folder for the record; `None` if there is no output.
    fn record_folder(&self) -> Option<&Path> {
        let output = self.output()?;
        // An output that is the message itself cannot hold the record.
        let is_message = self.whole.messages.payload.is_apart()
            && self.whole.way.operation.collective().layout() == Layout::Whole;
        Some(match is_message {
            true => output.parent().unwrap_or(output),
            false => output,
        })
    }

    pub(super) fn write_record(&mut self) -> Result<PathBuf, String> {
        let path = match (self.record.get(), self.record_folder()) {
            (Some(path), _) => path.clone(),
            (None, Some(folder)) => folder.join(record_name(self.whole.messages.job_id)),
            (None, None) => return Err("there is nothing to record".to_owned()),
        };
        let mut whole = self.whole.clone();
        whole.messages.bytes = self.progress.bytes.clone();
        whole.messages.versions = self.progress.versions();
        let (dead, delivered) = (&self.progress.dead, &self.progress.delivered);
        let record = Record::of(&whole, dead, delivered);
        let text = record
            .map_err(|why| format!("no record is kept: {why}"))?
            .text();
        // PEs on other hosts write their output there, so this may be the first file on this host.
        if let (true, Some(folder)) = (self.is_elsewhere(), path.parent()) {
            let missing = folder.ancestors().take_while(|above| !above.exists());
            let missing = missing.last();
            create_durable(folder)
                .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
            if let Some(top) = missing {
                self.made.get_or_init(|| top.to_owned());
            }
        }
        let written = write_whole(&path, |out| out.write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())?;
        self.record.get_or_init(|| path.clone());
        Ok(path)
    }

    /// Removes the record, if there is one, and the folders created for it, if they are empty.
    pub(super) fn remove_record(&self) -> Result<(), String> {
        let Some(record) = self.record.get() else {
            return Ok(());
        };
        match std::fs::remove_file(record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let record = record.display();
                return Err(format!("cannot remove the record {record}: {error}"));
            }
            _ => {}
        }
        if let Some(top) = self.made.get() {
            let made = record.ancestors().skip(1);
            for folder in made.take_while(|folder| folder.starts_with(top)) {
                let _ = std::fs::remove_dir(folder);
            }
        }
        Ok(())
    }

    /// Removes the other records of the same messages and their receipts, since all messages have
    /// been sent again.
    pub(super) fn remove_outdated_records(&self) -> anyhow::Result<()> {
        let Some(folder) = self.record_folder().filter(|_| self.is_recorded()) else {
            return Ok(());
        };
        let mut has_removed = false;
        for path in records_in(folder)? {
            if record::load(&path).is_ok_and(|record| self.is_of_same_messages(&record)) {
                std::fs::remove_file(&path)?;
                has_removed = true;
            }
        }
        if has_removed {
            self.sweep_output(true)?;
        }
        Ok(())
    }

    /// Removes the receipts on this host, except those that a record needs. A record needs no
    /// receipt of a delivery that it lists, nor of processes of this host, whose deliveries are
    /// known.
    pub(super) fn remove_receipts(&self, is_recorded: bool) -> Result<(), PayloadError> {
        let (operation, tree) = (self.whole.way.operation, &self.whole.site.tree);
        let is_known = !is_recorded || !self.is_elsewhere();
        let delivered = &self.progress.delivered;
        let spent = operation.collective().all_deliveries(tree);
        let spent = spent.filter(|it| is_known || delivered.contains(it));
        let mut receipts = spent.filter_map(|it| self.receipt(it));
        receipts.try_for_each(|receipt| receipt.remove())
    }
}
