//! Drives the conductor on a cluster: says what it wants said, tells it what is heard and when,
//! and shows what it tells. What is to be done is the conductor's business.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use flitcast_node::channel::ChannelError;
use flitcast_node::lively::Lifeless;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{DeliveryId, PeId, Time};
use tokio::time::Instant;

use super::lanes::lanes_of;
use crate::job::lanes::Lanes;
use crate::job::request::Request;
use crate::launch::cluster::{Cluster, Heard};
use crate::observe::console::Console;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::observe::tell::tell;
use crate::rounds::conductor::{Conductor, GaveUp, Lost, Plan, Setting, Trouble, Update};
use crate::rounds::outcome::{Aftermath, Failure, Whereabouts};

/// Why nothing more can be done on a cluster.
pub enum Halt {
    /// Something was found here that the conductor is still to be told of.
    Trouble(Trouble),
    /// The conductor has given up.
    GaveUp(GaveUp),
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Halt {
        Halt::Trouble(trouble)
    }
}

/// A conductor, and the cluster that it conducts.
pub struct Driver<'a> {
    pub cluster: &'a mut Cluster,
    pub request: &'a Request,
    pub console: &'a Console,
    pub conductor: Conductor,
    /// The trees that messages may go on at once.
    pub lanes: Lanes,
    /// Lengths by delivery, once the PEs have told.
    pub bytes: Vec<u64>,
    /// Whose messages were there before, with a receipt of this undertaking.
    pub found: Vec<DeliveryId>,
    /// What a round is expected to take.
    predicted_ns: u64,
    /// From when the conductor's time is counted.
    origin: Instant,
}

impl<'a> Driver<'a> {
    pub fn new(cluster: &'a mut Cluster, request: &'a Request, console: &'a Console) -> Self {
        let tree = &request.site.tree;
        let joined = tree.pes().filter(|pe| cluster.joined_from(*pe).is_some());
        let setting = Setting {
            tree: tree.clone(),
            operation: request.way.operation,
            timeouts: request.timeouts,
            joined: joined.collect(),
            addresses: tree.ids().map(|pe| address(cluster, request, pe)).collect(),
        };
        Driver {
            cluster,
            request,
            console,
            lanes: lanes_of(request),
            conductor: Conductor::new(Time(0), setting),
            bytes: Vec::new(),
            found: Vec::new(),
            predicted_ns: 0,
            origin: Instant::now(),
        }
    }

    pub fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    /// Something else is being done from now on. Nothing is awaited meanwhile, so no answer is lost.
    pub fn enter(&mut self, phase: Phase) {
        self.conductor.enter(phase);
        while let Some(update) = self.conductor.poll_update() {
            self.show(update);
        }
    }

    /// Has all rounds conducted.
    pub fn conduct(&mut self, plan: Plan) {
        self.predicted_ns = plan.predicted_ns;
        self.conductor.conduct(self.now(), plan);
    }

    /// The next answer to what was asked for; `None` if nothing more is awaited.
    pub async fn next_answer(&mut self) -> Result<Option<Update>, Halt> {
        loop {
            while let Some(update) = self.conductor.poll_update() {
                if let Some(answer) = self.show(update) {
                    return Ok(Some(answer));
                }
            }
            self.say_words().await;
            if let Some(gave_up) = self.conductor.gave_up() {
                return Err(Halt::GaveUp(gave_up));
            }
            let Some(timeout) = self.conductor.poll_timeout() else {
                return Ok(None);
            };
            self.hear(timeout).await;
            self.cluster.look(self.conductor.wants_look());
        }
    }

    /// Says what is to be said.
    pub async fn say_words(&mut self) {
        while let Some((pe, word)) = self.conductor.poll_word() {
            self.cluster.say(pe, word).await;
        }
    }

    async fn hear(&mut self, timeout: Time) {
        let deadline = self.origin + Duration::from_nanos(timeout.0);
        let heard = self.cluster.hear(deadline).await;
        let now = self.now();
        match heard {
            // Where nothing can be heard any more, nothing is waited for.
            None => self.conductor.handle_timeout(now.max(timeout)),
            Some((pe, Heard::Word(word))) => self.conductor.handle_word(now, pe, word),
            Some((pe, Heard::ChannelEnded(end))) => {
                self.conductor.handle_lost(now, pe, why_ended(end));
            }
            Some((pe, Heard::Exited(exit, last_words))) => {
                let how = exit.to_string();
                let lost = Lost::Exited { how, last_words };
                self.conductor.handle_lost(now, pe, lost);
            }
        }
    }

