//! The job of a record, for `flitcast resume`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use flitcast_node::payload::DestinationState;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{DeliveryId, DeliveryName, PeId};
use thiserror::Error;

use super::record::{self, Record};
use super::resumable_job::ResumableJob;
use super::resumed;
use crate::files::user_file::FileError;
use crate::job::request::RequestError;
use crate::options::args::ResumeArgs;
use crate::text::deliveries;

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

impl ResumableJob {
    /// Checks the command line of `flitcast resume`, and reads the record.
    pub fn resume(args: ResumeArgs) -> Result<ResumableJob, Vec<ResumeError>> {
        let record = record::load(&args.record).map_err(|error| vec![error.into()])?;
        let delivered: Vec<DeliveryId> = record.delivered.iter().copied().collect();
        let whole = resumed::request(&record, &delivered, &args).map_err(|faults| {
            let faults = faults.into_iter().map(ResumeError::from);
            faults.collect::<Vec<_>>()
        })?;
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
        if faults.is_empty() && !missing.is_empty() && job.next().sendable.is_empty() {
            faults.push(ResumeError::NothingToSend(job.names(&missing)));
        }
        match faults.is_empty() {
            true => Ok(job),
            false => Err(faults),
        }
    }

    /// Returns the errors in the input and the output, as far as they are on this host: sources that
    /// have changed or are gone, and other entries at the places of missing messages.
    fn changed_files(&self, record: &Record, local: bool, force: bool) -> Vec<ResumeError> {
        let mut faults = Vec::new();
        let whole = &self.whole;
        let replaces = matches!(whole.messages.payload, Payload::Files { replace: true, .. });
        let (operation, tree) = (whole.way.operation, &whole.site.tree);
        for it in operation.collective().all_deliveries(tree) {
            let (was, is) = (record.bytes[it.index()], whole.messages.bytes[it.index()]);
            let input = record.input.clone();
            let delivery = operation.collective().delivery_name(tree, it);
            if record.spread && was != is && !force {
                let pe = delivery.row;
                faults.push(ResumeError::DealtOtherwise { pe, was, is, input });
                break;
            }
            // Files on other hosts cannot be examined here.
            if !local || was == 0 || self.progress.delivered().contains(&it) {
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
            if !replaces && self.standing(it) == Some(DestinationState::Another) {
                let path = self.destination_of(it).unwrap_or_default();
                faults.push(ResumeError::Stands { delivery, path });
            }
        }
        faults
    }
}
