//! What a PE of the storm plays its rounds on: frames on simulated connections, messages in
//! memory, virtual time. The rounds and what carries them out are the node's own
//! (`flitcast_node::rounds`); here is only what takes the place of sockets, files and clocks.

mod rounds;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use flitcast_node::round::{Heard, RoundIo, Sent, doing};
use flitcast_node::rounds::{Channel, play_rounds};
use flitcast_proto::items::{Control, Message};
use flitcast_proto::round::{Observer, Round, RoundFault};
use flitcast_proto::wire::LENGTH_BYTES;
use flitcast_proto::wire::control::{Doing, FromPe, ToPe};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit;
use flitcast_proto::{MessageId, PeId, RoundId, Time};
use xxhash_rust::xxh3::xxh3_128;

use super::Plant;
use super::cause::Cause;
use super::payload::payload;
use super::scenario::{Scenario, Way};
use super::world::{Delivery, World};

/// Messages that are being made durable at once, as in the node.
pub(super) const COMMITS_UNDER_WAY: usize = 16;
/// A round that is due at once so often, and then does nothing, never will.
const MOST_IDLE_TURNS: u32 = 1000;

/// A PE's process.
#[derive(Clone)]
pub(super) struct Process {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) scenario: Arc<Scenario>,
    pub(super) pe: PeId,
    pub(super) plant: Option<Plant>,
}

/// Plays one PE until the coordinator says stop.
pub(super) async fn live(process: Process) -> Result<(), Cause> {
    let pe = process.pe;
    let mut channel = process.clone();
    let rounds = loop {
        match channel.next_word().await? {
            ToPe::Prepare(prepare) => break prepare.rounds,
            ToPe::Stop { .. } => return Ok(()),
            ToPe::Abort { .. } => {}
            other => return Err(channel.unexpected(&other, "before the rounds")),
        }
    };
    let is_root = pe == process.scenario.tree.root();
    let mut io = StormIo {
        process,
        round: RoundId(0),
        frame: BTreeMap::new(),
        sends: BTreeSet::new(),
        sent: Vec::new(),
        forwards: None,
        under_way: Vec::new(),
        stored: BTreeMap::new(),
        parts: BTreeMap::new(),
        held: BTreeMap::new(),
        commits: VecDeque::new(),
        started: Time(0),
        idle_turns: 0,
    };
    let lanes = std::slice::from_mut(&mut io);
    play_rounds(is_root, rounds, lanes, &mut channel, &mut RoundId(0)).await
}

impl Process {
    fn now(&self) -> Time {
        Time(self.world.borrow().now)
    }

    fn to(&self, to: PeId) -> Way {
        let from = self.pe;
        Way { from, to }
    }

    fn from(&self, from: PeId) -> Way {
        let to = self.pe;
        Way { from, to }
    }

    /// Waits until `look` has something.
    async fn until<T>(&self, mut look: impl FnMut(&mut World) -> Option<T>) -> T {
        poll_fn(|_| match look(&mut self.world.borrow_mut()) {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        })
        .await
    }

    fn does(&self, doing: Doing) {
        self.world.borrow_mut().pulse(self.pe).doing = doing;
    }
}

impl Channel for Process {
    type Error = Cause;

    async fn next_word(&mut self) -> Result<ToPe, Cause> {
        let pe = self.pe;
        Ok(self.until(|world| world.next_word(pe)).await)
    }

    async fn next_word_in(&mut self, _round: RoundId) -> Result<ToPe, Cause> {
        self.next_word().await
    }

    async fn say(&mut self, word: FromPe) -> Result<(), Cause> {
        self.world.borrow_mut().say(self.pe, word);
        Ok(())
    }

    fn unexpected(&self, word: &ToPe, when: &'static str) -> Cause {
        Cause::Unexpected(format!("{word:?} {when}"))
    }

