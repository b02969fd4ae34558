//! The driver of one PE in virtual time. It does what the node's does
//! (`node/src/round.rs`), one thing at a time, on frames as they are on the wire.
//!
//! Beyond it, it hears of the end or the silence of any neighbour while it waits, tells
//! its neighbours why it gives up, and drops what is late.

use std::sync::Arc;

use flitcast_proto::pe::{Control, Message, Pe, Route, Transmit, Violation};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::{self, Flit};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX};
use flitcast_proto::{PeId, RoundId, Time};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::Plant;
use super::cause::Cause;
use super::net::Net;
use super::payload::payload;
use super::scenario::{Scenario, Way};
use super::world::{Delivery, World};

/// Messages that are being made durable at once, as in the node.
pub(super) const COMMITS_UNDER_WAY: usize = 16;
/// A machine that is due at once so often, and then does nothing, never will.
const MOST_IDLE_TURNS: u32 = 1000;

/// A message at its destination, as the PE reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) round: u64,
    pub(super) message: Message,
    pub(super) delivered: bool,
}

/// What a PE says when it ends.
#[derive(Debug)]
pub(super) struct Ending {
    /// Of all its rounds.
    pub(super) arrivals: Vec<Arrival>,
}

/// Plays all rounds of one PE.
pub(super) async fn live(net: Net, scenario: Arc<Scenario>) -> Ending {
    let mut ending = Ending {
        arrivals: Vec::new(),
    };
    let pe = net.pe;
    for id in 1..=scenario.rounds {
        let begun = net
            .until(|world| world.may_begin(pe, id).then_some(()))
            .await;
        let mut round = Round::new(&net, &scenario, RoundId(id));
        let played = match begun {
            Ok(()) => round.play().await,
            Err(cause) => Err(cause),
        };
        if let Err(cause) = &played {
            give_up(&net, id, cause);
            round.settle().await;
        }
        ending.arrivals.append(&mut round.arrivals);
        if played.is_err() {
            return ending;
        }
        net.world.borrow_mut().finish(pe, id);
    }
    if let Err(cause) = net.until(|world| world.is_over().then_some(())).await {
        give_up(&net, scenario.rounds, &cause);
    }
    ending
}

/// The round is given up here, and all neighbours that can be reached are told why.
fn give_up(net: &Net, round: u64, cause: &Cause) {
    let world = &mut net.world.borrow_mut();
    let (now, pe) = (world.now, net.pe);
    world
        .trace
        .note(now, format_args!("{pe} gives round {round} up: {cause}"));
    world.causes.push((now, pe, cause.clone()));
    if net.plant == Some(Plant::ForgetsToAbort) {
        return;
    }
    let mut frame = Vec::new();
    let (round, reason) = (RoundId(round), cause.reason(pe));
    EdgeFrame::Abort { round, reason }.put(&mut frame);
    for to in world.neighbours(pe) {
        let (way, counts) = (Way { from: pe, to }, frame.len() as u64);
        // Where there is no room for the word, the end of the connection says it.
        if world.has_room(way, counts) {
            world.send(way, &frame, counts);
        }
    }
    world.close(pe);
}

/// One round of one PE.
struct Round<'a> {
    id: RoundId,
    pe: Pe,
    net: &'a Net,
    scenario: &'a Scenario,
    neighbours: Vec<PeId>,
    held: Vec<(Message, Vec<Vec<u8>>)>,
    /// The messages expected here.
    arrivals: Vec<Arrival>,
    /// Messages that are being made durable: when they are, their places, their bytes.
    commits: Vec<(u64, usize, Vec<u8>)>,
}

/// What a PE waits for between two things to do.
enum Next {
    Frame(PeId, Result<Vec<u8>, flitcast_proto::wire::WireError>),
    Commit(usize),
    Alarm,
}

