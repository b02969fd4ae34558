//! When a round has failed: it is ended everywhere, and it is found out what came of the
//! messages.

use std::time::Duration;

use flitcast_proto::wire::control::{Payload, ToPe};
use flitcast_proto::{PeId, RoundId};
use tokio::time::Instant;

use super::Conductor;
use super::trouble::Trouble;
use crate::launch::cluster::Heard;
use crate::observe::event::{Event, tell};
use crate::rounds::outcome::{Failure, Lacking};

/// After a failure, for the survivors to undo what is half done and tell what
/// arrived.
const LAST_REPORTS: Duration = Duration::from_secs(2);

impl Conductor<'_> {
    /// Ends the round everywhere and finds out what arrived.
    pub async fn give_up(&mut self, trouble: Trouble) -> Failure {
        let cause = trouble.to_string();
        tracing::info!(%cause, "giving up");
        tell(Event::Failed {
            kind: trouble.kind(),
            pe: trouble.pe(),
            cause: &cause,
        });
        // Whoever lives tells what arrived; nobody waits for one that may be stopped.
        if let Trouble::Lifeless(pe, _) | Trouble::Stalled(Some(pe), _) = &trouble {
            self.cluster.give_up_on(*pe);
        }
        let reason = cause.clone();
        self.cluster
            .say_to_all(&ToPe::Abort {
                round: self.round,
                reason,
            })
            .await;
        let started = self.round > RoundId(0);
        let deadline = Instant::now() + LAST_REPORTS;
        let waited_for = |this: &Self, pe: PeId| {
            this.cluster.is_alive(pe) && this.last_reports[pe.index()].is_none()
        };
        while started && self.cluster.pes().any(|pe| waited_for(self, pe)) {
            match self.cluster.hear(Some(deadline)).await {
                Some((pe, Heard::Word(word))) => self.note(pe, &word),
                // Whoever cannot be heard any more tells nothing.
                Some((pe, Heard::ChannelEnded(Some(_)))) => self.cluster.give_up_on(pe),
                Some(_) => {}
                None => break,
            }
        }
        let mut delivered = Vec::new();
        let mut lacking = Vec::new();
        for pe in self.cluster.pes().skip(1).filter(|_| started) {
            let bytes = self.bytes[pe.index()];
            let arrival = self.arrival_of(pe);
            match arrival {
                _ if bytes == 0 => {}
                Some((_, true)) => delivered.push(pe),
                Some((received, false)) => lacking.push(Lacking {
                    pe,
                    bytes,
                    received: Some(received),
                }),
                None => lacking.push(Lacking {
                    pe,
                    bytes,
                    received: None,
                }),
            }
        }
        let below = |pe: PeId| {
            let tree = &self.request.tree;
            let is_below = |&other: &PeId| tree.child_toward(pe, other).is_some();
            tree.pes().filter(is_below).collect()
        };
        Failure {
            cause,
            phase: self.phase,
            address: trouble.pe().and_then(|pe| self.address(pe)),
            below: trouble.pe().map(below).unwrap_or_default(),
            pe: trouble.pe(),
            pid: trouble.pe().and_then(|pe| self.cluster.pid(pe)),
            joined_from: trouble.pe().and_then(|pe| self.cluster.joined_from(pe)),
            host: trouble
                .pe()
                .and_then(|pe| self.request.placement.places[pe.index()].name.clone()),
            parent: trouble.pe().and_then(|pe| self.request.tree.parent(pe)),
            guard: self.request.guard.clone(),
            round: started.then_some(self.round),
            scatter: self.request.operation.is_scatter(),
            keeps_files: matches!(self.request.payload, Payload::Files { .. }),
            delivered,
            lacking,
            others: Vec::new(),
            culprits: trouble.culprits(),
            refused: matches!(trouble, Trouble::OutputStands(_)),
            found: self.found.clone(),
            bytes: self.bytes.clone(),
        }
    }

    /// Bytes of M_i that came, and whether it was delivered; `None` if nobody can
    /// tell any more.
    fn arrival_of(&self, pe: PeId) -> Option<(u64, bool)> {
        let at = if self.request.operation.is_scatter() {
            pe
        } else {
            PeId::ROOT
        };
        let report = self.last_reports[at.index()].as_ref()?;
        let mut arrivals = report.arrivals.iter();
        let arrival = arrivals.find(|a| a.source.max(a.destination) == pe)?;
        Some((arrival.bytes_received, arrival.delivered))
    }
}
