//! What a node plays rounds on: its connections, its files, the monotonic clock.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::items::Message;
use flitcast_proto::ops::parts::Turns;
use flitcast_proto::ops::{Brief, Word};
use flitcast_proto::round::{Observer, Round, RoundFault};
use flitcast_proto::wire::control::{Doing, Report};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{MAX_FLIT_PREFIX, MAX_REPORT_SPANS};
use flitcast_proto::{MessageId, PeId, RoundId, Time, Tree};
use smallvec::SmallVec;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::blocking::joined;
use crate::counters::Counters;
use crate::held::HeldMessages;
use crate::limits::{COMMITS_UNDER_WAY, OPENING};
use crate::link::{Link, LinkError};
use crate::listen::{LastTurns, moved, moved_soon};
use crate::neighbours::Neighbours;
use crate::parts::{PartSink, Parts};
use crate::payload::{PayloadError, Sink, Source};
use crate::pulse::{Pulse, While};
use crate::round::{Heard, RoundError, RoundIo, Sent, doing};
use crate::rounds::RoundsIo;
use crate::store::{Outbox, Store};
use crate::system::clock::{self, Alarm};
use crate::system::process;
use crate::system::retransmissions::Retransmissions;

/// What one PE plays all its rounds on.
pub struct NodeIo<'a> {
    /// Who it is, and where.
    pub pe: PeId,
    /// The tree of all.
    pub tree: Arc<Tree>,
    /// What it was told of each round.
    pub brief: Brief,
    /// Whether spans are recorded.
    pub records_spans: bool,
    /// The connections.
    pub neighbours: &'a mut Neighbours,
    /// What TCP had to send again on them.
    pub retransmissions: Retransmissions,
    /// Where messages come from and go.
    pub store: &'a Store,
    /// For what time alone brings.
    pub alarm: Alarm,
    /// Where it is told what the PE is doing.
    pub pulse: &'a Pulse,
    /// Where messages go in parts: what they are, and which of several trees this is.
    pub parts: Option<(usize, &'a Parts)>,
    /// What belongs to the round under way.
    pub state: State<'a>,
}

/// The bytes of a message that this PE sends, from a place on.
struct Reader {
    at: u64,
    source: Source,
    /// Of a part: the trees on which the rest of the message goes, and the one on which this does.
    turns: Option<(Turns, usize)>,
}

/// Where a message goes that comes in.
enum Place {
    Whole(Sink),
    Part(PartSink),
}

/// What belongs to one round.
#[derive(Default)]
pub struct State<'a> {
    outbox: Option<Outbox<'a>>,
    /// The message that goes out, to whom first, and its bytes; and the one that comes in.
    source: Option<(Message, PeId, Reader)>,
    sink: Option<(Message, Place)>,
    /// Those of which the next part is yet to go, or to come.
    sources: BTreeMap<(MessageId, PeId), Reader>,
    sinks: BTreeMap<MessageId, Place>,
    prefix: Vec<u8>,
    held: HeldMessages,
    /// To whom something is under way, and who had the last turn.
    sending: SmallVec<[PeId; 1]>,
    last: LastTurns,
    /// Whether it looks for frames a few more times before the PE sleeps.
    waits_awake: bool,
    /// For whom short frames are gathered, to go with one call.
    gathering: Option<PeId>,
    /// Messages that are being made visible.
    commits: JoinSet<(Message, Result<(), PayloadError>)>,
    collisions: u64,
    files_ns: u64,
    started_ns: u64,
}

impl<'a> RoundsIo for NodeIo<'a> {
    type Observer = Told<'a>;
    type Working = While<'a>;

    async fn prepare(&mut self) {
        if let Some((_, parts)) = self.parts {
            parts.forget();
        }
        let mut outbox = Outbox::new(self.store, &self.brief, self.parts.map(|(_, parts)| parts));
        // A disk that takes longer holds the round up when it has begun.
        let _ = timeout(OPENING, outbox.opened()).await;
        let mut held = std::mem::take(&mut self.state.held);
        held.forget_all();
        self.state = State {
            outbox: Some(outbox),
            held,
            waits_awake: self.brief.waits_awake(),
            ..State::default()
        };
    }

