//! The environment of a simulated PE's rounds: frames on simulated connections, messages in memory,
//! virtual time. The rounds and their driver are those of the node (`flitcast_node::rounds`); only
//! sockets, files and clocks are replaced.

mod process;
mod rounds;
mod wholes;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flitcast_node::held::HeldMessages;
use flitcast_node::parts::PartSink;
use flitcast_node::payload::Sink;
use flitcast_node::round::{Committed, RoundEvent, RoundIo, SendProgress, doing};
use flitcast_node::rounds::{Channel as _, play_rounds};
use flitcast_proto::items::{Control, Message, Packing};
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::round::{Observer, Piece, ProtocolError, Round};
use flitcast_proto::wire::control::{Doing, ToPe};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{LENGTH_BYTES, flit};
use flitcast_proto::{MessageId, PeId, RoundId, Time};
use twox_hash::XxHash3_128;
use wholes::{Commits, Wholes};

use super::Plant;
use super::cause::Cause;
use super::payload::{content, payload};
use super::world::{Delivery, World};
use crate::edge::{self, framed};
use crate::wire_examples::written;

pub(super) use process::Process;

/// Maximum number of messages that become durable at the same time, as in the node.
pub(super) const COMMITS_UNDER_WAY: usize = 16;
/// Maximum number of consecutive polls of a round that are due at once and have no effect; more
/// indicate an endless loop.
const MOST_IDLE_TURNS: u32 = 1000;

/// Runs one PE until the coordinator stops it.
pub(super) async fn run_pe(process: Process) -> Result<(), Cause> {
    let pe = process.pe;
    let mut channel = process.clone();
    let prepare = loop {
        match channel.next_command().await? {
            ToPe::Prepare(prepare) => break prepare,
            ToPe::Stop { .. } => return Ok(()),
            ToPe::Abort { .. } => {}
            other => return Err(channel.unexpected(&other, "before the rounds")),
        }
    };
    let (operation, tree) = (process.scenario.operation, &process.scenario.tree);
    let is_root = pe == tree.root();
    let mut schedules = vec![prepare.schedule];
    schedules.extend(prepare.lanes);
    let wholes = Rc::new(Wholes::new(operation, tree, &schedules));
    let lane = |(lane, schedule): (usize, PeSchedule)| StormIo {
        neighbours: operation.neighbours(&process.scenario.lanes[lane].tree, pe),
        process: Process {
            lane,
            ..process.clone()
        },
        schedule,
        wholes: wholes.clone(),
        round: RoundId(0),
        frame: BTreeMap::new(),
        sends: BTreeSet::new(),
        sent: Vec::new(),
        forwards: None,
        under_way: Vec::new(),
        stored: BTreeMap::new(),
        sinks: BTreeMap::new(),
        held: HeldMessages::default(),
        commits: Commits::default(),
        started: Time(0),
        idle_turns: 0,
    };
    let mut lanes: Vec<StormIo> = schedules.into_iter().enumerate().map(lane).collect();
    let rounds = prepare.rounds;
    play_rounds(is_root, rounds, &mut lanes, &mut channel, &mut RoundId(0)).await
}

/// The environment of one PE's rounds on one tree.
struct StormIo {
    process: Process,
    schedule: PeSchedule,
    /// The parent first, then the children and others in index order.
    neighbours: Vec<PeId>,
    /// The messages of all lanes of the PE.
    wholes: Rc<Wholes>,
    round: RoundId,
    /// Bodies of the frames in hand, by sender.
    frame: BTreeMap<PeId, Vec<u8>>,
    /// Messages of which more is to be sent, with the receivers; and the message that is relayed.
    sends: BTreeSet<(MessageId, PeId)>,
    /// The last frame.
    sent: Vec<u8>,
    forwards: Option<Message>,
    /// Frames in progress: the receiver, the frame, and the bytes that it counts for.
    under_way: Vec<(PeId, Vec<u8>, u64)>,
    /// Received bytes of incoming messages.
    stored: BTreeMap<MessageId, Vec<u8>>,
    /// Sinks of the incoming parts of messages.
    sinks: BTreeMap<MessageId, PartSink>,
    /// Held messages, which fit into memory.
    held: HeldMessages,
    /// Messages that are becoming durable.
    commits: Commits,
    started: Time,
    idle_turns: u32,
}

