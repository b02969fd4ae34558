//! A cluster: one process per PE, started where its [`Placement`] says, heard, and
//! stopped. Nothing started here outlives the [`Cluster`].

mod conversation;
mod process;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flitcast_node::channel::ChannelError;
use flitcast_node::limits::Timeouts;
use flitcast_node::lively::{Lively, Patience};
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Register, ToPe};
use futures_util::StreamExt as _;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::placement::{Place, Placement};
use conversation::{Reader, Writer, converse, open};
use process::{command, keep, play};

/// For all processes to be started and to register: two idle cores start 64 in some
/// 60 ms; a thousand on a busy machine have all the time they can need.
const LAUNCH: Duration = Duration::from_secs(30);
/// For a process that was told to stop to be gone; then it is killed.
const STOP: Duration = Duration::from_secs(3);
/// For the operating system to report a death that a neighbour already noticed.
pub const DEATH_NOTICE: Duration = Duration::from_millis(500);
/// Words of PEs that wait to be heard: each answers two pings a second.
const EVENTS: usize = 4096;
/// Words that wait to be said to a PE. It is told nothing more before it has answered.
const WORDS: usize = 64;

/// Why a cluster did not come up.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Not everybody registered in time.
    #[error("after {} s there is still no word from {}", LAUNCH.as_secs(), names(.missing))]
    Missing {
        /// Who.
        missing: Vec<PeId>,
    },
    /// A process ended before it registered.
    #[error("{pe} {} before it registered{}", how(*.status), after(.last_words))]
    Died {
        /// Who.
        pe: PeId,
        /// How.
        status: ExitStatus,
        /// What it had said on stderr.
        last_words: Vec<String>,
    },
}

impl LaunchError {
    /// Whose fault it is, where one can be named.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            LaunchError::Io { .. } => None,
            LaunchError::Missing { missing } => missing.first().copied(),
            LaunchError::Died { pe, .. } => Some(*pe),
        }
    }
}

