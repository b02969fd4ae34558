//! A cluster: one process per PE, started where its placement says, heard, and
//! stopped. Nothing started here outlives the [`Cluster`]. Processes that others start join
//! (`joining.rs`): they are told to stop, and their channel's end is all that is known of
//! theirs.

mod conversation;
mod error;
mod exit;
mod greeting;
mod joining;
mod launching;
mod process;
mod remote;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flitcast_node::channel::ChannelError;
use flitcast_node::limits::Timeouts;
use flitcast_node::system::descriptors;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Register, ToPe};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::launch::starter::Started;
use crate::options::pes::{DESCRIPTORS_PER_SSH, needed_descriptors};

pub use error::{Death, LaunchError};
pub use exit::Exit;
pub use launching::LaunchPlan;
pub use process::command;

/// For a process that was told to stop to be gone; then it is killed.
const STOP: Duration = Duration::from_secs(3);
/// For the operating system to report a death that a neighbour already noticed.
pub const DEATH_NOTICE: Duration = Duration::from_millis(500);
/// What is heard of a PE.
#[derive(Debug)]
pub enum Heard {
    /// It says something.
    Word(FromPe),
    /// Its channel ended, or broke.
    ChannelEnded(Option<ChannelError>),
    /// Its process ended, having said this on stderr last.
    Exited(Exit, Vec<String>),
}

/// One PE's process and its channel.
#[derive(Debug)]
struct Member {
    /// `None` of one that has joined.
    process: Option<Process>,
    /// What it said of itself, and from where; `None` until it registers.
    register: Option<(Register, SocketAddr)>,
    queue: Option<mpsc::Sender<ToPe>>,
    /// Whether a process that has joined will join the next cluster as well.
    stays: bool,
    /// Whether it runs commands.
    commands: bool,
    /// Its process has ended; of one that has joined, its channel.
    exited: bool,
    /// Nothing more is expected of it, whether its process has ended or not.
    given_up: bool,
    /// Owns the channel: ending the task closes it.
    conversation: Option<AbortHandle>,
}

/// A process that was started here, or by an ssh that was.
#[derive(Debug)]
struct Process {
    /// `None` if it runs on another host.
    pid: Option<u32>,
    /// Tells its keeper to kill it.
    kill: CancellationToken,
    /// Owns the process: ending the task kills it.
    keeper: JoinHandle<()>,
}

impl Member {
    fn new(process: Option<Process>) -> Member {
        Member {
            process,
            register: None,
            queue: None,
            stays: false,
            commands: false,
            exited: false,
            given_up: false,
            conversation: None,
        }
    }

    /// Whether it is yet to be gone once it was told to leave. Nobody waits for one that
    /// has joined and cannot be heard any more, or that never has.
    fn is_waited_for(&self) -> bool {
        let expected = self.process.is_some() || (self.register.is_some() && !self.given_up);
        !self.exited && expected
    }
}

/// All processes of a cluster, registered.
#[derive(Debug)]
pub struct Cluster {
    id: u64,
    members: BTreeMap<PeId, Member>,
    events: mpsc::Receiver<(PeId, Heard)>,
    /// Tells the keepers to kill what they keep.
    kill: CancellationToken,
    timeouts: Timeouts,
    /// Whether the PEs are to look for neighbours that cannot be reached.
    look: Arc<AtomicBool>,
    /// What has had those started that joined.
    started: Option<Started>,
}

impl Cluster {
    /// Names the cluster, and the staging of its files.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The PEs.
    pub fn pes(&self) -> impl Iterator<Item = PeId> + use<> {
        let pes: Vec<PeId> = self.members.keys().copied().collect();
        pes.into_iter()
    }

    /// What a PE said of itself.
    pub fn register(&self, pe: PeId) -> Option<&Register> {
        let registered = self.members.get(&pe)?.register.as_ref();
        registered.map(|(register, _)| register)
    }