impl StormIo {
    /// Returns the number of bytes that a flit's frame, including its length, counts for.
    fn counts(&self, frame: &[u8]) -> u64 {
        let payload = flit::parse(&frame[LENGTH_BYTES..]).map_or(0, |flit| flit.payload.len());
        payload as u64 + self.process.model().prefix_bytes
    }

    /// Sends a flit's frame as soon as there is room for it.
    async fn send(&mut self, to: PeId, frame: &[u8]) -> Result<(), Cause> {
        let (process, counts) = (&self.process, self.counts(frame));
        let way = process.to(to);
        process.does(Doing::Sending(to));
        let sent = process
            .until(|world| match world.has_ended(way.back()) {
                true => Some(Err(Cause::Closed { peer: to })),
                false => world.has_room(way, counts).then_some(Ok(())),
            })
            .await;
        process.does(Doing::Working);
        sent?;
        process.world.borrow_mut().send(way, frame, counts);
        Ok(())
    }

    /// Starts to send a flit's frame while the round continues.
    fn begin(&mut self, to: PeId, frame: &[u8]) -> Result<SendProgress, Cause> {
        let (process, counts) = (&self.process, self.counts(frame));
        let way = process.to(to);
        let world = &mut process.world.borrow_mut();
        if world.has_ended(way.back()) {
            return Err(Cause::Closed { peer: to });
        }
        if world.has_room(way, counts) {
            world.send(way, frame, counts);
            return Ok(SendProgress::Whole);
        }
        self.under_way.push((to, frame.to_vec(), counts));
        Ok(SendProgress::Begun)
    }

    fn put_control(&self, to: PeId, frame: &EdgeFrame) {
        let counts = self.process.model().control_bytes;
        let way = self.process.to(to);
        let mut world = self.process.world.borrow_mut();
        world.send(way, &edge::written(frame), counts);
    }

    /// Sends frames that the network kept from an earlier round: a control item, or a whole
    /// message.
    async fn send_late_frames(&mut self, to: PeId) -> Result<(), Cause> {
        let way = self.process.to(to);
        // There is no round before the first.
        while self.round > RoundId(1) && self.process.world.borrow_mut().wire(way).take_late_frame()
        {
            let round = RoundId(self.round.0 - 1);
            if self.round.0.is_multiple_of(2) {
                let message = Message::between(self.process.pe, to, 3);
                let digest = XxHash3_128::oneshot(b"old").to_be_bytes();
                let head = Some((round, message));
                let prefix = written(|out| flit::put_prefix(head, Some(&digest), 3, out));
                self.send(to, &[&prefix[..], b"old"].concat()).await?;
            } else {
                let item = Control::Token;
                self.put_control(to, &EdgeFrame::Control { round, item });
            }
        }
        Ok(())
    }

    /// Returns the next message that becomes durable, once it is.
    async fn next_commit(&mut self) -> Option<Committed> {
        let (commits, wholes, pe) = (&mut self.commits, &self.wholes, self.process.pe);
        let next = |world: &mut World| match commits.next_at(wholes) {
            Some(at) if at <= world.now => Some(commits.take(at)),
            Some(at) => {
                world.wake_at(at, pe);
                None
            }
            // Other parts are missing.
            None => (commits.len() == 0).then_some(None),
        };
        self.process.until(next).await
    }

    /// Returns the bytes of a message on this lane.
    fn payload(&self, message: &Message) -> Cow<'static, [u8]> {
        let parts = (self.process.lane, &self.wholes.parts);
        payload(self.round, message, parts, self.schedule.flit_bytes)
    }

    /// Passes bytes of a part of a message to its sink.
    async fn store_part(&mut self, message: Message, bytes: &[u8]) -> Result<(), Cause> {
        let (lane, parts) = (self.process.lane, &self.wholes.parts);
        let Some((whole, ..)) = parts.whole(lane, message) else {
            return Ok(());
        };
        let round = self.round;
        let open = |whole: Message| (Sink::Synthetic(content(round, &whole)), PathBuf::new());
        if let Some(sink) = parts.sink(message, lane, open) {
            self.sinks.entry(message.id).or_insert(sink);
        }
        if let Some(sink) = self.sinks.get_mut(&message.id) {
            // The digest must detect wrong bytes.
            if !sink.write(bytes, &mut 0).await.map_err(unexpected)? {
                self.wholes.is_wrong(whole.id);
            }
        }
        Ok(())
    }
}