    fn begin(&mut self, id: RoundId) -> Round<Told<'a>> {
        let brief = self.brief.clone();
        let counters = self.pulse.counters();
        let tree = self.tree.clone();
        let told = Told {
            counters,
            // The round begins and ends once.
            is_first: self.parts.is_none_or(|(lane, _)| lane == 0),
        };
        let round = Round::observed(id, tree, self.pe, brief, told);
        let spans = match self.records_spans {
            true => MAX_REPORT_SPANS,
            false => 0,
        };
        let mut round = round.record_spans(spans);
        if self.pe == self.tree.root() {
            let now = clock::now();
            self.state.started_ns = now.0;
            round.handle_trigger(now);
        }
        round
    }

    fn working(&self) -> While<'a> {
        self.pulse.doing(Doing::Working)
    }

    async fn settle(&mut self, round: &mut Round<Told<'a>>) {
        if let Some((_, parts)) = self.parts {
            parts.give_up().await;
        }
        while let Some(commit) = self.state.commits.join_next().await {
            // The round has its error already.
            if let Ok(message) = committed(commit) {
                round.handle_committed(clock::now(), message);
            }
        }
    }

    fn report(&mut self, mut round: Round<Told<'a>>, complete: bool) -> Report {
        let links = self.neighbours.all_mut();
        Report {
            round: round.id(),
            complete,
            started_ns: self.state.started_ns,
            arrivals: round.arrivals(),
            collisions: self.state.collisions,
            peak_buffered_flits: round.peak_buffered_flits(),
            peak_resident_bytes: process::peak_resident_bytes(),
            own_start: round.own_start(),
            late_frames: round.late_frames(),
            repeated_frames: links.map(Link::take_repeated).sum(),
            files_ns: self.state.files_ns,
            retransmitted_packets: self.retransmissions.take(),
            spans: round.take_spans(),
            counts: Box::new(self.pulse.counters().counts()),
        }
    }
}

