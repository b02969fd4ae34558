//! A cluster: one process per PE, started on the PE's host. No process started here outlives the
//! [`Cluster`]. Processes that others start join it (`joining.rs`): they receive a request to stop,
//! and only the end of their channel is observed.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flitcast_node::limits::Timeouts;
use flitcast_node::system::descriptors;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{Register, ToPe};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::conversation::{HandshakeResult, HandshakeServer, converse};
use super::member::{Member, PeEvent};
use crate::launch::starter::Started;
use crate::options::pes::{DESCRIPTORS_PER_SSH, needed_descriptors};
use crate::site::guard::Guarded;
use crate::tuning::{QUEUED_COMMANDS, STOP};

/// The registered processes of a cluster.
#[derive(Debug)]
pub struct Cluster {
    pub(super) id: u64,
    pub(super) members: BTreeMap<PeId, Member>,
    pub(super) events: mpsc::Receiver<(PeId, PeEvent)>,
    pub(super) kill: CancellationToken,
    pub(super) timeouts: Timeouts,
    /// Whether the PEs should look for unreachable neighbours.
    pub(super) look: Arc<AtomicBool>,
    pub(super) started: Option<Started>,
    /// Folder of the certificates that were made for tasks of Slurm; it is removed with this.
    #[expect(dead_code, reason = "its end is what matters")]
    pub(super) keys: Option<TempDir>,
}