impl Round<'_> {
    fn new<'a>(net: &'a Net, scenario: &'a Scenario, id: RoundId) -> Round<'a> {
        let briefs = &scenario.briefs;
        let sent = briefs.iter().flat_map(|brief| &brief.sends);
        let arrivals = sent
            .filter(|message| message.destination == net.pe)
            .map(|&message| Arrival {
                round: id.0,
                message,
                delivered: false,
            });
        Round {
            id,
            pe: Pe::new(
                scenario.tree.clone(),
                net.pe,
                briefs[net.pe.index()].clone(),
            ),
            net,
            scenario,
            neighbours: net.world.borrow().neighbours(net.pe),
            held: Vec::new(),
            arrivals: arrivals.collect(),
            commits: Vec::new(),
        }
    }

    async fn play(&mut self) -> Result<(), Cause> {
        if self.net.pe == PeId::ROOT {
            let now = self.net.now();
            self.net.world.borrow_mut().rounds_ns[self.id.0 as usize] = (now.0, now.0);
            self.pe.handle_trigger(now);
        }
        let mut idle_turns = 0;
        loop {
            while let Some(transmit) = self.pe.poll_transmit(self.net.now()) {
                idle_turns = 0;
                self.transmit(transmit).await?;
            }
            if self.pe.is_finished() {
                return Ok(());
            }
            match self.next().await? {
                Next::Frame(from, frame) => {
                    idle_turns = 0;
                    let frame = frame.map_err(|error| Cause::Wire { peer: from, error })?;
                    self.take(from, frame).await?;
                }
                Next::Commit(commit) => self.committed(commit),
                Next::Alarm => idle_turns += 1,
            }
            if idle_turns > MOST_IDLE_TURNS {
                return Err(Cause::Spins);
            }
        }
    }

    async fn next(&mut self) -> Result<Next, Cause> {
        let Time(now) = self.net.now();
        let due = self.pe.poll_timeout().map(|Time(due)| due);
        let commits = self.commits.iter().map(|(at, ..)| *at);
        for at in due.into_iter().chain(commits).filter(|&at| at > now) {
            self.net.world.borrow_mut().wake_at(at, self.net.pe);
        }
        let (pe, limit) = (&self.pe, self.net.frame_limit);
        let look = |world: &mut World| {
            for &from in &self.neighbours {
                let way = Way { from, to: pe.id() };
                if pe.listens_to(from)
                    && let Some(frame) = world.read(way, limit)
                {
                    return Some(Next::Frame(from, frame));
                }
            }
            let done = self.commits.iter().position(|(at, ..)| *at <= world.now);
            let rings = due.is_some_and(|due| due <= world.now);
            done.map(Next::Commit).or(rings.then_some(Next::Alarm))
        };
        self.net.until(look).await
    }

    async fn transmit(&mut self, transmit: Transmit) -> Result<(), Cause> {
        let (Transmit::Control { to, .. } | Transmit::Message { to, .. }) = transmit;
        self.send_late_frames(to).await?;
        match transmit {
            Transmit::Control { to, item } => self.send_control(to, item),
            Transmit::Message { to, message } => self.send_message(to, message).await?,
        }
        self.pe.handle_sent();
        Ok(())
    }

    fn send_control(&self, to: PeId, item: Control) {
        let round = self.id;
        let mut frame = Vec::new();
        EdgeFrame::Control { round, item }.put(&mut frame);
        let counts = self.scenario.model.control_bytes;
        self.net.send_control(to, &frame, counts);
    }

    /// What the network kept from an earlier round: a control item, or a whole message.
    async fn send_late_frames(&mut self, to: PeId) -> Result<(), Cause> {
        let way = Way {
            from: self.net.pe,
            to,
        };
        while self.net.world.borrow_mut().wire(way).take_late_frame() {
            let round = RoundId(self.id.0 - 1);
            let mut frame = Vec::new();
            if self.id.0.is_multiple_of(2) {
                let (source, destination, bytes) = (self.net.pe, to, 3);
                let message = Message {
                    source,
                    destination,
                    bytes,
                };
                let digest = xxh3_128(b"old").to_be_bytes();
                flit::put_prefix(Some((round, message)), Some(&digest), 3, &mut frame);
                frame.extend_from_slice(b"old");
                self.send_flit(to, &frame).await?;
            } else {
                let item = Control::Token;
                EdgeFrame::Control { round, item }.put(&mut frame);
                let counts = self.scenario.model.control_bytes;
                self.net.send_control(to, &frame, counts);
            }
        }
        Ok(())
    }

    async fn send_message(&mut self, to: PeId, message: Message) -> Result<(), Cause> {
        let held = self.held.iter().position(|(held, _)| *held == message);
        if let Some((_, frames)) = held.map(|place| self.held.swap_remove(place)) {
            for frame in frames {
                self.send_flit(to, &frame).await?;
            }
            return Ok(());
        }
        let payload = payload(self.id, &message);
        let mut hash = Xxh3::new();
        let mut head = Some((self.id, message));
        let mut rest = &payload[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.scenario.flit_bytes as usize));
            rest = later;
            hash.update(now);
            let digest = rest.is_empty().then(|| hash.digest128().to_be_bytes());
            let mut frame = Vec::new();
            flit::put_prefix(head.take(), digest.as_ref(), now.len(), &mut frame);
            frame.extend_from_slice(now);
            self.send_flit(to, &frame).await?;
            self.passed(now.len() as u64);
        }
        Ok(())
    }

    async fn send_flit(&mut self, to: PeId, frame: &[u8]) -> Result<(), Cause> {
        let payload = flit::parse(&frame[LENGTH_BYTES..]).map_or(0, |flit| flit.payload.len());
        let counts = payload as u64 + self.scenario.model.prefix_bytes;
        self.net.send_flit(to, frame, counts).await
    }

    /// So much more of the message under way has passed; what goes between its flits
    /// goes now.
    fn passed(&mut self, bytes: u64) {
        self.pe.handle_progress(self.net.now(), bytes);
        self.interject();
    }

    fn interject(&mut self) {
        while let Some((to, item)) = self.pe.poll_interjection(self.net.now()) {
            self.send_control(to, item);
        }
    }

    async fn take(&mut self, from: PeId, frame: Vec<u8>) -> Result<(), Cause> {
        let body = &frame[LENGTH_BYTES..];
        let wire = |error| Cause::Wire { peer: from, error };
        if flit::is_flit(body) {
            let flit = flit::parse(body).map_err(wire)?;
            return self.take_message(from, frame, flit).await;
        }
        match EdgeFrame::parse(body).map_err(wire)? {
            EdgeFrame::Control { round, item } if self.is_current(round) => {
                let handled = self.pe.handle_control(self.net.now(), from, item);
                handled.map_err(Cause::violated)
            }
            EdgeFrame::Control { round, .. } if round < self.id => {
                self.drop_late(1);
                Ok(())
            }
            EdgeFrame::Abort { reason, .. } => Err(Cause::Aborted { peer: from, reason }),
            other => Err(Cause::out_of_place(from, &other)),
        }
    }

    fn is_current(&self, round: RoundId) -> bool {
        round == self.id || self.net.plant == Some(Plant::TakesLateFrames)
    }

    fn drop_late(&self, frames: u64) {
        self.net.world.borrow_mut().late_frames += frames;
    }

    async fn take_message(&mut self, from: PeId, frame: Vec<u8>, flit: Flit) -> Result<(), Cause> {
        let message = match flit.head {
            Some((round, message)) if self.is_current(round) => message,
            Some((round, message)) if round < self.id => {
                return self.skip(from, message, flit).await;
            }
            Some((round, _)) => {
                return Err(Cause::out_of_place(
                    from,
                    &format_args!("a message of round {round}"),
                ));
            }
            None => return Err(Cause::out_of_place(from, &"a body flit without a head")),
        };
        let route = self.pe.handle_head(from, message);
        match route.map_err(Cause::violated)? {
            Route::Relay { to } => {
                self.send_late_frames(to).await?;
                self.relay(from, to, message, frame, flit).await?;
                self.pe.handle_received();
                self.pe.handle_sent();
            }
            Route::Deliver => {
                self.deliver(from, message, frame, flit).await?;
                self.pe.handle_received();
            }
            Route::Hold => {
                self.hold(from, message, frame, flit).await?;
                self.pe.handle_received();
            }
        }
        Ok(())
    }

    /// The next flit of a message under way. What is due meanwhile, goes.
    async fn next_flit(&mut self, from: PeId) -> Result<(Vec<u8>, Flit), Cause> {
        let mut idle_turns = 0;
        let frame = loop {
            let due = self.pe.interjection_timeout().map(|Time(due)| due);
            match self.net.read_frame(from, due).await? {
                Some(frame) => break frame,
                None if idle_turns > MOST_IDLE_TURNS => return Err(Cause::Spins),
                None => self.interject(),
            }
            idle_turns += 1;
        };
        let flit = flit::parse(&frame[LENGTH_BYTES..]);
        let flit = flit.map_err(|error| Cause::Wire { peer: from, error })?;
        match flit.head {
            None => Ok((frame, flit)),
            Some((_, message)) => Err(Cause::violated(Violation::Interrupted { from, message })),
        }
    }

    /// Drops a message of an earlier round.
    async fn skip(&mut self, from: PeId, message: Message, first: Flit) -> Result<(), Cause> {
        let mut left = first
            .rest(from, message, message.bytes)
            .map_err(Cause::violated)?;
        self.drop_late(1);
        while left > 0 {
            let (_, flit) = self.next_flit(from).await?;
            left = flit.rest(from, message, left).map_err(Cause::violated)?;
            self.drop_late(1);
        }
        Ok(())
    }

    async fn relay(
        &mut self,
        from: PeId,
        to: PeId,
        message: Message,
        first: Vec<u8>,
        flit: Flit,
    ) -> Result<(), Cause> {
        let (mut frame, mut flit) = (first, flit);
        let mut left = message.bytes;
        loop {
            left = flit.rest(from, message, left).map_err(Cause::violated)?;
            self.send_flit(to, &frame).await?;
            self.passed(flit.payload.len() as u64);
            if left == 0 {
                return Ok(());
            }
            (frame, flit) = self.next_flit(from).await?;
        }
    }

    async fn hold(
        &mut self,
        from: PeId,
        message: Message,
        first: Vec<u8>,
        flit: Flit,
    ) -> Result<(), Cause> {
        let mut left = flit
            .rest(from, message, message.bytes)
            .map_err(Cause::violated)?;
        let mut frames = vec![first];
        while left > 0 {
            let (frame, flit) = self.next_flit(from).await?;
            left = flit.rest(from, message, left).map_err(Cause::violated)?;
            frames.push(frame);
        }
        self.held.push((message, frames));
        Ok(())
    }

    async fn deliver(
        &mut self,
        from: PeId,
        message: Message,
        first: Vec<u8>,
        flit: Flit,
    ) -> Result<(), Cause> {
        let expected = |arrival: &Arrival| arrival.message == message;
        let Some(place) = self.arrivals.iter().position(expected) else {
            return Err(Cause::out_of_place(from, &message));
        };
        let mut bytes = Vec::new();
        let (mut frame, mut flit) = (first, flit);
        let mut left = message.bytes;
        loop {
            left = flit.rest(from, message, left).map_err(Cause::violated)?;
            bytes.extend_from_slice(&frame[LENGTH_BYTES..][flit.payload.clone()]);
            if left == 0 {
                self.net.world.borrow_mut().arrived(self.id);
            }
            self.passed(flit.payload.len() as u64);
            if left == 0 {
                break;
            }
            (frame, flit) = self.next_flit(from).await?;
        }
        let digest = xxh3_128(&bytes).to_be_bytes();
        if flit.digest != Some(digest) && self.net.plant != Some(Plant::TrustsBytes) {
            return Err(Cause::Damaged { message });
        }
        while self.commits.len() >= COMMITS_UNDER_WAY {
            let at = self.commits[0].0;
            self.net.sleep_until(at).await;
            self.committed(0);
        }
        let at = self.net.now().0 + self.scenario.commit_ns;
        self.commits.push((at, place, bytes));
        Ok(())
    }

    fn committed(&mut self, commit: usize) {
        let (_, place, bytes) = self.commits.remove(commit);
        let arrival = &mut self.arrivals[place];
        arrival.delivered = true;
        let (round, message) = (self.id.0, arrival.message);
        let right = bytes == payload(self.id, &message);
        self.net.world.borrow_mut().delivered(Delivery {
            round,
            message,
            right,
        });
        self.pe.handle_delivered();
    }

    /// Given up: what was complete is made durable all the same, and told so.
    async fn settle(&mut self) {
        while let Some((at, ..)) = self.commits.first() {
            self.net.sleep_until(*at).await;
            self.committed(0);
            if self.net.plant == Some(Plant::ForgetsDeliveries) {
                self.arrivals.iter_mut().for_each(|a| a.delivered = false);
            }
        }
    }
}

/// The longest frame of an edge.
pub(super) fn frame_limit(scenario: &Scenario) -> usize {
    scenario.flit_bytes as usize + MAX_FLIT_PREFIX
}