impl RoundIo for NodeIo<'_> {
    type Error = RoundError;

    fn now(&self) -> Time {
        clock::now()
    }

    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), RoundError> {
        match self.brief.operation.is_duplex() {
            true => {
                gathered(self.neighbours, &mut self.state.gathering, to)?.begin_control(frame)?
            }
            false => self.neighbours.get(to).send_control(frame).await?,
        }
        Ok(())
    }

    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        message: Message,
        payload: Range<u64>,
    ) -> Result<Sent, RoundError> {
        let State {
            outbox,
            source,
            sources,
            prefix,
            files_ns,
            gathering,
            ..
        } = &mut self.state;
        let flit_bytes = self.brief.flit_bytes_of(message.id);
        let goes_on = |(of, whom, _): &&mut (Message, PeId, Reader)| {
            // To several at once, each reads for itself.
            *of == message && (*whom == to || !self.brief.all_ports)
        };
        let (_, _, reader) = match source.as_mut().filter(goes_on) {
            Some(_) => source.as_mut().expect("just looked at"),
            None => {
                // One of which more is to go to somebody else goes on later.
                let put_by = source.take().filter(|_| self.brief.all_ports);
                sources.extend(put_by.map(|(of, whom, reader)| ((of.id, whom), reader)));
                let begun = match self.brief.all_ports {
                    true => sources.remove(&(message.id, to)),
                    false => begun_at(sources, message.id, to, payload.start),
                };
                let begun = begun.unwrap_or_else(|| {
                    let outbox = outbox.as_mut().expect("it was prepared");
                    Reader {
                        at: 0,
                        source: outbox.take(message, flit_bytes),
                        turns: self.parts.and_then(|(lane, parts)| {
                            let (_, turns, place) = parts.whole(lane, message)?;
                            Some((turns, place))
                        }),
                    }
                });
                source.insert((message, to, begun))
            }
        };
        // What is gathered does not wait for the disk.
        if matches!(reader.source, Source::Files(_))
            && let Some(other) = gathering.take()
        {
            self.neighbours.get(other).go()?;
        }
        let payload = reader.read(payload, flit_bytes, files_ns).await;
        let payload = payload.map_err(|source| RoundError::Payload { message, source })?;
        prefix.clear();
        round.put_prefix(clock::now(), payload, prefix);
        if round.is_duplex() {
            let link = gathered(self.neighbours, gathering, to)?;
            let is_sent = link.begin_flit(prefix, payload)?;
            return Ok(self.state.begun(to, is_sent));
        }
        self.neighbours.get(to).send_flit(prefix, payload).await?;
        Ok(Sent::Whole)
    }

    async fn send_again(&mut self, to: PeId) -> Result<(), RoundError> {
        let State { source, prefix, .. } = &mut self.state;
        if let Some((_, _, reader)) = source {
            let link = self.neighbours.get(to);
            link.send_flit(prefix, reader.source.last()).await?;
        }
        Ok(())
    }

    async fn send_held(
        &mut self,
        round: &Round<impl Observer>,
        to: PeId,
        message: Message,
        offset: u64,
        later_from: u64,
    ) -> Result<Sent, RoundError> {
        let folder = || self.store.holds_in();
        if !self.state.held.is_in_memory() {
            self.go()?;
        }
        // All flits but the last are full.
        let place = offset / u64::from(self.brief.flit_bytes);
        let next = self.state.held.frame(message.id, place).await;
        let next = next.map_err(|source| not_held(folder(), source))?;
        let Some(body) = next else {
            return Ok(Sent::Whole);
        };
        let is_sent = match round.is_duplex() {
            true => {
                let link = gathered(self.neighbours, &mut self.state.gathering, to)?;
                link.begin_body(&body)?
            }
            false => {
                self.neighbours.get(to).send_body(&body).await?;
                true
            }
        };
        let needed = later_from / u64::from(self.brief.flit_bytes);
        self.state.held.forget_to(message.id, needed);
        Ok(self.state.begun(to, is_sent))
    }

    async fn forward(&mut self, from: PeId, to: PeId) -> Result<(), RoundError> {
        let (source, sink) = self.neighbours.pair(from, to);
        Ok(sink.send_body(source.body()).await?)
    }

    async fn store(
        &mut self,
        from: PeId,
        message: Message,
        payload: Range<usize>,
    ) -> Result<bool, RoundError> {
        let State {
            sink,
            sinks,
            files_ns,
            ..
        } = &mut self.state;
        let (_, sink) = match sink {
            Some((of, _)) if *of == message => sink.as_mut().expect("just looked at"),
            _ => {
                // One that is not whole goes on later.
                sinks.extend(sink.take().map(|(of, sink)| (of.id, sink)));
                let begun = sinks.remove(&message.id);
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
            Place::Whole(sink) => sink.write(payload, files_ns).await,
            Place::Part(part) => part.write(payload, files_ns).await,
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

    async fn make_room(&mut self) -> Result<Option<Message>, RoundError> {
        let commits = &mut self.state.commits;
        // Parts wait for others, which may be behind this one.
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
                let commit = async move { (message, files.commit().await) };
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
    ) -> Result<Heard, RoundError> {
        self.go()?;
        let State {
            commits,
            sending,
            last,
            waits_awake,
            ..
        } = &mut self.state;
        if round.is_duplex() && until.is_some() {
            // What has come meanwhile is known when everybody else had a turn.
            tokio::task::yield_now().await;
            last.ask_all_again();
        }
        if *waits_awake && until.is_none() && commits.is_empty() {
            let heard = moved_soon(round, self.neighbours, sending, last).await;
            if let Some(heard) = heard {
                return Ok(heard?);
            }
        }
        let doing = match sending.first() {
            // On one tree it waits, on another it may not.
            _ if self.parts.is_some() => None,
            Some(to) => Some(Doing::Sending(*to)),
            None => doing(round, until.is_none() && commits.is_empty()),
        };
        let _waiting = doing.map(|doing| self.pulse.doing(doing));
        tokio::select! {
            biased;
            heard = moved(round, self.neighbours, sending, last) => Ok(heard?),
            Some(commit) = commits.join_next() => Ok(Heard::Committed(committed(commit)?)),
            rung = self.alarm.wait(until), if until.is_some() => Ok(rung.map(|()| Heard::Due)?),
        }
    }

    fn body(&mut self, from: PeId) -> &[u8] {
        self.neighbours.get(from).body()
    }

    fn turned(&mut self, round: &Round<impl Observer>, last: Option<PeId>) {
        if last.is_none() {
            let State {
                source, sources, ..
            } = &mut self.state;
            if let Some((message, to, reader)) = source.take()
                && reader.at < message.bytes
            {
                sources.insert((message.id, to), reader);
            }
            sources.retain(|(id, _), _| round.goes_on_with(*id));
        }
        // Streams meet where there are several sources: P0 alone begins on the trigger.
        if self.brief.operation.begins_on() == Word::Trigger || round.is_duplex() {
            return;
        }
        let frame = u64::from(self.brief.flit_bytes) + MAX_FLIT_PREFIX as u64;
        for link in self.neighbours.children_mut() {
            if Some(link.peer()) != last && round.listens_to(link.peer()) {
                let waiting = link.waiting_bytes().div_ceil(frame);
                self.state.collisions += waiting;
                self.pulse.counters().collided(waiting);
            }
        }
    }

    async fn flush(&mut self) -> Result<(), RoundError> {
        self.go()?;
        for link in self.neighbours.all_mut() {
            std::future::poll_fn(|cx| link.poll_sent(cx)).await?;
        }
        Ok(())
    }

    /// While one connection is busy, another one may be lost.
    fn look(&mut self, now: Time) -> Result<(), RoundError> {
        Ok(self.neighbours.look(now)?)
    }

    fn refused(&mut self, fault: RoundFault) -> RoundError {
        match fault {
            RoundFault::Wire { from, error } => self.neighbours.get(from).wire(error).into(),
            other => RoundError::Fault(other),
        }
    }
}

impl NodeIo<'_> {
    /// What was gathered for a neighbour goes.
    fn go(&mut self) -> Result<(), LinkError> {
        let to = self.state.gathering.take();
        to.map_or(Ok(()), |to| self.neighbours.get(to).go())
    }
}

/// The connection to a neighbour, where short frames that follow each other are gathered. What was
/// gathered for another one goes.
fn gathered<'a>(
    neighbours: &'a mut Neighbours,
    gathering: &mut Option<PeId>,
    to: PeId,
) -> Result<&'a mut Link, LinkError> {
    if *gathering != Some(to) {
        if let Some(other) = gathering.replace(to) {
            neighbours.get(other).go()?;
        }
        neighbours.get(to).gather();
    }
    Ok(neighbours.get(to))
}