impl Cluster {
    /// Returns the cluster's id, which is also part of the names of staged files.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn pes(&self) -> impl Iterator<Item = PeId> + use<> {
        let pes: Vec<PeId> = self.members.keys().copied().collect();
        pes.into_iter()
    }

    pub fn register(&self, pe: PeId) -> Option<&Register> {
        let registered = self.members.get(&pe)?.register.as_ref();
        registered.map(|(register, _)| register)
    }

    /// Returns the maximum number of connections that may be unauthenticated at the same time.
    pub(super) fn places(&self, over_ssh: bool) -> usize {
        let pes = self.members.len();
        let more = if over_ssh { DESCRIPTORS_PER_SSH } else { 0 };
        descriptors::places(needed_descriptors(pes) + more * pes as u64)
    }

    pub(super) fn missing(&self) -> Vec<PeId> {
        self.pes()
            .filter(|pe| self.members[pe].queue.is_none())
            .collect()
    }

    pub(super) fn greeter(
        &self,
        guarded: &Guarded,
        joining: Option<Arc<BTreeMap<PeId, IpAddr>>>,
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
        event_sender: &mpsc::Sender<(PeId, PeEvent)>,
    ) {
        let pe = newcomer.register.pe;
        // A cluster whose tree was repaired lacks PEs, and ids stay what they are.
        let last = self.members.keys().last();
        let pes = last.map_or(0, |last| last.index() + 1);
        let Some(member) = self.members.get_mut(&pe) else {
            return;
        };
        member.register = Some((newcomer.register, newcomer.address));
        member.stays = newcomer.stays;
        member.commands = newcomer.commands;
        let (queue, queued) = mpsc::channel(QUEUED_COMMANDS);
        member.queue = Some(queue);
        let (event_sender, look) = (event_sender.clone(), self.look.clone());
        let beat = self.timeouts.heartbeat;
        let (mut reader, writer) = (newcomer.reader, newcomer.writer);
        reader.limit_to_cluster(pes);
        let conversation = converse(pe, reader, writer, queued, event_sender, beat, look);
        member.conversation = Some(tokio::spawn(conversation).abort_handle());
    }

    /// Returns the process id of a PE, if it was started on this host.
    pub fn pid(&self, pe: PeId) -> Option<u32> {
        let process = self.members[&pe].process.as_ref();
        process.and_then(|process| process.pid)
    }

    /// Returns the address from which a PE joined; `None` if it was started here.
    pub fn joined_from(&self, pe: PeId) -> Option<SocketAddr> {
        let member = &self.members[&pe];
        match (&member.process, &member.register) {
            (None, Some((_, address))) => Some(*address),
            _ => None,
        }
    }

    /// Returns the host that each PE has joined from: by its own name, or by its address if another address
    /// has the same name. Empty for PEs that were started here.
    pub fn hosts(&self) -> BTreeMap<PeId, String> {
        let joined = |pe| Some((pe, self.joined_from(pe)?.ip(), &self.register(pe)?.host));
        let joined: Vec<_> = self.pes().filter_map(joined).collect();
        let host = |&(pe, from, name): &(PeId, IpAddr, &String)| {
            let is_other = |&(_, other, of): &(PeId, IpAddr, &String)| of == name && other != from;
            let is_shared = name.is_empty() || joined.iter().any(is_other);
            let host = if is_shared {
                from.to_string()
            } else {
                name.clone()
            };
            (pe, host)
        };
        joined.iter().map(host).collect()
    }

    /// Queues a message to a PE. If the PE is gone, an event reports that soon.
    pub async fn send_command(&mut self, pe: PeId, command: ToPe) {
        if let Some(queue) = &self.members[&pe].queue
            && queue.send(command).await.is_err()
        {
            tracing::debug!(%pe, "cannot be told");
        }
    }

    pub async fn send_to_all(&mut self, command: &ToPe) {
        for pe in self.pes() {
            self.send_command(pe, command.clone()).await;
        }
    }

    /// Waits for the next event of any PE; returns `None` at the deadline, or if no PE is left.
    pub async fn next_event(&mut self, deadline: Instant) -> Option<(PeId, PeEvent)> {
        let event = timeout_at(deadline, self.events.recv()).await.ok()?;
        if let Some((pe, event)) = &event
            && let Some(member) = self.members.get_mut(pe)
        {
            member.exited |= match event {
                PeEvent::Exited(..) => true,
                // A process that has joined causes no further events.
                PeEvent::ChannelEnded(_) => member.process.is_none(),
                PeEvent::Reply(_) => false,
            };
        }
        event
    }

    /// Returns whether the PE's process still runs, as far as is known, and its events are
    /// expected.
    pub fn is_alive(&self, pe: PeId) -> bool {
        let member = &self.members[&pe];
        !member.exited && !member.given_up
    }

    /// Expects no more events of a PE and kills its process, which would not end by itself if it
    /// was suspended. A process on another host, or one that has joined, has to notice its lost
    /// channel.
    pub fn give_up_on(&mut self, pe: PeId) {
        if let Some(member) = self.members.get_mut(&pe) {
            member.given_up = true;
            if let Some(process) = &member.process {
                process.kill.cancel();
            }
        }
    }

    pub fn look(&self, is_wanted: bool) {
        self.look.store(is_wanted, Relaxed);
    }

    /// Sends a stop request to every process, and kills those that still run after some seconds or once
    /// `enough` is done. `over` reports that the job is over, so that its receipts can be removed.
    /// When this returns, no process is left except those that joined, whose channels are closed.
    pub async fn stop(mut self, over: bool, enough: impl Future<Output = ()>) {
        let deadline = Instant::now() + STOP;
        let leaving = async {
            self.send_to_all(&ToPe::Stop { over }).await;
            while self.members.values().any(Member::is_waited_for) {
                if self.next_event(deadline).await.is_none() {
                    break;
                }
            }
        };
        tokio::select! {
            () = leaving => {}
            () = enough => {}
        }
        for (pe, member) in &self.members {
            match (&member.process, &member.register) {
                (Some(process), _) if !member.exited => {
                    tracing::warn!(%pe, pid = process.pid, "killed: it did not stop");
                }
                (None, Some((_, address))) if member.is_waited_for() => {
                    tracing::warn!(%pe, %address, "did not leave when it was told to");
                }
                _ => {}
            }
        }
        self.kill().await;
    }

    /// Kills every process that still runs. When this returns, none is left.
    pub(super) async fn kill(mut self) {
        self.kill.cancel();
        // The end of a process is not reported any more, and no task waits to report it.
        self.events.close();
        // A process on another host ends because its channel does.
        for member in self.members.values() {
            member.hang_up();
        }
        let deadline = Instant::now() + STOP;
        for member in std::mem::take(&mut self.members).into_values() {
            if let Some(process) = member.process
                // A process that SIGKILL does not end hangs in the kernel, at its disk for example.
                && timeout_at(deadline, process.keeper).await.is_err()
            {
                tracing::warn!(pid = process.pid, "cannot be killed");
            }
        }
        if let Some(started) = self.started.take() {
            started.end().await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in self.members.values() {
            if let Some(process) = &member.process {
                process.keeper.abort();
            }
            member.hang_up();
        }
    }
}
