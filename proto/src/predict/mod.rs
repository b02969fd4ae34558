//! The duration of a round on measured links and hosts, predicted with the state machines of real
//! rounds in virtual time.
//!
//! Each action of a [`Round`] costs what [`Model`] defines, and frames have sizes but no bytes. The
//! prediction does not depend on the algorithm.

mod chores;
mod cores;
mod files;
mod resources;
mod station;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cores::{Cores, Thread};
use files::{Chore, Desks};
use resources::{FrameInFlight, PortQueue, Wire};
use station::{FlitsOut, Gathered, Next, Station, Work};

use crate::cost::{Link, Model, Ports};
use crate::items::{Control, Message};
use crate::ops::{Brief, Operation, Word};
use crate::round::{Action, Round, RoundFault, Sized};
use crate::spans::Span;
use crate::streams::Streams;
use crate::{MessageId, PeId, RoundId, Time, Tree};

/// Minimum number of pieces of the longest messages, each a whole number of flits, if they have as
/// many flits.
const PIECES: u64 = 1024;
/// Number of pieces for each hop of the deepest tree. A relay forwards whole pieces, so each hop
/// but the first adds a piece: a quarter of a percent with this number.
const PIECES_A_HOP: u64 = 400;
/// Maximum number of crossings of pieces over all edges, to limit the time of a prediction. With
/// many messages each has fewer pieces, which matters less because a port forwards more messages.
const CROSSINGS: u64 = 500_000;

/// The expected times of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// For each delivery, when its last byte arrives after the root's trigger; `None` for a null
    /// message.
    pub arrivals_ns: Vec<Option<u64>>,
    /// For each delivery, when it is durable and visible after the root's trigger; without files,
    /// when it arrives.
    pub visible_ns: Vec<Option<u64>>,
    /// For each PE index, for how long the PE waits for its files while it has messages to send or
    /// to receive.
    pub files_ns: Vec<u64>,
    /// For each PE index, the activity of its ports after the root's trigger.
    pub spans: Vec<Vec<Span>>,
    /// For each PE index, the certificates, the order and the streams of a gather by certification,
    /// after the root's trigger.
    pub streams: Vec<Streams>,
}

impl Prediction {
    /// Returns the last arrival; 0 if there is nothing to send.
    pub fn round_ns(&self) -> u64 {
        let arrivals = self.arrivals_ns.iter().copied().flatten();
        arrivals.max().unwrap_or(0)
    }

    /// Returns the time from the last arrival until all messages are durable and visible.
    pub fn commit_ns(&self) -> u64 {
        let visible = self.visible_ns.iter().copied().flatten();
        visible.max().unwrap_or(0).saturating_sub(self.round_ns())
    }

    /// Combines the prediction with one for another part of the round on separate ports.
    #[must_use]
    pub fn beside(self, part: Prediction) -> Prediction {
        let later = |one: Vec<Option<u64>>, other: Vec<Option<u64>>| {
            let both = one.into_iter().zip(other);
            both.map(|(one, other)| one.max(other)).collect()
        };
        let files = self.files_ns.into_iter().zip(part.files_ns);
        let spans = self.spans.into_iter().zip(part.spans);
        Prediction {
            arrivals_ns: later(self.arrivals_ns, part.arrivals_ns),
            visible_ns: later(self.visible_ns, part.visible_ns),
            files_ns: files.map(|(one, other)| one.max(other)).collect(),
            spans: spans
                .map(|(one, other)| one.into_iter().chain(other).collect())
                .collect(),
            streams: self.streams,
        }
    }

    /// Replaces the costs of files by those in a prediction for another round of the same messages.
    #[must_use]
    pub fn with_files_of(self, other: &Prediction) -> Prediction {
        let of = self.arrivals_ns.iter().enumerate();
        let visible = of.map(|(at, arrives)| {
            let [came, was] = [other.arrivals_ns[at]?, other.visible_ns[at]?];
            Some((*arrives)? + was.saturating_sub(came))
        });
        Prediction {
            visible_ns: visible.collect(),
            files_ns: other.files_ns.clone(),
            ..self
        }
    }

    /// Returns the maximum time for which a PE waits for its files.
    pub fn disk_ns(&self) -> u64 {
        self.files_ns.iter().copied().max().unwrap_or(0)
    }
}

