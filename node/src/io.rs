//! The I/O of a node's rounds: its connections, its files, the monotonic clock.

mod reader;
mod rounds_io;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::items::{Control, Message, Packing};
use flitcast_proto::ops::{Direction, PeSchedule};
use flitcast_proto::round::{Observer, Piece, ProtocolError, Round};
use flitcast_proto::wire::MAX_FLIT_PREFIX;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, PeId, Time, Tree};
use reader::{Reader, Readers};
use smallvec::SmallVec;
use tokio::task::{JoinError, JoinSet};

use crate::activity_monitor::ActivityMonitor;
use crate::held::HeldMessages;
use crate::limits::{COMMITS_UNDER_WAY, POLLED_NS};
use crate::link::{Link, LinkError, Outgoing};
use crate::listen::{PollCursor, WorkSlice, Yields, next_event, poll_for_event};
use crate::neighbours::Neighbours;
use crate::parts::{PartSink, Parts};
use crate::payload::{PayloadError, Sink, Source};
use crate::round::{Committed, RoundError, RoundEvent, RoundIo, SendProgress, doing};
use crate::runtime::joined;
use crate::store::{Outbox, Store};
use crate::system::clock::{self, Alarm};
use crate::system::cores::HomeCore;
use crate::system::retransmissions::Retransmissions;

pub struct NodeIo<'a> {
    pub pe: PeId,
    pub tree: Arc<Tree>,
    /// The schedule of the PE for each round.
    pub schedule: PeSchedule,
    /// Maximum number of recorded spans.
    pub spans: usize,
    pub neighbours: &'a mut Neighbours,
    /// The retransmissions of TCP on the connections.
    pub retransmissions: Retransmissions,
    /// The sources and destinations of messages.
    pub store: &'a Store<'a>,
    /// The alarm for actions that wait for a time.
    pub alarm: Alarm,
    /// The reported activity of the PE.
    pub pulse: &'a ActivityMonitor,
    /// The parts of messages, and the index of this tree, if messages are sent in parts.
    pub parts: Option<(usize, &'a Parts)>,
    pub yields: Yields,
    pub home: Option<HomeCore>,
    pub slice: WorkSlice,
    pub state: RoundBuffers<'a>,
}

/// The destination of an incoming message.
enum Place {
    Whole(Sink),
    Part(PartSink),
}

/// A message that becomes visible, and the digest of the written bytes.
type Commit = (Message, Result<Option<Digest>, PayloadError>);

/// The state of one round.
#[derive(Default)]
pub struct RoundBuffers<'a> {
    outbox: Option<Outbox<'a>>,
    readers: Readers,
    /// The incoming message, and those whose next part has yet to be received.
    sink: Option<(Message, Place)>,
    sinks: BTreeMap<MessageId, Place>,
    prefix: Vec<u8>,
    pub held: HeldMessages,
    outlet: Outlet,
    last: PollCursor,
    /// Whether the PE polls for frames a few more times before it sleeps.
    polls_before_sleep: bool,
    /// Messages that are becoming visible.
    commits: JoinSet<Commit>,
    collisions: u64,
    files_ns: u64,
    started_ns: u64,
}