    /// Shows what has happened, unless it is an answer.
    fn show(&mut self, update: Update) -> Option<Update> {
        match update {
            Update::Enters(phase) => tell(Event::Enters(phase)),
            Update::Heard(pe, pong) => tell(Event::Heard(pe, &pong)),
            Update::Reported(pe, counts) => tell(Event::Reported(pe, &counts)),
            Update::RoundBegins(round) => {
                let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
                let total = operation.total(tree, &self.bytes);
                self.console.begin(self.name(round.0), total);
                tell(Event::RoundBegins {
                    round,
                    bytes: &self.bytes,
                    predicted_ns: self.predicted_ns,
                });
                tracing::info!(%round, "triggered");
            }
            Update::Progress { bytes, elapsed } => {
                self.console.moved(bytes, elapsed, self.predicted_ns);
            }
            Update::Slow {
                round,
                times,
                phase,
            } => self.console.slow(round, times, phase),
            Update::RoundDone => tell(Event::RoundDone),
            Update::GivesUpOn(pe) => self.cluster.give_up_on(pe),
            Update::Failed { kind, pe, cause } => {
                tracing::info!(%cause, "giving up");
                let cause = &cause;
                tell(Event::Failed { kind, pe, cause });
            }
            Update::Ready(..)
            | Update::Probed(..)
            | Update::FilesMeasured(..)
            | Update::HostMeasured(..)
            | Update::RoundReported(_) => return Some(update),
        }
        None
    }

    /// A round's name on the console.
    fn name(&self, round: u64) -> String {
        let what = self.request.way.operation.name();
        match self.request.rounds {
            1 => what.to_owned(),
            rounds => format!(
                "{what} by {} {round}/{rounds}",
                self.request.way.algorithm()
            ),
        }
    }

    /// Ends what is under way, where that is still to be done, and tells what came of it.
    pub async fn failure(mut self, mut halt: Halt) -> Failure {
        loop {
            match halt {
                Halt::GaveUp(gave_up) => return self.told(gave_up),
                Halt::Trouble(trouble) => self.conductor.fail(self.now(), trouble),
            }
            // Answers are of no more use.
            halt = loop {
                if let Err(halt) = self.next_answer().await {
                    break halt;
                }
            };
        }
    }

    fn told(self, gave_up: GaveUp) -> Failure {
        let Driver {
            cluster, request, ..
        } = self;
        let tree = &request.site.tree;
        let at = gave_up.trouble.pe().map(|pe| Whereabouts {
            pe,
            address: address(cluster, request, pe),
            pid: cluster.pid(pe),
            joined_from: cluster.joined_from(pe),
            host: request.site.placement.places[pe.index()].name.clone(),
            parent: tree.parent(pe),
            below: tree
                .pes()
                .filter(|other| tree.child_toward(pe, *other).is_some())
                .collect(),
        });
        Failure {
            cause: gave_up.trouble.to_string(),
            others: Vec::new(),
            phase: gave_up.phase,
            at,
            guard: request.site.guard.clone(),
            round: gave_up.round,
            operation: request.way.operation,
            tree: request.site.tree.clone(),
            keeps_files: matches!(request.messages.payload, Payload::Files { .. }),
            refused: matches!(gave_up.trouble, Trouble::OutputStands(_)),
            culprits: gave_up.trouble.culprits(),
            aftermath: Aftermath {
                bytes: self.bytes,
                found: self.found,
                delivered: gave_up.delivered,
                lacking: gave_up.lacking,
            },
        }
    }
}

/// Why a channel has ended.
fn why_ended(end: Option<ChannelError>) -> Lost {
    let Some(error) = end else {
        return Lost::Closed;
    };
    let lifeless = match &error {
        ChannelError::Io(error) => Lifeless::of(error),
        ChannelError::Wire(_) => None,
    };
    lifeless.map_or_else(|| Lost::Broken(error.to_string()), Lost::Lifeless)
}

/// A PE's address; where nobody said which, the one that it has joined from.
pub fn or_joined_from(cluster: &Cluster, address: IpAddr, pe: PeId) -> IpAddr {
    match cluster.joined_from(pe) {
        Some(from) if address.is_unspecified() => from.ip(),
        _ => address,
    }
}

/// Where a PE is reached, as far as is known.
fn address(cluster: &Cluster, request: &Request, pe: PeId) -> Option<String> {
    let place = request.site.placement.places.get(pe.index())?;
    let listen: SocketAddr = cluster.register(pe)?.listen.parse().ok()?;
    let address = or_joined_from(cluster, place.address, pe);
    Some(SocketAddr::new(address, listen.port()).to_string())
}