/// "P1, P2, P5".
pub fn names(pes: &[PeId]) -> String {
    pes.iter()
        .map(PeId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// How a process ended, for a sentence about it.
pub fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (_, Some(9)) => "was killed by signal 9 (SIGKILL)".to_owned(),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

fn after(last_words: &[String]) -> String {
    match last_words.is_empty() {
        true => String::new(),
        false => format!(": {}", last_words.join(" / ")),
    }
}

/// What is heard of a PE.
#[derive(Debug)]
pub enum Heard {
    /// It says something.
    Word(FromPe),
    /// Its channel ended, or broke.
    ChannelEnded(Option<ChannelError>),
    /// Its process ended, having said this on stderr last.
    Exited(ExitStatus, Vec<String>),
}

/// How child processes log.
#[derive(Clone, Debug)]
pub struct LogArgs {
    /// Arguments for `flitcast node`.
    pub args: Vec<String>,
    /// Whether their lines are JSON, and so are passed on as they are.
    pub json: bool,
}

/// One PE's process and its channel.
#[derive(Debug)]
struct Member {
    pid: u32,
    /// What it said of itself; `None` until it registers.
    register: Option<Register>,
    queue: Option<mpsc::Sender<ToPe>>,
    exited: bool,
    /// Nothing more is expected of it, whether its process has ended or not.
    given_up: bool,
    /// Tells its keeper to kill it.
    kill: CancellationToken,
    /// Owns the process: ending the task kills it.
    keeper: JoinHandle<()>,
}

/// All processes of a cluster, registered.
#[derive(Debug)]
pub struct Cluster {
    id: u64,
    members: Vec<Member>,
    events: mpsc::Receiver<(PeId, Heard)>,
    /// Tells the keepers to kill what they keep.
    kill: CancellationToken,
    timeouts: Timeouts,
    /// Whether the PEs are to look for neighbours that cannot be reached.
    look: Arc<AtomicBool>,
}

impl Cluster {
    /// Starts a process of `program` for each PE and waits until all have registered.
    pub async fn launch(
        program: &Path,
        placement: &Placement,
        logs: &LogArgs,
        timeouts: &Timeouts,
        console: &Console,
    ) -> Result<Cluster, LaunchError> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::Io { what, source }
        };
        let id = random_id().map_err(io("cannot draw a name for the cluster"))?;
        let listening = format!("cannot listen on {} for the PEs", placement.coordinator);
        let listener = TcpListener::bind((placement.coordinator, 0)).await;
        let listener = listener.map_err(io(&listening))?;
        let address = listener.local_addr().map_err(io(&listening))?;
        let (heard, events) = mpsc::channel(EVENTS);
        let mut cluster = Cluster {
            id,
            members: Vec::with_capacity(placement.places.len()),
            events,
            kill: CancellationToken::new(),
            timeouts: *timeouts,
            look: Arc::default(),
        };
        let launched = async {
            for place in &placement.places {
                let command = command(program, place, logs);
                cluster.start(command, place, address, &heard, console, logs.json)?;
            }
            let registered = timeout(LAUNCH, cluster.register_all(&listener, &heard)).await;
            registered.unwrap_or_else(|_| {
                let missing = cluster.pes().filter(|pe| !cluster.has_registered(*pe));
                let missing = missing.collect();
                Err(LaunchError::Missing { missing })
            })
        };
        match launched.await {
            Ok(()) => Ok(cluster),
            Err(error) => {
                cluster.kill().await;
                Err(error)
            }
        }
    }

    /// Starts what plays the next PE.
    fn start(
        &mut self,
        mut command: Command,
        place: &Place,
        coordinator: SocketAddr,
        heard: &mpsc::Sender<(PeId, Heard)>,
        console: &Console,
        json: bool,
    ) -> Result<(), LaunchError> {
        let pe = PeId(self.members.len() as u32);
        let (id, timeouts) = (self.id, &self.timeouts);
        let child = play(&mut command, pe, place, coordinator, id, timeouts).map_err(|source| {
            let program = command.as_std().get_program().display();
            let what = format!("cannot start a process: {program}");
            LaunchError::Io { what, source }
        })?;
        let (heard, console) = (heard.clone(), console.clone());
        let kill = self.kill.child_token();
        self.members.push(Member {
            pid: child.id().unwrap_or(0),
            register: None,
            queue: None,
            exited: false,
            given_up: false,
            kill: kill.clone(),
            keeper: tokio::spawn(keep(pe, child, heard, console, json, kill)),
        });
        Ok(())
    }

    async fn register_all(
        &mut self,
        listener: &TcpListener,
        heard: &mpsc::Sender<(PeId, Heard)>,
    ) -> Result<(), LaunchError> {
        let (greeted, mut greetings) = mpsc::channel(64);
        let mut missing = self.members.len();
        while missing > 0 {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        let (greeted, id, timeouts) = (greeted.clone(), self.id, self.timeouts);
                        tokio::spawn(async move {
                            match timeout(timeouts.handshake, greet(stream, id, &timeouts)).await {
                                Ok(Some(newcomer)) => drop(greeted.send(newcomer).await),
                                _ => tracing::warn!(%address, "turned a connection away"),
                            }
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                Some((register, reader, writer)) = greetings.recv() => {
                    let pe = register.pe;
                    let Some(member) = self.members.get_mut(pe.index()) else { continue };
                    if member.queue.is_some() {
                        tracing::warn!(%pe, "registered twice");
                        continue;
                    }
                    member.register = Some(register);
                    let (queue, queued) = mpsc::channel(WORDS);
                    member.queue = Some(queue);
                    missing -= 1;
                    let (heard, look) = (heard.clone(), self.look.clone());
                    let beat = self.timeouts.heartbeat;
                    tokio::spawn(converse(pe, reader, writer, queued, heard, beat, look));
                }
                Some((pe, event)) = self.events.recv() => {
                    if let Heard::Exited(status, last_words) = event {
                        return Err(LaunchError::Died { pe, status, last_words });
                    }
                }
            }
        }
        Ok(())
    }

    /// Names the cluster, and the staging of its files.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The PEs.
    pub fn pes(&self) -> impl Iterator<Item = PeId> + use<> {
        (0..self.members.len() as u32).map(PeId)
    }

    /// What a PE said of itself.
    pub fn register(&self, pe: PeId) -> Option<&Register> {
        self.members[pe.index()].register.as_ref()
    }

    fn has_registered(&self, pe: PeId) -> bool {
        self.members[pe.index()].queue.is_some()
    }

    /// The process that plays a PE.
    pub fn pid(&self, pe: PeId) -> u32 {
        self.members[pe.index()].pid
    }

    /// Says something to a PE. If it is gone, that is heard soon.
    pub async fn say(&mut self, pe: PeId, word: ToPe) {
        if let Some(queue) = &self.members[pe.index()].queue
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

    /// What is heard next, from whomever; `None` at the deadline.
    pub async fn hear(&mut self, deadline: Option<Instant>) -> Option<(PeId, Heard)> {
        let heard = match deadline {
            Some(deadline) => timeout_at(deadline, self.events.recv()).await.ok()?,
            None => self.events.recv().await,
        };
        if let Some((pe, Heard::Exited(..))) = &heard {
            self.members[pe.index()].exited = true;
        }
        heard
    }

    /// Whether the PE's process still runs, as far as is known, and can be heard.
    pub fn is_alive(&self, pe: PeId) -> bool {
        let member = &self.members[pe.index()];
        !member.exited && !member.given_up
    }

    /// Expects nothing more of a PE, and kills its process: stopped, it would not leave
    /// by itself. Where another host plays it, that one is left to notice.
    pub fn give_up_on(&mut self, pe: PeId) {
        let member = &mut self.members[pe.index()];
        member.given_up = true;
        member.kill.cancel();
    }

    /// Whether the PEs are to look, from now on, for neighbours that cannot be reached.
    pub fn look(&self, is_wanted: bool) {
        self.look.store(is_wanted, Relaxed);
    }

    /// Tells every process to leave, and kills those that do not. When this
    /// returns, none is left.
    pub async fn stop(mut self) {
        self.say_to_all(&ToPe::Stop).await;
        let deadline = Instant::now() + STOP;
        while self.members.iter().any(|member| !member.exited) {
            if self.hear(Some(deadline)).await.is_none() {
                break;
            }
        }
        for member in self.members.iter().filter(|member| !member.exited) {
            tracing::warn!(pid = member.pid, "killed: it did not stop");
        }
        self.kill().await;
    }

    /// Kills every process that still runs. When this returns, none is left.
    async fn kill(mut self) {
        self.kill.cancel();
        // Nobody hears of their ends any more, or waits until somebody does.
        self.events.close();
        let deadline = Instant::now() + STOP;
        for member in self.members.drain(..) {
            // Whom even SIGKILL does not end hangs in the system, at its disk say.
            if timeout_at(deadline, member.keeper).await.is_err() {
                tracing::warn!(pid = member.pid, "cannot be killed");
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &self.members {
            member.keeper.abort();
        }
    }
}

fn random_id() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Waits for a newcomer to say who it is; `None` if it is none of ours.
async fn greet(
    stream: TcpStream,
    id: u64,
    timeouts: &Timeouts,
) -> Option<(Register, Reader, Writer)> {
    stream.set_nodelay(true).ok()?;
    let patience = Patience {
        first: timeouts.handshake,
        silence: timeouts.silence,
        write: timeouts.write,
    };
    let (mut reader, writer) = open(Lively::new(stream, patience));
    match reader.next().await {
        Some(Ok(FromPe::Register(register))) if register.cluster == id => {
            Some((register, reader, writer))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