/// Returns the maximum number of pieces of a message. Predicted times are late by at most a piece
/// for each edge on a message's way.
pub fn most_pieces(tree: &Tree, briefs: &[Brief]) -> u64 {
    let takes = briefs.iter().flat_map(|brief| &brief.takes);
    let crossings: u64 = takes.map(|message| hops(tree, message)).sum();
    let most = (CROSSINGS / crossings.max(1)).max(1);
    let deepest = tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0);
    (PIECES_A_HOP * u64::from(deepest)).max(PIECES).min(most)
}

/// Returns the maximum number of edges from the source of a message to one of its destinations.
pub fn hops(tree: &Tree, message: &Message) -> u64 {
    let depth = |pe| u64::from(tree.depth(pe));
    match message.destination.one() {
        Some(pe) => depth(pe) + depth(message.source),
        None => 1,
    }
}

/// Predicts the round of these schedules, one for each PE.
///
/// # Errors
///
/// Returns an error if a round refuses its schedule, which is a bug in the schedule.
pub fn predict(
    tree: &Arc<Tree>,
    briefs: &[Brief],
    model: &Model,
) -> Result<Prediction, RoundFault> {
    predict_unless(&AtomicBool::new(false), tree, briefs, model)
}

/// Predicts a round as [`predict`] does, unless another thread sets `given_up` before the end.
///
/// # Errors
///
/// Returns an error if a round refuses its schedule, or if the prediction was given up.
pub fn predict_unless(
    given_up: &AtomicBool,
    tree: &Arc<Tree>,
    briefs: &[Brief],
    model: &Model,
) -> Result<Prediction, RoundFault> {
    let sent = briefs.iter().flat_map(Brief::cut_sends);
    let flits = sent.map(|(message, flit)| message.bytes.div_ceil(flit.into()));
    let flits = flits.max().unwrap_or(0);
    let flits_a_piece = flits.div_ceil(most_pieces(tree, briefs)).max(1);
    predict_in_pieces(given_up, tree, briefs, model, flits_a_piece)
}

/// Predicts a round in which this number of flits crosses an edge at a time.
fn predict_in_pieces(
    given_up: &AtomicBool,
    tree: &Arc<Tree>,
    briefs: &[Brief],
    model: &Model,
    flits_a_piece: u64,
) -> Result<Prediction, RoundFault> {
    let world = run_in_pieces(given_up, tree, briefs, model, flits_a_piece)?;
    Ok(world.prediction())
}

/// Runs a round in which this number of flits crosses an edge at a time, to its end.
fn run_in_pieces<'a>(
    given_up: &AtomicBool,
    tree: &'a Arc<Tree>,
    briefs: &'a [Brief],
    model: &'a Model,
    flits_a_piece: u64,
) -> Result<World<'a>, RoundFault> {
    let sent = briefs.iter().flat_map(Brief::cut_sends);
    let packets = sent.map(|(message, flit)| (message.id, flit.into()));
    let packets: BTreeMap<MessageId, u64> = packets.collect();
    let flit = briefs.first().map_or(1, |brief| brief.flit_bytes);
    let piece = flits_a_piece.saturating_mul(flit.into());
    let operation = briefs.first().map(|brief| brief.operation);
    let operation = operation.unwrap_or(Operation::Scatter);
    let stations = tree.ids().zip(briefs).map(|(id, brief)| Station {
        round: Round::new(RoundId(1), tree.clone(), id, brief.clone())
            .in_pieces(flits_a_piece)
            .record_spans(usize::MAX),
        work: None,
        // P0 runs already if it alone is triggered.
        waits_since: (id != tree.root() || operation.begins_on() == Word::Clock).then_some(0),
        waits_awake: brief.waits_awake(),
        gathers: brief.in_any_order,
        gathered: Gathered::default(),
        set_up: BTreeSet::new(),
        fresh: true,
        begins: 0,
        writes: VecDeque::new(),
        began: 0,
        held_up: None,
        files_ns: 0,
        send: PortQueue::default(),
        receive: PortQueue::default(),
    });
    let files = model.files.as_ref();
    let machines = model.hosts.machines().iter();
    let mut residents = vec![0; machines.len()];
    for pe in tree.pes() {
        residents[model.hosts.machine_of(pe)] += 1;
    }
    let mut world = World {
        stations: stations.collect(),
        tree,
        operation,
        model,
        packets,
        wires: tree.ids().map(|_| Default::default()).collect(),
        others: BTreeMap::new(),
        neighbours: tree
            .ids()
            .map(|pe| operation.neighbours(tree, pe))
            .collect(),
        cores: machines.map(Cores::new).collect(),
        residents,
        desks: files.map(|files| Desks::new(files, tree, briefs, piece)),
        chores: Vec::new(),
        events: BTreeMap::new(),
        caused: 0,
        #[cfg(test)]
        sent: Vec::new(),
    };
    let root = tree.root();
    let others = tree.pes().filter(|pe| *pe != root);
    let all_begin = operation.begins_on() == Word::Clock;
    for (nth, pe) in std::iter::once(root).chain(others).enumerate() {
        match all_begin {
            true => world.begin_late(pe, nth),
            false if pe == root => world.begin_first(pe),
            false => {}
        }
        let is_triggered = operation.is_triggered(tree, pe);
        if is_triggered {
            world.stations[pe.index()].round.handle_trigger(Time(0));
        }
        // In turns, a PE calls its first senders before the trigger.
        if is_triggered || briefs[pe.index()].is_in_turns() {
            world.look(0, pe)?;
        }
    }
    while let Some(((now, _), event)) = world.events.pop_first() {
        if given_up.load(Relaxed) {
            return Err(RoundFault::GivenUp);
        }
        match event {
            Event::Look(at) => world.look(now, at)?,
            Event::Done(at) => world.done(now, at)?,
            Event::Step(chore) => world.step(now, chore),
            Event::Turn(thread) => world.take_turn(now, thread),
        }
    }
    Ok(world)
}

