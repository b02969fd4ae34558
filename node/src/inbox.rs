//! The places where messages made of files become visible at a PE: existing entries before a round,
//! and obsolete receipts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::wire::control::{Assignment, Payload};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId};
use tokio::task::spawn_blocking;

use crate::activity_monitor::ActivityMonitor;
use crate::blocking::joined;
use crate::payload::{
    self, DestinationState, PayloadError, Receipt, Sweep, delivered_at, discard, sweep,
};

/// The places where messages become visible at this PE.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The folders of those places, and the removal of leftovers; `None` without files, and in a
    /// dry run.
    swept: Option<(BTreeSet<PathBuf>, Sweep)>,
    /// The receipts of all messages with this PE as destination, in this cluster or an earlier one.
    receipts: Vec<(DeliveryId, Receipt)>,
    /// The places of messages that may arrive in this cluster or in the gather that follows.
    awaited: Vec<Awaited>,
    /// Whether the messages are dealt from one folder.
    is_dealt: bool,
    /// Whether existing entries are replaced.
    replace: bool,
    /// The job.
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

/// Entries at the places, and prefixes of messages.
#[derive(Debug, Default)]
pub struct Found {
    /// The deliveries that this job has made, and the digest of each.
    pub delivered: Vec<DeliveryId>,
    pub digests: Vec<Digest>,
    /// The deliveries of which an earlier run has left a prefix, and the length of each in bytes.
    pub prefixes: Vec<(DeliveryId, u64)>,
    /// The deliveries whose places have other entries, which must not be replaced.
    pub standing: Vec<DeliveryId>,
    /// Length in bytes and digest of each of those entries, read as a message; zeros if it cannot
    /// be read as one.
    pub standing_versions: Vec<(u64, Digest)>,
}

impl Inbox {
    /// Returns the places of this PE in a run, without examining them.
    pub fn of(pe: PeId, run: u64, assignment: &Assignment) -> Inbox {
        let Payload::Files {
            output,
            replace,
            apart,
            spread,
            ..
        } = &assignment.payload
        else {
            return Inbox::default();
        };
        let (collective, tree) = (assignment.collective, &assignment.tree);
        let receipt = |output: &Path, message: MessageId, at| {
            let delivery = collective.delivery(tree, message, at);
            let name = collective.delivery_name(tree, delivery);
            let destination = delivered_at(output, name, *apart);
            let receipt = Receipt::of(&destination, assignment.job.id);
            (delivery, receipt)
        };
        let taken = collective.taken_by(tree, pe).into_iter();
        let all: Vec<_> = taken.map(|id| receipt(output, id, pe)).collect();
        let digest_of = |of: DeliveryId| {
            let (message, _) = collective.delivered(tree, of)?;
            let mut known = assignment.versions.iter();
            known.find(|version| version.message == message.id)?.digest
        };
        let may_come = |(of, _): &&(DeliveryId, Receipt)| !assignment.left_out.contains(of);
        let may_come = all.iter().filter(may_come).cloned();
        let mut awaited: Vec<_> = may_come
            .map(|(delivery, receipt)| Awaited {
                delivery,
                receipt,
                known: digest_of(delivery),
                is_sent: true,
            })
            .collect();
        // Messages sent from here return in the gather that follows.
        if let Some(later) = &assignment.job.later_output {
            let sent = collective.messages(tree);
            for message in sent.filter(|message| message.source == pe) {
                let comes_back = message.ends(tree).map(|at| receipt(later, message.id, at));
                awaited.extend(comes_back.map(|(delivery, receipt)| Awaited {
                    delivery,
                    receipt,
                    known: None,
                    is_sent: false,
                }));
            }
        }
        let awaited_at = awaited.iter().map(|awaited| awaited.receipt.folder());
        let folders = awaited_at.chain(all.iter().map(|(_, receipt)| receipt.folder()));
        let sweep = Sweep {
            run,
            run_has_ended: false,
            job: assignment.job.id,
            is_exclusive: false,
        };
        Inbox {
            swept: (!assignment.dry_run).then(|| (folders.collect(), sweep)),
            receipts: all,
            awaited,
            is_dealt: *spread,
            replace: *replace,
            job: assignment.job.id,
        }
    }

    /// Removes leftovers of dead runs, and examines the existing entries. Entries in the way are
    /// read; `pulse` receives the progress.
    pub async fn look(&self, pulse: &Arc<ActivityMonitor>) -> Result<Found, PayloadError> {
        let (awaited, replace, is_dealt) = (self.awaited.clone(), self.replace, self.is_dealt);
        let job = self.job;
        let pulse = pulse.clone();
        let swept = self.swept.clone();
        let looked = spawn_blocking(move || {
            sweep_all(swept);
            let mut found = Found::default();
            for awaited in awaited {
                let Awaited {
                    delivery: of,
                    receipt,
                    known,
                    is_sent,
                } = awaited;
                receipt.check_reachable()?;
                match receipt.look()? {
                    // A delivery of this job with another version is replaced by the known one.
                    DestinationState::Delivered(digest)
                        if known.is_none_or(|known| known == digest) =>
                    {
                        found.delivered.push(of);
                        found.digests.push(digest);
                    }
                    DestinationState::Delivered(_) => {}
                    DestinationState::Another if !replace => {
                        let tell = || pulse.worked();
                        let read = || payload::version_at(receipt.destination(), is_dealt, &tell);
                        let version = is_sent.then(read).flatten();
                        found.standing.push(of);
                        found.standing_versions.push(version.unwrap_or_default());
                    }
                    DestinationState::Nothing | DestinationState::Another => {
                        let destination = receipt.destination().to_owned();
                        let bytes = payload::prefix_bytes(destination, job);
                        found.prefixes.extend((bytes > 0).then_some((of, bytes)));
                    }
                }
            }
            Ok(found)
        });
        joined(looked.await)
    }

    /// Removes the receipts and the partial messages of the job, since it is not continued, and the
    /// leftovers of dead runs.
    pub async fn clear(self) {
        let removed = spawn_blocking(move || {
            for (_, receipt) in self.receipts {
                if let Err(error) = receipt.remove() {
                    tracing::warn!(%error, "a receipt is left");
                }
                if let Err(error) = discard(receipt.destination(), self.job) {
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