impl RoundIo for NodeIo<'_> {
    type Error = RoundError;

    fn now(&self) -> Time {
        clock::now()
    }

    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), RoundError> {
        if self.state.polls_before_sleep
            && self.schedule.collective.direction() != Direction::Up
            && let EdgeFrame::Control {
                item: Control::Receipt,
                ..
            } = frame
        {
            // Other PEs on this core may have a message to receive, which is more urgent.
            self.yields.yield_core();
        }
        let outlet = &mut self.state.outlet;
        Ok(outlet.control(self.neighbours, to, frame).await?)
    }

    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        piece: Piece,
        packing: Packing,
    ) -> Result<SendProgress, RoundError> {
        let message = piece.message;
        let state = &mut self.state;
        let reader = state.readers.turn_to(piece, to, || {
            let outbox = state.outbox.as_mut().expect("it was prepared");
            let flit_bytes = self.schedule.flit_bytes_of(message.id);
            Reader {
                at: 0,
                flit_bytes,
                source: outbox.take(message, flit_bytes),
                turns: self.parts.and_then(|(lane, parts)| {
                    let (_, turns, place) = parts.whole(lane, message)?;
                    Some((turns, place))
                }),
            }
        });
        // Coalesced frames do not wait for the disk.
        if matches!(reader.source, Source::Files(_)) {
            state.outlet.flush(self.neighbours)?;
        }
        let range = piece.offset..piece.end();
        let payload = reader.read(range, &mut state.files_ns).await;
        let payload = payload.map_err(|source| RoundError::Payload { message, source })?;
        state.prefix.clear();
        round.put_prefix(clock::now(), payload, &mut state.prefix);
        let flit = Outgoing::flit(&state.prefix, payload).joining(packing == Packing::Joins);
        Ok(state.outlet.flit(self.neighbours, to, flit).await?)
    }

    async fn send_again(&mut self, to: PeId) -> Result<(), RoundError> {
        if let Some(payload) = self.state.readers.last() {
            let flit = Outgoing::flit(&self.state.prefix, payload);
            self.neighbours.get(to).send_frame(flit).await?;
        }
        Ok(())
    }

    async fn send_held(
        &mut self,
        to: PeId,
        piece: Piece,
        later_from: u64,
        packing: Packing,
    ) -> Result<SendProgress, RoundError> {
        let RoundBuffers { held, outlet, .. } = &mut self.state;
        if !held.is_in_memory() {
            outlet.flush(self.neighbours)?;
        }
        // All flits but the last are full.
        let flit_bytes = u64::from(self.schedule.flit_bytes);
        let (message, place) = (piece.message.id, piece.offset / flit_bytes);
        let next = held.frame(message, place).await;
        let next = next.map_err(|source| not_held(self.store.holds_in(), source))?;
        let Some(body) = next else {
            return Ok(SendProgress::Whole);
        };
        let flit = Outgoing::forwarded(&body).joining(packing == Packing::Joins);
        let sent = outlet.flit(self.neighbours, to, flit).await?;
        held.forget_to(message, later_from / flit_bytes);
        Ok(sent)
    }

    async fn forward(&mut self, from: PeId, to: PeId) -> Result<(), RoundError> {
        let (source, sink) = self.neighbours.pair(from, to);
        Ok(sink.send_frame(source.forwarded()).await?)
    }

    async fn store(
        &mut self,
        from: PeId,
        message: Message,
        payload: Range<usize>,
    ) -> Result<bool, RoundError> {
        let state = &mut self.state;
        let (_, sink) = match &mut state.sink {
            Some(current) if current.0 == message => current,
            sink => {
                // An incomplete message continues later.
                state
                    .sinks
                    .extend(sink.take().map(|(of, sink)| (of.id, sink)));
                let begun = state.sinks.remove(&message.id);
                let begun = begun.unwrap_or_else(|| {
                    let part = self.parts.and_then(|(lane, parts)| {
                        parts.sink(message, lane, |whole| {
                            (self.store.sink(whole), self.store.holds_in())
                        })
                    });
                    let whole = || Place::Whole(self.store.sink(message));
                    part.map_or_else(whole, Place::Part)
                });
                sink.insert((message, begun))
            }
        };
        let payload = &self.neighbours.get(from).body()[payload];
        let stored = match sink {
            Place::Whole(sink) => sink.write(payload, &mut state.files_ns).await,
            Place::Part(part) => part.write(payload, &mut state.files_ns).await,
        };
        stored.map_err(|source| RoundError::Payload { message, source })
    }

    async fn hold(&mut self, from: PeId, message: Message) -> Result<(), RoundError> {
        let body = self.neighbours.get(from).body();
        let folder = self.store.holds_in();
        let held = self.state.held.hold(message.id, body, &folder).await;
        held.map_err(|source| not_held(folder, source))
    }

    fn drop_frame(&mut self, from: PeId) {
        self.neighbours.get(from).consume();
    }

    async fn make_room(&mut self) -> Result<Option<Committed>, RoundError> {
        let commits = &mut self.state.commits;
        // Parts wait for others, which may follow this one.
        if commits.len() < COMMITS_UNDER_WAY || self.parts.is_some() {
            return Ok(None);
        }
        let began = clock::now();
        let commit = commits.join_next().await;
        self.state.files_ns += clock::now().0 - began.0;
        commit.map(committed).transpose()
    }

    fn commit(&mut self, message: Message) -> bool {
        match self.state.sink.take() {
            Some((_, Place::Whole(Sink::Files(files)))) => {
                let commit = async move { (message, files.commit().await.map(Some)) };
                self.state.commits.spawn(commit);
                false
            }
            Some((_, Place::Part(part))) => {
                let commit = async move { (message, part.commit().await) };
                self.state.commits.spawn(commit);
                false
            }
            Some((_, Place::Whole(Sink::Synthetic(_)))) | None => true,
        }
    }

    async fn listen(
        &mut self,
        round: &Round<impl Observer>,
        until: Option<Time>,
    ) -> Result<RoundEvent, RoundError> {
        let state = &mut self.state;
        state.outlet.flush(self.neighbours)?;
        let (commits, last) = (&mut state.commits, &mut state.last);
        let sending = &mut state.outlet.in_progress;
        if round.is_duplex() && until.is_some() {
            // Other events are known after all other tasks have run.
            tokio::task::yield_now().await;
            last.poll_all_again();
        }
        let polls = state.polls_before_sleep && commits.is_empty() && self.yields.are_short();
        // The alarm rings early, and the PE polls until its time has come.
        let early = |until: Time| Time(until.0.saturating_sub(POLLED_NS));
        let alarm_at = if polls { until.map(early) } else { until };
        if polls && alarm_at.is_none_or(|at| at <= clock::now()) {
            // The alarm may have woken it on another core.
            if let (Some(home), Some(_)) = (&self.home, until) {
                home.move_here();
            }
            let (yields, neighbours) = (&mut self.yields, &mut *self.neighbours);
            let event = poll_for_event(round, neighbours, sending, last, yields, until).await;
            if let Some(event) = event {
                return Ok(event?);
            }
        }
        let doing = match sending.first() {
            // The action waits on one tree, but perhaps not on another.
            _ if self.parts.is_some() => None,
            Some(to) => Some(Doing::Sending(*to)),
            None => doing(round, until.is_none() && commits.is_empty()),
        };
        let _waiting = doing.map(|doing| self.pulse.doing(doing));
        tokio::select! {
            biased;
            event = next_event(round, self.neighbours, sending, last) => Ok(event?),
            Some(commit) = commits.join_next() => Ok(RoundEvent::Committed(committed(commit)?)),
            rung = self.alarm.wait(alarm_at), if until.is_some() => Ok(rung.map(|()| RoundEvent::Due)?),
        }
    }

    fn body(&mut self, from: PeId) -> &[u8] {
        self.neighbours.get(from).body()
    }

    fn stream_changed(&mut self, round: &Round<impl Observer>, last: Option<PeId>) {
        if last.is_none() {
            self.state
                .readers
                .put_by(|message| round.continues(message));
        }
        // Streams meet if there are several sources: only P0 begins on the trigger.
        if self.schedule.collective.direction() == Direction::Down || round.is_duplex() {
            return;
        }
        let frame = u64::from(self.schedule.flit_bytes) + MAX_FLIT_PREFIX as u64;
        for link in self.neighbours.children_mut() {
            if Some(link.peer()) != last && round.listens_to(link.peer()) {
                let waiting = link.waiting_bytes().div_ceil(frame);
                self.state.collisions += waiting;
                self.pulse.counters().collided(waiting);
            }
        }
    }

    async fn flush(&mut self) -> Result<(), RoundError> {
        self.state.outlet.flush(self.neighbours)?;
        for link in self.neighbours.all_mut() {
            std::future::poll_fn(|cx| link.poll_sent(cx)).await?;
        }
        Ok(())
    }

    /// Checks for failed connections: while one is busy, another may fail. A PE whose connections never
    /// keep it waiting answers pings, too.
    async fn look(&mut self, now: Time) -> Result<(), RoundError> {
        self.slice.end_if_long(now).await;
        Ok(self.neighbours.look(now)?)
    }

    fn refused(&mut self, fault: ProtocolError) -> RoundError {
        match fault {
            ProtocolError::Wire { from, error } => self.neighbours.get(from).wire(error).into(),
            other => RoundError::Fault(other),
        }
    }
}

