//! The places where messages made of files become visible at a PE: what stands there
//! before a round, and receipts that are of no more use.

use std::path::Path;

use flitcast_proto::wire::control::{Assignment, Payload};
use flitcast_proto::{DeliveryId, MessageId, PeId};
use tokio::task::spawn_blocking;

use crate::blocking::joined;
use crate::payload::{PayloadError, Receipt, Standing, delivered_at};

/// Where messages become visible at this PE.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Of all messages that it is the destination of, in this cluster or one before.
    receipts: Vec<(DeliveryId, Receipt)>,
    /// Those of them that may come in this cluster, and those of a gather that follows.
    awaited: Vec<(DeliveryId, Receipt)>,
    /// Whether what stands there is replaced.
    replace: bool,
}

/// What stands there.
#[derive(Debug, Default)]
pub struct Found {
    /// What is there, put there by this undertaking.
    pub delivered: Vec<DeliveryId>,
    /// Those whose places are taken by something else, which is not to be replaced.
    pub standing: Vec<DeliveryId>,
}

impl Inbox {
    /// Of this PE; nothing is looked at.
    pub fn of(pe: PeId, assignment: &Assignment) -> Inbox {
        let Payload::Files {
            output,
            replace,
            apart,
            ..
        } = &assignment.payload
        else {
            return Inbox::default();
        };
        let (operation, tree) = (assignment.operation, &assignment.tree);
        let receipt = |output: &Path, message: MessageId, at| {
            let delivery = operation.delivery(tree, message, at);
            let name = operation.delivery_name(tree, delivery);
            let destination = delivered_at(output, name, *apart);
            let receipt = Receipt::of(&destination, assignment.undertaking);
            (delivery, receipt)
        };
        let taken = operation.taken_by(tree, pe).into_iter();
        let all: Vec<_> = taken.map(|id| receipt(output, id, pe)).collect();
        let may_come = |(of, _): &&(DeliveryId, Receipt)| !assignment.left_out.contains(of);
        let mut awaited: Vec<_> = all.iter().filter(may_come).cloned().collect();
        // What is sent from here comes back in the gather that follows.
        if let Some(later) = &assignment.later_output {
            let sent = operation.messages(tree);
            for message in sent.filter(|message| message.source == pe) {
                let comes_back = message.ends(tree).map(|at| receipt(later, message.id, at));
                awaited.extend(comes_back);
            }
        }
        Inbox {
            receipts: all,
            awaited,
            replace: *replace,
        }
    }

    /// Looks at what stands there.
    pub async fn look(&self) -> Result<Found, PayloadError> {
        let (awaited, replace) = (self.awaited.clone(), self.replace);
        let looked = spawn_blocking(move || {
            let mut found = Found::default();
            for (of, receipt) in awaited {
                match receipt.look()? {
                    Standing::Delivered => found.delivered.push(of),
                    Standing::Another if !replace => found.standing.push(of),
                    Standing::Nothing | Standing::Another => {}
                }
            }
            Ok(found)
        });
        joined(looked.await)
    }

    /// Removes the receipts: nobody will go on with the undertaking.
    pub async fn clear(self) {
        let removed = spawn_blocking(move || {
            for (_, receipt) in self.receipts {
                if let Err(error) = receipt.remove() {
                    tracing::warn!(%error, "a receipt is left");
                }
            }
        });
        joined(removed.await);
    }
}