enum Event {
    /// A PE may be able to continue.
    Look(PeId),
    /// The work of a PE is done.
    Done(PeId),
    /// A thread that reads or writes files starts its next step.
    Step(usize),
    /// The time slice of another program on the machine of this thread may be over.
    Turn(Thread),
}

struct World<'a> {
    stations: Vec<Station>,
    tree: &'a Tree,
    operation: Operation,
    model: &'a Model,
    /// Payload bytes of a full flit of each message.
    packets: BTreeMap<MessageId, u64>,
    /// For each PE: the wire from its parent, and the wire to it.
    wires: Vec<[Wire; 2]>,
    /// Wires between PEs that are not neighbours in the tree, by sender and receiver.
    others: BTreeMap<(PeId, PeId), Wire>,
    /// For each PE, the PEs to which it connects, tree neighbours first.
    neighbours: Vec<Vec<PeId>>,
    cores: Vec<Cores>,
    /// Number of PEs on each machine.
    residents: Vec<usize>,
    /// File work, if messages are made of files.
    desks: Option<Desks<'a>>,
    chores: Vec<Chore>,
    /// Events by time, then in the order in which they were caused.
    events: BTreeMap<(u64, u64), Event>,
    caused: u64,
    /// All flits that were sent, in this order, with the number of packets that began with each.
    #[cfg(test)]
    sent: Vec<(PeId, FlitsOut, u64)>,
}