    fn fault(&self, round: RoundId, cause: &Cause) -> Option<FromPe> {
        let world = &mut self.world.borrow_mut();
        let (now, pe) = (world.now, self.pe);
        let text = format_args!("{pe} gives round {round} up: {cause}");
        world.trace.note(now, text);
        world.causes.push((pe, cause.clone()));
        Some(FromPe::Fault {
            round,
            peer: cause.peer(),
            reason: cause.to_string(),
            bad_input: false,
            output_stands: false,
            hung_up: matches!(cause, Cause::Closed { .. } | Cause::Truncated { .. }),
        })
    }
}

/// What one PE plays its rounds on.
struct StormIo {
    process: Process,
    round: RoundId,
    /// The bodies of frames that are in hand, by their senders.
    frame: BTreeMap<PeId, Vec<u8>>,
    /// The messages of which more goes out to somebody; the one that is passed on.
    sends: BTreeSet<(MessageId, PeId)>,
    /// The last frame.
    sent: Vec<u8>,
    forwards: Option<Message>,
    /// Frames that are under way, to whom, and what each counts there.
    under_way: Vec<(PeId, Vec<u8>, u64)>,
    /// The messages that come in, so far.
    stored: BTreeMap<MessageId, Vec<u8>>,
    /// Of messages, how many of their parts have come, and whether these are right.
    parts: BTreeMap<MessageId, (usize, bool)>,
    /// Messages that are held.
    held: BTreeMap<MessageId, Vec<Vec<u8>>>,
    /// Messages that are being made durable: when they are.
    commits: VecDeque<(u64, Message)>,
    started: Time,
    idle_turns: u32,
}

impl StormIo {
    /// Hands a flit's frame over, length and all, as soon as there is room for it.
    async fn send(&mut self, to: PeId, frame: &[u8]) -> Result<(), Cause> {
        let process = &self.process;
        let way = process.to(to);
        let payload = flit::parse(&frame[LENGTH_BYTES..]).map_or(0, |flit| flit.payload.len());
        let counts = payload as u64 + process.scenario.model.prefix_bytes;
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

    /// The same where the round goes on meanwhile.
    fn begin(&mut self, to: PeId, frame: &[u8]) -> Result<Sent, Cause> {
        let process = &self.process;
        let way = process.to(to);
        let payload = flit::parse(&frame[LENGTH_BYTES..]).map_or(0, |flit| flit.payload.len());
        let counts = payload as u64 + process.scenario.model.prefix_bytes;
        let world = &mut process.world.borrow_mut();
        if world.has_ended(way.back()) {
            return Err(Cause::Closed { peer: to });
        }
        if world.has_room(way, counts) {
            world.send(way, frame, counts);
            return Ok(Sent::Whole);
        }
        self.under_way.push((to, frame.to_vec(), counts));
        Ok(Sent::Begun)
    }

    fn put_control(&self, to: PeId, frame: &EdgeFrame) {
        let mut bytes = Vec::new();
        frame.put(&mut bytes);
        let counts = self.process.scenario.model.control_bytes;
        let way = self.process.to(to);
        self.process.world.borrow_mut().send(way, &bytes, counts);
    }

    /// What the network kept from an earlier round: a control item, or a whole message.
    async fn send_late_frames(&mut self, to: PeId) -> Result<(), Cause> {
        let way = self.process.to(to);
        // Before the first round there is none.
        while self.round > RoundId(1) && self.process.world.borrow_mut().wire(way).take_late_frame()
        {
            let round = RoundId(self.round.0 - 1);
            if self.round.0.is_multiple_of(2) {
                let message = Message::between(self.process.pe, to, 3);
                let digest = xxh3_128(b"old").to_be_bytes();
                let mut frame = Vec::new();
                flit::put_prefix(Some((round, message)), Some(&digest), 3, &mut frame);
                frame.extend_from_slice(b"old");
                self.send(to, &frame).await?;
            } else {
                let item = Control::Token;
                self.put_control(to, &EdgeFrame::Control { round, item });
            }
        }
        Ok(())
    }

    /// The next message that becomes durable, when it is.
    async fn next_commit(&mut self) -> Option<Message> {
        let (at, ..) = *self.commits.front()?;
        let pe = self.process.pe;
        self.process.world.borrow_mut().wake_at(at, pe);
        let is_done = |world: &mut World| (world.now >= at).then_some(());
        self.process.until(is_done).await;
        self.next_durable()
    }
}

impl StormIo {
    fn next_durable(&mut self) -> Option<Message> {
        self.commits.pop_front().map(|(_, message)| message)
    }
}

impl RoundIo for StormIo {
    type Error = Cause;

