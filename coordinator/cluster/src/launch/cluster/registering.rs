//! The registration of processes: the server side of new connections, and the members they become.

use std::sync::Arc;

use flitcast_proto::PeId;
use tokio::sync::mpsc;

use super::conversation::converse;
use super::greeting::{HandshakeResult, HandshakeServer};
use super::joiners::Joining;
use super::member::Heard;
use super::running::Cluster;
use crate::site::guard::Guarded;
use crate::tuning::QUEUED_WORDS;

impl Cluster {
    /// Returns the PEs that have not registered.
    pub(super) fn missing(&self) -> Vec<PeId> {
        let missing = self.pes().filter(|pe| !self.has_registered(*pe));
        missing.collect()
    }

    /// Creates the server side of registrations.
    pub(super) fn greeter(
        &self,
        guarded: &Guarded,
        joining: Option<Arc<Joining>>,
    ) -> HandshakeServer {
        HandshakeServer {
            cluster: guarded.cluster,
            secret: guarded.secret,
            security: guarded.security.clone(),
            timeouts: self.timeouts,
            joining,
        }
    }

    /// Starts to exchange messages with a process that has registered.
    pub(super) fn let_in(
        &mut self,
        newcomer: HandshakeResult,
        heard: &mpsc::Sender<(PeId, Heard)>,
    ) {
        let pe = newcomer.register.pe;
        // A cluster whose tree was repaired lacks PEs, and ids stay what they are.
        let pes = self
            .members
            .keys()
            .last()
            .map_or(0, |last| last.index() + 1);
        let Some(member) = self.members.get_mut(&pe) else {
            return;
        };
        member.register = Some((newcomer.register, newcomer.address));
        member.stays = newcomer.stays;
        member.commands = newcomer.commands;
        let (queue, queued) = mpsc::channel(QUEUED_WORDS);
        member.queue = Some(queue);
        let (heard, look) = (heard.clone(), self.look.clone());
        let beat = self.timeouts.heartbeat;
        let (mut reader, writer) = (newcomer.reader, newcomer.writer);
        reader.limit_to_cluster(pes);
        let conversation = converse(pe, reader, writer, queued, heard, beat, look);
        member.conversation = Some(tokio::spawn(conversation).abort_handle());
    }
}