    /// How many strangers may be asked at once who they are.
    fn places(&self, over_ssh: bool) -> usize {
        let pes = self.members.len();
        let more = if over_ssh { DESCRIPTORS_PER_SSH } else { 0 };
        descriptors::places(needed_descriptors(pes) + more * pes as u64)
    }

    fn has_registered(&self, pe: PeId) -> bool {
        self.members[&pe].queue.is_some()
    }

    /// The process that plays a PE, if it is one of this host that was started here.
    pub fn pid(&self, pe: PeId) -> Option<u32> {
        let process = self.members[&pe].process.as_ref();
        process.and_then(|process| process.pid)
    }

    /// From where a PE has joined; `None` of one that was started here.
    pub fn joined_from(&self, pe: PeId) -> Option<SocketAddr> {
        let member = &self.members[&pe];
        match (&member.process, &member.register) {
            (None, Some((_, address))) => Some(*address),
            _ => None,
        }
    }

    /// Says something to a PE. If it is gone, that is heard soon.
    pub async fn say(&mut self, pe: PeId, word: ToPe) {
        if let Some(queue) = &self.members[&pe].queue
            && queue.send(word).await.is_err()
        {
            tracing::debug!(%pe, "cannot be told");
        }
    }

    /// Says the same to all.
    pub async fn say_to_all(&mut self, word: &ToPe) {
        for pe in self.pes() {
            self.say(pe, word.clone()).await;
        }
    }

    /// What is heard next, from whomever; `None` at the deadline, and when nobody is left.
    pub async fn hear(&mut self, deadline: Instant) -> Option<(PeId, Heard)> {
        let heard = timeout_at(deadline, self.events.recv()).await.ok()?;
        if let Some((pe, heard)) = &heard
            && let Some(member) = self.members.get_mut(pe)
        {
            member.exited |= match heard {
                Heard::Exited(..) => true,
                // Nothing else will be heard of a process that has joined.
                Heard::ChannelEnded(_) => member.process.is_none(),
                Heard::Word(_) => false,
            };
        }
        heard
    }

    /// Whether the PE's process still runs, as far as is known, and can be heard.
    pub fn is_alive(&self, pe: PeId) -> bool {
        let member = &self.members[&pe];
        !member.exited && !member.given_up
    }

    /// Expects nothing more of a PE, and kills its process: stopped, it would not leave
    /// by itself. One that has joined, or that another host plays, is left to notice.
    pub fn give_up_on(&mut self, pe: PeId) {
        if let Some(member) = self.members.get_mut(&pe) {
            member.given_up = true;
            if let Some(process) = &member.process {
                process.kill.cancel();
            }
        }
    }

    /// Whether the PEs are to look, from now on, for neighbours that cannot be reached.
    pub fn look(&self, is_wanted: bool) {
        self.look.store(is_wanted, Relaxed);
    }

    /// Tells every process to leave, and whether the undertaking is over, so that receipts are
    /// of no more use; kills those that have not left when it is enough or after some seconds. When this returns, none is left, but for those that joined: the
    /// channels of these are closed.
    pub async fn stop(mut self, over: bool, enough: impl Future<Output = ()>) {
        let deadline = Instant::now() + STOP;
        let leaving = async {
            self.say_to_all(&ToPe::Stop { over }).await;
            while self.members.values().any(Member::is_waited_for) {
                if self.hear(deadline).await.is_none() {
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
    async fn kill(mut self) {
        self.kill.cancel();
        // Nobody hears of their ends any more, or waits until somebody does.
        self.events.close();
        // On another host, the end of its channel is what ends a process.
        for conversation in self
            .members
            .values()
            .filter_map(|m| m.conversation.as_ref())
        {
            conversation.abort();
        }
        let deadline = Instant::now() + STOP;
        for member in std::mem::take(&mut self.members).into_values() {
            if let Some(process) = member.process
                // Whom even SIGKILL does not end hangs in the system, at its disk say.
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
            if let Some(conversation) = &member.conversation {
                conversation.abort();
            }
        }
    }
}

#[cfg(test)]
mod tests;