fn committed(commit: Result<Commit, JoinError>) -> Result<Committed, RoundError> {
    let (message, result) = joined(commit);
    let digest = result.map_err(|source| RoundError::Payload { message, source })?;
    Ok(Committed { message, digest })
}

fn not_held(folder: PathBuf, source: io::Error) -> RoundError {
    RoundError::Held { folder, source }
}

/// The sends of one round.
#[derive(Default)]
pub(super) struct Outlet {
    /// Whether the round continues while frames are in progress.
    is_duplex: bool,
    /// The neighbour whose short frames are coalesced into one system call.
    gathering: Option<PeId>,
    /// The receivers of flits in progress.
    pub(super) in_progress: SmallVec<[PeId; 1]>,
}

impl Outlet {
    pub(super) fn new(is_duplex: bool) -> Outlet {
        Outlet {
            is_duplex,
            ..Outlet::default()
        }
    }

    pub(super) async fn control(
        &mut self,
        neighbours: &mut Neighbours,
        to: PeId,
        frame: &EdgeFrame,
    ) -> Result<(), LinkError> {
        match self.is_duplex {
            true => self.gathered(neighbours, to)?.begin_control(frame),
            false => neighbours.get(to).send_control(frame).await,
        }
    }

    /// Sends a flit; the transmission may be in progress afterwards.
    pub(super) async fn flit(
        &mut self,
        neighbours: &mut Neighbours,
        to: PeId,
        flit: Outgoing<'_>,
    ) -> Result<SendProgress, LinkError> {
        if !self.is_duplex {
            neighbours.get(to).send_frame(flit).await?;
            return Ok(SendProgress::Whole);
        }
        if self.gathered(neighbours, to)?.begin_frame(flit)? {
            return Ok(SendProgress::Whole);
        }
        self.in_progress.push(to);
        Ok(SendProgress::Begun)
    }

    /// Returns the connection to a neighbour, where consecutive short frames are coalesced. Writes those
    /// that were coalesced for another neighbour.
    fn gathered<'a>(
        &mut self,
        neighbours: &'a mut Neighbours,
        to: PeId,
    ) -> Result<&'a mut Link, LinkError> {
        if self.gathering != Some(to) {
            self.flush(neighbours)?;
            self.gathering = Some(to);
            neighbours.get(to).gather();
        }
        Ok(neighbours.get(to))
    }

    pub(super) fn flush(&mut self, neighbours: &mut Neighbours) -> Result<(), LinkError> {
        let to = self.gathering.take();
        to.map_or(Ok(()), |to| neighbours.get(to).flush_gathered())
    }
}
