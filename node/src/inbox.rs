//! The places where messages made of files become visible at a PE: existing entries before a round,
//! and obsolete receipts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::wire::control::{Assignment, EntryListing, FilePayload, Payload, Ready};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId, Update};
use tokio::task::spawn_blocking;

use crate::activity_monitor::ActivityMonitor;
use crate::limits::MOST_PRESENT_FILES;
use crate::payload::{
    self, DestinationState, Listing, Pattern, PayloadError, Receipt, Sweep, delivered_at, discard,
    sweep,
};
use crate::runtime::joined;

/// The places where messages become visible at this PE.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// The folders of those places, and the removal of leftovers; `None` without files, and in a
    /// dry run.
    swept: Option<(BTreeSet<PathBuf>, Sweep)>,
    /// The receipts of all messages with this PE as destination, in this cluster or an earlier one.
    receipts: Vec<Receipt>,
    /// The places of messages that may arrive in this cluster or in the gather that follows.
    awaited: Vec<Awaited>,
    /// Whether the messages are dealt from one folder.
    is_dealt: bool,
    replace: bool,
    update: Update,
    /// Whether messages have all attributes that an archive keeps.
    archive: bool,
    job: u64,
}

/// A place where a message may become visible.
#[derive(Clone, Debug)]
struct Awaited {
    delivery: DeliveryId,
    receipt: Receipt,
    /// The digest of the message that is known from earlier runs.
    known: Option<Digest>,
    /// Whether the message is sent in this cluster, and not made by a command first.
    is_sent: bool,
}

/// Returns whether messages are files without the metadata of a folder above them.
fn is_dealt(files: &FilePayload) -> bool {
    let is_spread = files.spread && !files.is_divided();
    is_spread
        || Pattern::of(&files.input).is_some_and(|pattern| pattern.is_dealt(files.chooses_entries))
}

impl Inbox {
    /// Returns the places of this PE in a run, without examining them.
    pub fn of(pe: PeId, run: u64, assignment: &Assignment) -> Inbox {
        let Payload::Files(files) = &assignment.payload else {
            return Inbox::default();
        };
        let (collective, tree) = (assignment.collective, &assignment.tree);
        let job = assignment.job.id;
        let place = |output: &Path, message: MessageId, at| {
            let delivery = collective.delivery(tree, message, at);
            let name = collective.delivery_name(tree, delivery);
            let destination = delivered_at(output, name, files);
            (delivery, Receipt::of(&destination, job))
        };
        let (mut receipts, mut awaited) = (Vec::new(), Vec::new());
        for id in collective.taken_by(tree, pe) {
            let (delivery, receipt) = place(&files.output, id, pe);
            receipts.push(receipt.clone());
            if !assignment.left_out.contains(&delivery) {
                awaited.push(Awaited {
                    delivery,
                    receipt,
                    known: assignment.version(id).and_then(|version| version.digest),
                    is_sent: true,
                });
            }
        }
        // Messages sent from here return in the gather that follows.
        if let Some(later) = &assignment.job.later_output {
            let sent = collective.messages(tree);
            for message in sent.filter(|message| message.source == pe) {
                for at in message.ends(tree) {
                    let (delivery, receipt) = place(later, message.id, at);
                    awaited.push(Awaited {
                        delivery,
                        receipt,
                        known: None,
                        is_sent: false,
                    });
                }
            }
        }
        let all = awaited.iter().map(|awaited| &awaited.receipt);
        let folders = all.chain(&receipts).map(Receipt::folder).collect();
        let sweep = Sweep {
            run,
            run_has_ended: false,
            job,
            is_exclusive: false,
        };
        Inbox {
            swept: (!assignment.dry_run).then_some((folders, sweep)),
            receipts,
            awaited,
            is_dealt: is_dealt(files),
            replace: files.replace,
            update: files.update,
            archive: files.archive,
            job,
        }
    }

    /// Removes leftovers of dead runs, and adds the existing entries and prefixes to `ready`. Entries
    /// in the way are read; `pulse` receives the progress.
    pub async fn look(
        &self,
        mut ready: Ready,
        pulse: &Arc<ActivityMonitor>,
    ) -> Result<Ready, PayloadError> {
        let (inbox, pulse) = (self.clone(), pulse.clone());
        let looked = spawn_blocking(move || {
            sweep_all(inbox.swept);
            let mut left = MOST_PRESENT_FILES;
            let as_sent = (inbox.archive, inbox.is_dealt);
            for awaited in inbox.awaited {
                let (of, receipt) = (awaited.delivery, awaited.receipt);
                receipt.check_reachable()?;
                match receipt.look()? {
                    // A delivery of this job with another version is replaced by the known one.
                    DestinationState::Delivered(digest)
                        if awaited.known.is_none_or(|known| known == digest) =>
                    {
                        ready.delivered.push(of);
                        ready.delivered_digests.push(digest);
                    }
                    DestinationState::Delivered(_) => {}
                    DestinationState::Another if !inbox.replace => {
                        let on_progress = || pulse.worked();
                        let place = &receipt.destination;
                        let read = || payload::version_at(place, as_sent, &on_progress);
                        let version = awaited.is_sent.then(read).flatten();
                        let (bytes, digest) = version.unwrap_or_default();
                        ready.standing.push(of);
                        ready.standing_bytes.push(bytes);
                        ready.standing_digests.push(digest);
                    }
                    state @ (DestinationState::Nothing | DestinationState::Another) => {
                        let on_progress = || pulse.worked();
                        let (place, update) = (&receipt.destination, inbox.update);
                        let is_listed = state == DestinationState::Another
                            && update != Update::Never
                            && awaited.is_sent;
                        let list = || Listing::at(place, update, as_sent, &on_progress);
                        if let Some(listing) = is_listed.then(list).flatten() {
                            let files = listing.keys(left);
                            left -= files.len();
                            ready.update.present.push(EntryListing {
                                delivery: of,
                                digest: listing.digest,
                                files,
                            });
                        }
                        let bytes =
                            payload::prefix_bytes(receipt.destination, inbox.job, inbox.archive);
                        ready.prefixes.extend((bytes > 0).then_some((of, bytes)));
                    }
                }
            }
            Ok(ready)
        });
        joined(looked.await)
    }

    /// Removes the receipts and the partial messages of the job, since it is not continued, and the
    /// leftovers of dead runs.
    pub async fn clear(self) {
        let removed = spawn_blocking(move || {
            for receipt in self.receipts {
                if let Err(error) = receipt.remove() {
                    tracing::warn!(%error, "a receipt is left");
                }
                if let Err(error) = discard(&receipt.destination, self.job) {
                    tracing::warn!(%error, "a part of a message is left");
                }
            }
            sweep_all(self.swept);
        });
        joined(removed.await);
    }
}

/// Removes leftovers in folders; an error in one of them concerns another run.
fn sweep_all(swept: Option<(BTreeSet<PathBuf>, Sweep)>) {
    let Some((folders, how)) = swept else { return };
    for folder in folders {
        if let Err(error) = sweep(&folder, &how) {
            tracing::info!(%error, "files of runs that have ended may be left");
        }
    }
}