impl World<'_> {
    fn cause(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), event);
    }

    fn wire(&mut self, from: PeId, to: PeId) -> (&mut Wire, Link) {
        let link = self.model.link(self.tree, from, to);
        let down = self.tree.parent(to) == Some(from);
        let wire = match () {
            () if down => &mut self.wires[to.index()][0],
            () if self.tree.parent(from) == Some(to) => &mut self.wires[from.index()][1],
            () => self.others.entry((from, to)).or_default(),
        };
        (wire, link)
    }

    fn prediction(self) -> Prediction {
        let pes = self.stations.len();
        let deliveries = self.operation.deliveries(self.tree);
        let mut prediction = Prediction {
            arrivals_ns: vec![None; deliveries],
            visible_ns: vec![None; deliveries],
            files_ns: Vec::with_capacity(pes),
            spans: Vec::with_capacity(pes),
            streams: Vec::with_capacity(pes),
        };
        for mut station in self.stations {
            let arrivals = station.round.arrivals().into_iter();
            for arrival in arrivals.filter(|it| it.bytes_received == it.bytes_total) {
                let (message, at) = (arrival.message, arrival.destination);
                let delivery = self.operation.delivery(self.tree, message, at).index();
                prediction.arrivals_ns[delivery] = Some(arrival.at_ns);
                prediction.visible_ns[delivery] = arrival.delivered.then_some(arrival.delivered_ns);
            }
            prediction.files_ns.push(station.files_ns);
            prediction.spans.push(station.round.take_spans());
            prediction.streams.push(station.round.take_streams());
        }
        prediction
    }

    /// Lets a PE begin its next work.
    fn look(&mut self, now: u64, at: PeId) -> Result<(), RoundFault> {
        let station = &self.stations[at.index()];
        if station.work.is_some() || now < station.begins {
            return Ok(());
        }
        match self.next(now, at)? {
            Next::Act(work) => {
                let station = &mut self.stations[at.index()];
                station.work = Some(work);
                station.began = now;
                if self.takes_core(now, at.index()) {
                    self.start(now, at);
                }
            }
            Next::Sleep(until) => {
                let station = &mut self.stations[at.index()];
                station.waits_since = station.waits_since.or(Some(now));
                station.gathered = Gathered::default();
                self.give_up_core(now, at.index());
                if let Some(until) = until {
                    self.cause(until, Event::Look(at));
                }
            }
            Next::Stays => self.give_up_core(now, at.index()),
        }
        Ok(())
    }

    /// Starts the work of a PE that has a core.
    fn start(&mut self, now: u64, at: PeId) {
        let Some(work) = &self.stations[at.index()].work else {
            return;
        };
        let work = self.core_ns(at, work);
        let station = &mut self.stations[at.index()];
        let waited = station.waits_since.take().map(|since| now - since);
        let begins = std::mem::take(&mut station.fresh);
        let wake = waited.map_or(0.0, |waited| self.wake_ns(at, waited, begins));
        let first = if begins {
            self.model.hosts.of(at).first_ns
        } else {
            0.0
        };
        let done = now.saturating_add((wake + first).round() as u64);
        self.cause(done.saturating_add(work), Event::Done(at));
    }

    /// Polls the round for its next action; actions that take no time are done at once.
    fn next(&mut self, now: u64, at: PeId) -> Result<Next, RoundFault> {
        // The number of transmissions in progress that were checked, and when one of them can
        // continue without a further event.
        let (mut looked_at, mut through) = (0, None);
        loop {
            let station = &mut self.stations[at.index()];
            let is_duplex = station.round.is_duplex();
            let action = match station.writes.remove(looked_at) {
                Some(written) => written,
                None => station.round.poll(Time(now)),
            };
            match action {
                // A few bytes that queue for the port without a wait.
                Action::SendControl { .. } => return Ok(Next::Act(Work::Out(action))),
                Action::SendFlit {
                    message, offset, ..
                } if !self.is_read(now, at, message, offset) => return Ok(Next::Sleep(None)),
                Action::SendFlit {
                    to, message, bytes, ..
                }
                | Action::SendAgain {
                    to, message, bytes, ..
                }
                | Action::SendHeld {
                    to, message, bytes, ..
                }
                | Action::Forward {
                    to, message, bytes, ..
                } => {
                    let on_the_wire = self.flit_frames_bytes(message, bytes);
                    let next = self.hand_over(now, at, to, on_the_wire, action.clone());
                    let station = &mut self.stations[at.index()];
                    match next {
                        Next::Sleep(free) if is_duplex => {
                            through = through.into_iter().chain(free).min();
                            station.writes.insert(looked_at, action);
                            looked_at += 1;
                            station.round.handle_under_way();
                            continue;
                        }
                        // The wire has no room: the transmission stays in progress.
                        Next::Sleep(None) => station.writes.push_back(action),
                        _ => {}
                    }
                    return Ok(next);
                }
                Action::Store {
                    message,
                    offset,
                    payload,
                    ..
                } if !self.is_taken(now, at, message, [offset, payload.len() as u64]) => {
                    return Ok(Next::Stays);
                }
                Action::Commit { message } if self.desks.is_none() => {
                    let round = &mut self.stations[at.index()].round;
                    round.handle_delivered(Time(now), message);
                }
                Action::Wait { until } => {
                    let is_look = is_duplex && until == Some(Time(now));
                    let (here, enough) = self.arriving(now, at);
                    let round = &mut self.stations[at.index()].round;
                    if round.awaits_bytes().is_some_and(|awaited| here >= awaited) {
                        round.handle_arriving(here);
                        continue;
                    }
                    match self.listen(now, at, until) {
                        Next::Sleep(_) if is_look => continue,
                        Next::Sleep(soonest) => {
                            let times = [soonest, through, enough];
                            return Ok(Next::Sleep(times.into_iter().flatten().min()));
                        }
                        next => return Ok(next),
                    }
                }
                Action::Finished => return Ok(Next::Sleep(None)),
                Action::Store { .. }
                | Action::Commit { .. }
                | Action::Hold { .. }
                | Action::Turn { .. }
                | Action::Drop { .. } => {}
            }
            self.stations[at.index()].round.handle_done(Time(now))?;
        }
    }

    /// Returns the bytes of incomplete flits at a PE, and when they reach the number that the round
    /// waits for, if that is in the future.
    fn arriving(&mut self, now: u64, at: PeId) -> (u64, Option<u64>) {
        let Some(awaited) = self.stations[at.index()].round.awaits_bytes() else {
            return (0, None);
        };
        let (mut here, mut soonest) = (0, None);
        for place in 0..self.neighbours[at.index()].len() {
            let from = self.neighbours[at.index()][place];
            let Some(arrives) = self.front(from, at) else {
                continue;
            };
            let (wire, link) = self.wire(from, at);
            let Some(frame) = wire.frames.front() else {
                continue;
            };
            let left = arrives.saturating_sub(now) as f64 / link.ns_per_byte.max(f64::MIN_POSITIVE);
            here += frame.bytes.saturating_sub(left as u64);
            let lacks = frame.bytes.saturating_sub(awaited) as f64 * link.ns_per_byte;
            let enough = arrives.saturating_sub(lacks.round() as u64);
            soonest = soonest.into_iter().chain([enough]).min();
        }
        (here, soonest.filter(|at| *at > now))
    }

    /// Receives a frame of a neighbour that the round listens to, or waits for one.
    fn listen(&mut self, now: u64, at: PeId, until: Option<Time>) -> Next {
        let until = until.map(|Time(due)| due);
        let mut soonest = until.filter(|&due| due > now);
        let round = &self.stations[at.index()].round;
        let only = round.awaits_rest_from().filter(|_| !round.is_duplex());
        let mut among = 0..self.neighbours[at.index()].len();
        if only.is_some() {
            among.end = 0;
        }
        let mut all = only;
        while let Some(from) = all.take().or_else(|| {
            let place = among.next()?;
            Some(self.neighbours[at.index()][place])
        }) {
            if !self.stations[at.index()].round.listens_to(from) {
                continue;
            }
            let Some(arrived) = self.front(from, at) else {
                continue;
            };
            if arrived <= now {
                match self.pop(now, from, at) {
                    Some((content, along)) => {
                        return Next::Act(Work::In(from, content, along));
                    }
                    None => continue,
                }
            }
            soonest = Some(soonest.map_or(arrived, |soonest| soonest.min(arrived)));
        }
        Next::Sleep(soonest)
    }

    /// Returns when the frame at the front of a wire has arrived completely.
    fn front(&mut self, from: PeId, at: PeId) -> Option<u64> {
        let shared = self.model.ports == Ports::Single;
        let port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let port = if shared { port } else { wire.receive };
        let frame = wire.frames.front()?;
        let arrived = match frame.content {
            Sized::Flits { .. } => port.arrival(frame.departed, frame.takes, &link),
            // A few bytes that go between two packets of a flit.
            Sized::Control(_) => frame.departed + link.latency_ns,
        };
        Some(arrived.round() as u64)
    }

    /// Removes the frame at the front of a wire.
    fn pop(&mut self, now: u64, from: PeId, at: PeId) -> Option<(Sized, bool)> {
        let shared = self.model.ports == Ports::Single;
        let mut port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let frame = wire.frames.pop_front()?;
        wire.unread -= frame.bytes;
        let receive = if shared { &mut port } else { &mut wire.receive };
        if let Sized::Flits { .. } = frame.content {
            receive.take(frame.departed, frame.takes, &link);
        }
        self.stations[at.index()].receive = port;
        self.acknowledge(now, frame.bytes, [at, from]);
        // The sender may have waited for the room.
        self.cause(now, Event::Look(from));
        Some((frame.content, frame.along))
    }

    /// Adds TCP's acknowledgement of `bytes` bytes, which goes between packets in its direction. It
    /// takes as long at the receiver's port and is not counted twice.
    fn acknowledge(&mut self, now: u64, bytes: u64, [from, to]: [PeId; 2]) {
        let bytes = (bytes as f64 * self.model.acknowledged) as u64;
        if bytes == 0 {
            return;
        }
        let shared = self.model.ports == Ports::Single;
        let mut port = self.stations[from.index()].send;
        let (wire, link) = self.wire(from, to);
        let send = if shared { &mut port } else { &mut wire.send };
        send.slip_in(now as f64, bytes, &link);
        self.stations[from.index()].send = port;
    }

    /// Returns the action if a frame of `bytes` bytes can be handed over now.
    fn hand_over(&mut self, now: u64, at: PeId, to: PeId, bytes: u64, action: Action) -> Next {
        let Model {
            ahead_ns,
            buffer_bytes,
            ports,
            ..
        } = *self.model;
        let shared = self.stations[at.index()].send;
        let (wire, _) = self.wire(at, to);
        let has_room = wire.unread == 0 || wire.unread.saturating_add(bytes) <= buffer_bytes;
        if !has_room {
            return Next::Sleep(None);
        }
        let (wire, _) = self.wire(at, to);
        let port = if ports == Ports::Single {
            &shared
        } else {
            &wire.send
        };
        match port.free_at(ahead_ns).round() as u64 {
            free if free > now => Next::Sleep(Some(free)),
            _ => Next::Act(Work::Out(action)),
        }
    }

    fn control_bytes(&self, item: Control) -> u64 {
        match item {
            Control::Receipt => self.model.receipt_bytes,
            _ => self.model.control_bytes,
        }
    }

    /// Returns the number of flits with this payload of a message.
    fn flits(&self, message: Message, payload_bytes: u64) -> u64 {
        let full = self.packets.get(&message.id).copied();
        payload_bytes.div_ceil(full.unwrap_or(1))
    }

    /// Returns the bytes of the frames with this payload of a message.
    fn flit_frames_bytes(&self, message: Message, payload_bytes: u64) -> u64 {
        payload_bytes + self.flits(message, payload_bytes) * self.model.prefix_bytes
    }

    /// Adds a frame to a wire, with which this number of packets begin.
    fn push(&mut self, now: u64, at: PeId, to: PeId, bytes: u64, (content, packets): (Sized, u64)) {
        let ports = self.model.ports;
        let station = &mut self.stations[at.index()];
        let along = station.gathered.is_for(to);
        if station.gathers {
            station.gathered.add(to, bytes);
        }
        let mut shared = station.send;
        let (wire, link) = self.wire(at, to);
        let port = if ports == Ports::Single {
            &mut shared
        } else {
            &mut wire.send
        };
        let takes = link.occupied_ns(packets, bytes);
        let departed = match content {
            Sized::Flits { .. } => port.depart(now as f64, takes, &link),
            Sized::Control(_) => port.slip_in(now as f64, bytes, &link),
        };
        wire.unread += bytes;
        wire.frames.push_back(FrameInFlight {
            content,
            bytes,
            takes,
            departed,
            along,
        });
        self.stations[at.index()].send = shared;
        self.cause(now, Event::Look(to));
    }

    /// Handles the end of a PE's work.
    fn done(&mut self, now: u64, at: PeId) -> Result<(), RoundFault> {
        let station = &mut self.stations[at.index()];
        let began = station.began;
        match station.work.take() {
            Some(Work::Out(action)) => {
                if let Action::SendFlit { message, .. } = &action
                    && message.destination.one().is_none()
                {
                    station.set_up.insert(message.id);
                }
                let (to, bytes, content, packets) = match (FlitsOut::of(&action), action) {
                    (Some(out), _) => {
                        let (message, bytes) = (out.message, out.bytes);
                        let on_the_wire = self.flit_frames_bytes(message, bytes);
                        let packets = out.packing.packets(self.flits(message, bytes));
                        #[cfg(test)]
                        self.sent.push((at, out, packets));
                        (
                            out.to,
                            on_the_wire,
                            Sized::Flits { message, bytes },
                            packets,
                        )
                    }
                    (None, Action::SendControl { to, item }) => {
                        (to, self.control_bytes(item), Sized::Control(item), 0)
                    }
                    _ => return Ok(()),
                };
                self.push(now, at, to, bytes, (content, packets));
                let is_flit = matches!(content, Sized::Flits { .. });
                let round = &mut self.stations[at.index()].round;
                match is_flit && round.is_under_way_to(to) {
                    true => round.handle_through(Time(now), to)?,
                    false => round.handle_done(Time(now))?,
                }
            }
            Some(Work::In(from, content, _)) => {
                station.gathered = Gathered::default();
                let times = [Time(began), Time(now)];
                station.round.handle_sized(times, from, content)?;
            }
            None => return Ok(()),
        }
        self.look(now, at)
    }
}

#[cfg(test)]
mod packet_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