    fn now(&self) -> Time {
        self.process.now()
    }

    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), Cause> {
        // Between two flits of a message nothing else comes.
        if self.sends.is_empty() && self.forwards.is_none() {
            self.send_late_frames(to).await?;
        }
        // A few bytes: they queue for the port, and nobody waits for that.
        self.put_control(to, frame);
        Ok(())
    }

    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        message: Message,
        range: Range<u64>,
    ) -> Result<Sent, Cause> {
        if range.start == 0 && !round.is_duplex() {
            self.send_late_frames(to).await?;
        }
        let payload = payload(self.round, &message);
        let payload = &payload[range.start as usize..range.end as usize];
        let mut frame = Vec::new();
        round.put_prefix(self.now(), payload, &mut frame);
        frame.extend_from_slice(payload);
        match range.end < message.bytes {
            true => self.sends.insert((message.id, to)),
            false => self.sends.remove(&(message.id, to)),
        };
        if round.is_duplex() {
            return self.begin(to, &frame);
        }
        self.sent.clone_from(&frame);
        self.send(to, &frame).await?;
        Ok(Sent::Whole)
    }

    async fn send_again(&mut self, to: PeId) -> Result<(), Cause> {
        let frame = self.sent.clone();
        self.send(to, &frame).await
    }

    async fn send_held(
        &mut self,
        round: &Round<impl Observer>,
        to: PeId,
        message: Message,
        offset: u64,
        later_from: u64,
    ) -> Result<Sent, Cause> {
        let Some(frames) = self.held.get_mut(&message.id) else {
            return Ok(Sent::Whole);
        };
        let flit_bytes = u64::from(self.process.scenario.flit_bytes);
        let frame = frames[(offset / flit_bytes) as usize].clone();
        // Whoever needs it all the same finds nothing.
        let gone = frames.len().min((later_from / flit_bytes) as usize);
        frames[..gone].fill(Vec::new());
        if round.is_duplex() {
            return self.begin(to, &frame);
        }
        self.send(to, &frame).await?;
        Ok(Sent::Whole)
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
        let bytes = self.frame.get(&from).map_or(&[][..], |body| &body[payload]);
        let stored = self.stored.entry(message.id).or_default();
        stored.extend_from_slice(bytes);
        if stored.len() as u64 == message.bytes {
            self.process.world.borrow_mut().arrived(self.round);
        }
        Ok(true)
    }

    async fn hold(&mut self, from: PeId, message: Message) -> Result<(), Cause> {
        let frame = framed(self.body(from));
        let held = self.held.entry(message.id).or_default();
        held.push(frame);
        Ok(())
    }

    fn drop_frame(&mut self, from: PeId) {
        self.frame.remove(&from);
        let way = self.process.from(from);
        self.process.world.borrow_mut().wire(way).reader.consume();
    }

    async fn make_room(&mut self) -> Result<Option<Message>, Cause> {
        match self.commits.len() < COMMITS_UNDER_WAY {
            true => Ok(None),
            false => Ok(self.next_commit().await),
        }
    }

    /// What was put on a wire has gone.
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
        let right = bytes == payload(self.round, &message);
        let Process {
            world,
            scenario,
            pe,
            plant,
        } = &self.process;
        let operation = scenario.operation;
        let (whole, _) = operation.whole(&scenario.tree, message.id);
        let is_of_it = |it: &&Message| operation.whole(&scenario.tree, it.id).0 == whole;
        let takes = &scenario.briefs[pe.index()].takes;
        let at = self.now().0 + scenario.commit_ns;
        let (come, all_right) = self.parts.entry(whole).or_insert((0, true));
        *come += 1;
        *all_right &= right;
        self.commits.push_back((at, message));
        // It is seen when the last of its parts is here.
        if *come < takes.iter().filter(is_of_it).count() {
            return false;
        }
        let delivery = Delivery {
            round: self.round.0,
            message,
            of: operation.delivery(&scenario.tree, whole, *pe),
            right: *all_right,
        };
        let times = match plant {
            Some(Plant::DeliversTwice) => 2,
            _ => 1,
        };
        for _ in 0..times {
            // A thread does it, whoever waits for it.
            world.borrow_mut().deliver(at, *pe, delivery.clone());
        }
        false
    }

    async fn listen(
        &mut self,
        round: &Round<impl Observer>,
        until: Option<Time>,
    ) -> Result<Heard, Cause> {
        let process = &self.process;
        let pe = process.pe;
        let due = until.map(|Time(due)| due);
        let committed = self.commits.front().map(|(at, ..)| *at);
        {
            let world = &mut process.world.borrow_mut();
            let now = world.now;
            for at in due.into_iter().chain(committed).filter(|at| *at > now) {
                world.wake_at(at, pe);
            }
            let depends = until.is_none() && committed.is_none();
            let sending = self.under_way.first().map(|(to, ..)| Doing::Sending(*to));
            let doing = sending.or(doing(round, depends));
            world.pulse(pe).doing = doing.unwrap_or(Doing::Working);
        }
        let under_way = &mut self.under_way;
        let neighbours = process.world.borrow().neighbours(pe);
        let something = process
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
                        return Some(Ok(Something::Through(to)));
                    }
                }
                for &from in neighbours.iter().filter(|from| round.listens_to(**from)) {
                    if let Some(read) = world.read(process.from(from)) {
                        return Some(read.map(|body| Something::Came(from, body)));
                    }
                }
                let is_past = |at: Option<u64>| at.is_some_and(|at| at <= world.now);
                let late = is_past(due).then_some(Something::Due);
                let something = is_past(committed).then_some(Something::Durable).or(late);
                something.map(Ok)
            })
            .await;
        process.does(Doing::Working);
        let something = something?;
        self.idle_turns = match something {
            Something::Due => self.idle_turns + 1,
            _ => 0,
        };
        match something {
            Something::Came(from, body) => {
                self.frame.insert(from, body);
                Ok(Heard::Frame(from))
            }
            Something::Through(to) => Ok(Heard::Through(to)),
            Something::Durable => Ok(self.next_durable().map_or(Heard::Due, Heard::Committed)),
            Something::Due if self.idle_turns > MOST_IDLE_TURNS => Err(Cause::Spins),
            Something::Due => Ok(Heard::Due),
        }
    }

    fn body(&mut self, from: PeId) -> &[u8] {
        self.frame.get(&from).map_or(&[], Vec::as_slice)
    }

    fn turned(&mut self, _round: &Round<impl Observer>, _last: Option<PeId>) {}

    fn look(&mut self, _now: Time) -> Result<(), Cause> {
        Ok(())
    }

    fn refused(&mut self, fault: RoundFault) -> Cause {
        match fault {
            RoundFault::Wire { from: peer, error } => Cause::Wire { peer, error },
            other => Cause::Fault(other),
        }
    }
}

/// What somebody waits for.
enum Something {
    /// A frame.
    Came(PeId, Vec<u8>),
    /// What was under way to somebody has gone.
    Through(PeId),
    /// A message is durable.
    Durable,
    /// It is as late as it was to be.
    Due,
}

/// A frame's body behind its length.
fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}
