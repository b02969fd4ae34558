//! The job of a record, for `flitcast resume`.

use std::sync::{Arc, OnceLock};

use anyhow::anyhow;
use flitcast_node::payload::DestinationState;
use flitcast_proto::DeliveryId;
use flitcast_proto::wire::control::Payload;

use super::record::{self, Record};
use super::resumable_job::ResumableJob;
use super::resumed;
use crate::options::args::ResumeArgs;
use crate::text::deliveries;
use crate::text::faults::Faults;

impl ResumableJob {
    /// Checks the command line of `flitcast resume`, and reads the record.
    pub fn resume(args: ResumeArgs) -> Result<ResumableJob, Faults> {
        let record = record::load(&args.record)?;
        let delivered: Vec<DeliveryId> = record.delivered.iter().copied().collect();
        let whole = resumed::request(&record, &delivered, &args)?;
        let local = !whole.site.placement.is_spread();
        let mut job = ResumableJob {
            resumed: true,
            sends_changed: args.force,
            record: Arc::new(OnceLock::from(args.record)),
            ..ResumableJob::new(whole)
        };
        if !args.revive {
            job = job.without(record.dead.clone());
        }
        job.progress.recall_versions(&record.versions);
        job.progress.learn_delivered(delivered);
        job.learn_receipts();
        let mut faults = job.changed_files(&record, local, args.force);
        if !local {
            // The record lists these as missing; on other hosts this cannot be checked here.
            let known = job.whole.messages.bytes.iter().zip(&record.bytes);
            let bytes: Vec<u64> = known.map(|(known, of)| *known.max(of)).collect();
            job.progress.learn_bytes(&bytes);
        }
        let missing = job.progress.missing();
        if faults.0.is_empty() && !missing.is_empty() && job.next().sendable.is_empty() {
            let missing = deliveries::names(&job.names(&missing));
            faults.add(anyhow!(
                "nothing can be sent: what is missing is of {missing}; --revive tries them again"
            ));
        }
        faults.check()?;
        Ok(job)
    }

    /// Returns the errors in the input and the output, as far as they are on this host: sources that
    /// have changed or are gone, and other entries at the places of missing messages.
    fn changed_files(&self, record: &Record, local: bool, force: bool) -> Faults {
        let mut faults = Faults::default();
        let whole = &self.whole;
        let replaces = matches!(&whole.messages.payload, Payload::Files(it) if it.replace);
        let (operation, tree) = (whole.way.operation, &whole.site.tree);
        let input = record.files.input.display();
        for it in operation.collective().all_deliveries(tree) {
            let (was, is) = (record.bytes[it.index()], whole.messages.bytes[it.index()]);
            let delivery = operation.collective().delivery_name(tree, it);
            // Some files would arrive twice or never.
            if record.files.spread && was != is && !force {
                let pe = delivery.row;
                faults.add(anyhow!(
                    "--input: {input} has changed, so that its files would be distributed differently: \
                     {pe}'s message was {was} bytes long and is {is} bytes now"
                ));
                break;
            }
            let message = deliveries::message(delivery);
            // Files on other hosts cannot be examined here.
            if !local || was == 0 || self.progress.delivered().contains(&it) {
                continue;
            }
            if is == 0 {
                faults.add(anyhow!(
                    "--input: {message}, of {was} bytes by the record, is not in {input} any more"
                ));
            }
            if !replaces && self.standing(it) == Some(DestinationState::Another) {
                let path = self.destination_of(it).unwrap_or_default();
                faults.add(anyhow!(
                    "--output: {} is there, and by the record {message} is missing: \
                     take it away, or replace it with --force",
                    path.display()
                ));
            }
        }
        faults
    }
}