impl RoundIo for StormIo {
    type Error = Cause;

    fn now(&self) -> Time {
        self.process.now()
    }

    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), Cause> {
        // Nothing may be sent between two flits of a message.
        if self.sends.is_empty() && self.forwards.is_none() {
            self.send_late_frames(to).await?;
        }
        // A few bytes that queue for the port without a wait.
        self.put_control(to, frame);
        Ok(())
    }

    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        piece: Piece,
        _packing: Packing,
    ) -> Result<SendProgress, Cause> {
        let message = piece.message;
        if piece.offset == 0 && !round.is_duplex() {
            self.send_late_frames(to).await?;
        }
        let payload = self.payload(&message);
        let payload = &payload[piece.offset as usize..piece.end() as usize];
        let mut frame = written(|out| round.put_prefix(self.now(), payload, out));
        frame.extend_from_slice(payload);
        match piece.is_last() {
            false => self.sends.insert((message.id, to)),
            true => self.sends.remove(&(message.id, to)),
        };
        if round.is_duplex() {
            return self.begin(to, &frame);
        }
        self.sent.clone_from(&frame);
        self.send(to, &frame).await?;
        Ok(SendProgress::Whole)
    }

    async fn send_again(&mut self, to: PeId) -> Result<(), Cause> {
        let frame = self.sent.clone();
        self.send(to, &frame).await
    }

    async fn send_held(
        &mut self,
        to: PeId,
        piece: Piece,
        later_from: u64,
        _packing: Packing,
    ) -> Result<SendProgress, Cause> {
        let flit_bytes = u64::from(self.schedule.flit_bytes);
        let (id, flit) = (piece.message.id, piece.offset / flit_bytes);
        let held = self.held.frame(id, flit).await.map_err(unexpected)?;
        let Some(frame) = held.map(|body| framed(&body)) else {
            return Ok(SendProgress::Whole);
        };
        self.held.forget_to(id, later_from / flit_bytes);
        if self.schedule.is_duplex() {
            return self.begin(to, &frame);
        }
        self.send(to, &frame).await?;
        Ok(SendProgress::Whole)
    }

    async fn forward(&mut self, from: PeId, to: PeId) -> Result<(), Cause> {
        let frame = framed(self.body(from));
        let flit = flit::parse(&frame[LENGTH_BYTES..]);
        let flit = flit.map_err(|error| Cause::Wire { peer: from, error })?;
        if let Some((_, message)) = flit.head {
            self.send_late_frames(to).await?;
            self.forwards = Some(message);
        }
        self.forwards = self.forwards.filter(|_| flit.digest.is_none());
        self.send(to, &frame).await
    }

    async fn store(
        &mut self,
        from: PeId,
        message: Message,
        payload: Range<usize>,
    ) -> Result<bool, Cause> {
        let body = self.frame.get(&from);
        let bytes = body.map_or(Vec::new(), |body| body[payload].to_vec());
        self.store_part(message, &bytes).await?;
        let stored = self.stored.entry(message.id).or_default();
        stored.extend_from_slice(&bytes);
        if stored.len() as u64 == message.bytes {
            self.process.world.borrow_mut().arrived(self.round);
        }
        Ok(true)
    }

    async fn hold(&mut self, from: PeId, message: Message) -> Result<(), Cause> {
        let body = self.frame.get(&from).map_or(&[][..], Vec::as_slice);
        let held = self.held.hold(message.id, body, Path::new("")).await;
        held.map_err(unexpected)
    }

    fn drop_frame(&mut self, from: PeId) {
        self.frame.remove(&from);
        let way = self.process.from(from);
        self.process.world.borrow_mut().wire(way).reader.consume();
    }

    async fn make_room(&mut self) -> Result<Option<Committed>, Cause> {
        // Parts wait for other parts, which may arrive after this one.
        match self.commits.len() < COMMITS_UNDER_WAY || self.wholes.in_parts {
            true => Ok(None),
            false => Ok(self.next_commit().await),
        }
    }

    /// Does nothing, because frames are on the wire at once.
    async fn flush(&mut self) -> Result<(), Cause> {
        Ok(())
    }

    fn commit(&mut self, message: Message) -> bool {
        let Some(mut bytes) = self.stored.remove(&message.id) else {
            return true;
        };
        if self.process.plant == Some(Plant::WritesOtherBytes) {
            bytes[0] ^= 1;
        }
        let right = bytes[..] == self.payload(&message)[..];
        let Process {
            world,
            scenario,
            pe,
            plant,
            ..
        } = &self.process;
        let operation = scenario.operation;
        let (whole, _) = operation.collective().whole(&scenario.tree, message.id);
        let at = self.now().0 + scenario.commit_ns;
        if !right {
            self.wholes.is_wrong(whole);
        }
        let part = self.sinks.remove(&message.id);
        self.commits.push(message, whole, at, part);
        let is_whole = self.wholes.completes(whole, at);
        // Polls the completion, which starts at once in a thread.
        self.commits.next_at(&self.wholes);
        // A message is visible when its last part is here.
        let Some(right) = is_whole else {
            return false;
        };
        world.borrow_mut().wake_at(at, *pe);
        let delivery = Delivery {
            round: self.round.0,
            message,
            of: operation.collective().delivery(&scenario.tree, whole, *pe),
            right,
        };
        for _ in 0..1 + u8::from(*plant == Some(Plant::DeliversTwice)) {
            // A thread delivers the message, even if the PE has stopped waiting.
            world.borrow_mut().deliver(at, *pe, delivery.clone());
        }
        false
    }

    async fn listen(
        &mut self,
        round: &Round<impl Observer>,
        until: Option<Time>,
    ) -> Result<RoundEvent, Cause> {
        let StormIo {
            process,
            neighbours,
            wholes,
            frame,
            under_way,
            commits,
            ..
        } = self;
        let due = until.map(|Time(due)| due);
        let committed = commits.next_at(wholes);
        {
            let world = &mut process.world.borrow_mut();
            let now = world.now;
            for at in due.into_iter().chain(committed).filter(|at| *at > now) {
                world.wake_at(at, process.pe);
            }
            let depends = until.is_none() && committed.is_none();
            let sending = under_way.first().map(|(to, ..)| Doing::Sending(*to));
            let doing = match wholes.in_parts {
                // It may wait on one tree and work on another.
                true => None,
                false => sending.or(doing(round, depends)),
            };
            world.pulse(process.pe).doing = doing.unwrap_or(Doing::Working);
        }
        let event = process
            .until(|world| {
                for place in 0..under_way.len() {
                    let (to, frame, counts) = &under_way[place];
                    let way = process.to(*to);
                    if world.has_ended(way.back()) {
                        return Some(Err(Cause::Closed { peer: *to }));
                    }
                    if world.has_room(way, *counts) {
                        world.send(way, frame, *counts);
                        let (to, ..) = under_way.remove(place);
                        return Some(Ok(RoundEvent::Through(to)));
                    }
                }
                for &from in neighbours.iter().filter(|from| round.listens_to(**from)) {
                    if let Some(read) = world.read(process.from(from)) {
                        let read = read.map(|body| frame.insert(from, body));
                        return Some(read.map(|_| RoundEvent::Frame(from)));
                    }
                }
                // Polls the completions.
                commits.next_at(wholes);
                let committed = commits.take(world.now).map(RoundEvent::Committed);
                let is_late = due.is_some_and(|due| due <= world.now);
                committed.or(is_late.then_some(RoundEvent::Due)).map(Ok)
            })
            .await;
        process.does(Doing::Working);
        let event = event?;
        self.idle_turns = match event {
            RoundEvent::Due => self.idle_turns + 1,
            _ => 0,
        };
        match self.idle_turns > MOST_IDLE_TURNS {
            true => Err(Cause::Spins),
            false => Ok(event),
        }
    }

    fn body(&mut self, from: PeId) -> &[u8] {
        self.frame.get(&from).map_or(&[], Vec::as_slice)
    }

    fn stream_changed(&mut self, _round: &Round<impl Observer>, _last: Option<PeId>) {}

    async fn look(&mut self, _now: Time) -> Result<(), Cause> {
        Ok(())
    }

    fn refused(&mut self, fault: ProtocolError) -> Cause {
        match fault {
            ProtocolError::Wire { from: peer, error } => Cause::Wire { peer, error },
            other => Cause::Fault(other),
        }
    }
}

fn unexpected(error: impl std::fmt::Display) -> Cause {
    Cause::Unexpected(error.to_string())
}