fn committed(
    commit: Result<(Message, Result<(), PayloadError>), JoinError>,
) -> Result<Message, RoundError> {
    let (message, result) = joined(commit);
    result.map_err(|source| RoundError::Payload { message, source })?;
    Ok(message)
}

fn not_held(folder: PathBuf, source: io::Error) -> RoundError {
    RoundError::Held { folder, source }
}

impl Reader {
    /// These bytes, which are not behind it: a flit.
    async fn read(
        &mut self,
        range: Range<u64>,
        flit_bytes: u32,
        waited_ns: &mut u64,
    ) -> Result<&[u8], PayloadError> {
        while self.at < range.start {
            let skipped = (range.start - self.at).min(flit_bytes.into());
            self.next(skipped, flit_bytes, waited_ns).await?;
        }
        self.next(range.end - range.start, flit_bytes, waited_ns)
            .await
    }

    /// The next flit of so many bytes; of a part, behind what goes on other trees.
    async fn next(
        &mut self,
        len: u64,
        flit_bytes: u32,
        waited_ns: &mut u64,
    ) -> Result<&[u8], PayloadError> {
        if let Some((turns, lane)) = &mut self.turns {
            while turns.next().is_some_and(|turn| turn != *lane) {
                self.source.next(flit_bytes as usize, waited_ns).await?;
            }
        }
        self.at += len;
        self.source.next(len as usize, waited_ns).await
    }
}

/// Of what has been read of a message: what went to this neighbour, or else to somebody else, up
/// to this place or, for want of that, to one ahead of it.
fn begun_at(
    sources: &mut BTreeMap<(MessageId, PeId), Reader>,
    message: MessageId,
    to: PeId,
    at: u64,
) -> Option<Reader> {
    let all = sources.range((message, PeId(0))..=(message, PeId(u32::MAX)));
    let fitting = all.filter(|(_, reader)| reader.at <= at);
    let nearest = fitting.max_by_key(|((_, last), reader)| (reader.at, *last == to));
    let key = nearest.map(|(key, _)| *key)?;
    sources.remove(&key)
}

impl State<'_> {
    /// Something was begun.
    fn begun(&mut self, to: PeId, is_sent: bool) -> Sent {
        if is_sent {
            return Sent::Whole;
        }
        self.sending.push(to);
        Sent::Begun
    }
}

/// The counters hear what happens in a round.
pub struct Told<'a> {
    counters: &'a Counters,
    is_first: bool,
}

impl Observer for Told<'_> {
    fn begun(&self) {
        if self.is_first {
            self.counters.round_begins();
        }
    }

    fn finished(&self) {
        if self.is_first {
            self.counters.round_done();
        }
    }

    fn moved(&self, bytes: u64) {
        self.counters.moved(bytes);
    }

    fn late(&self) {
        self.counters.late();
    }

    fn holds(&self, flits: u64) {
        self.counters.holds(flits);
    }

    fn started(&self, due: Time, began: Time) {
        self.counters.started(due, began);
    }
}
