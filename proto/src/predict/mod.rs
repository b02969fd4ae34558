//! What a round will take on measured links and hosts: the PEs' own state machines,
//! run in virtual time.
//!
//! The driver here does what the node's does, one thing at a time: it takes a frame
//! or hands one over, and each costs what [`Model`] says. Nothing is known of an
//! algorithm: who sends what when, the machines say, as they do in a real round.

mod chores;
mod files;
mod resources;
mod station;

use std::collections::BTreeMap;
use std::sync::Arc;

use files::{Chore, Desks};
use resources::{Content, Cores, Frame, Port, Thread, Wire};
use station::{Action, Job, Next, Station};

use crate::cost::{Link, Model, Ports};
use crate::pe::{Brief, Control, Message, Pe, Route, Transmit, Violation};
use crate::spans::{self, Span, SpanItem};
use crate::{PeId, Time, Tree};

/// The longest messages are moved in so many pieces, each a whole number of flits:
/// more would cost time and tell nothing.
const PIECES: u64 = 1024;

/// What a round is expected to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// By PE index: when the last byte of M_i reaches its destination, counted
    /// from P0's trigger; `None` for a null message.
    pub arrivals_ns: Vec<Option<u64>>,
    /// By PE index: when M_i is durable and visible, counted so; without files, when it
    /// arrives.
    pub visible_ns: Vec<Option<u64>>,
    /// By PE index: for how long it waits for its files, while it has messages to send or to
    /// take.
    pub files_ns: Vec<u64>,
    /// By PE index: what its ports do, counted from P0's trigger.
    pub spans: Vec<Vec<Span>>,
}

impl Prediction {
    /// The last arrival; 0 if there is nothing to send.
    pub fn round_ns(&self) -> u64 {
        let arrivals = self.arrivals_ns.iter().copied().flatten();
        arrivals.max().unwrap_or(0)
    }

    /// From the last arrival until everything is durable and visible.
    pub fn commit_ns(&self) -> u64 {
        let visible = self.visible_ns.iter().copied().flatten();
        visible.max().unwrap_or(0).saturating_sub(self.round_ns())
    }

    /// The longest that any PE waits for its files.
    pub fn disk_ns(&self) -> u64 {
        self.files_ns.iter().copied().max().unwrap_or(0)
    }
}

/// Predicts the round of these briefs, one per PE.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule, not of the caller's.
pub fn predict(tree: &Arc<Tree>, briefs: &[Brief], model: &Model) -> Result<Prediction, Violation> {
    let gathers = briefs.iter().any(|brief| !brief.operation.is_scatter());
    let longest = briefs.iter().flat_map(|brief| &brief.sends);
    let longest = longest.map(|message| message.bytes).max().unwrap_or(0);
    let flit = briefs
        .first()
        .map_or(1, |brief| u64::from(brief.flit_bytes))
        .max(1);
    let flits_a_piece = longest.div_ceil(flit).div_ceil(PIECES).max(1);
    let stations = tree.ids().zip(briefs).map(|(id, brief)| Station {
        pe: Pe::new(tree.clone(), id, brief.clone()),
        job: Job::Idle,
        action: None,
        asleep: id != PeId::ROOT,
        writes: false,
        began: 0,
        held_up: None,
        files_ns: 0,
        send: Port::default(),
        receive: Port::default(),
        spans: Vec::new(),
    });
    let piece = flit.saturating_mul(flits_a_piece);
    let files = model.files.as_ref();
    let mut world = World {
        stations: stations.collect(),
        tree,
        model,
        gathers,
        piece,
        flit,
        wires: tree.ids().map(|_| Default::default()).collect(),
        cores: Cores::new(model.host.shared_cores, tree.len()),
        desks: files.map(|files| Desks::new(files, briefs, piece)),
        chores: Vec::new(),
        events: BTreeMap::new(),
        caused: 0,
        arrivals_ns: vec![None; tree.len()],
    };
    world.stations[0].pe.handle_trigger(Time(0));
    world.look(0, PeId::ROOT)?;
    while let Some(((now, _), event)) = world.events.pop_first() {
        match event {
            Event::Look(at) => world.look(now, at)?,
            Event::Done(at) => world.done(now, at)?,
            Event::Step(chore) => world.step(now, chore)?,
        }
    }
    Ok(Prediction {
        visible_ns: match world.desks {
            Some(desks) => desks.visible_ns,
            None => world.arrivals_ns.clone(),
        },
        files_ns: world.stations.iter().map(|s| s.files_ns).collect(),
        arrivals_ns: world.arrivals_ns,
        spans: world.stations.into_iter().map(|s| s.spans).collect(),
    })
}

enum Event {
    /// Something may have come about for a PE.
    Look(PeId),
    /// Its action is done.
    Done(PeId),
    /// A thread that reads or writes files gets to its next step.
    Step(usize),
}

struct World<'a> {
    stations: Vec<Station>,
    tree: &'a Tree,
    model: &'a Model,
    gathers: bool,
    /// Payload bytes that are moved at once, and of a flit.
    piece: u64,
    flit: u64,
    /// By PE: down from its parent, up to it.
    wires: Vec<[Wire; 2]>,
    cores: Cores,
    /// Where messages are made of files.
    desks: Option<Desks<'a>>,
    chores: Vec<Chore>,
    /// By time, and at the same time in the order in which they were caused.
    events: BTreeMap<(u64, u64), Event>,
    caused: u64,
    arrivals_ns: Vec<Option<u64>>,
}

impl World<'_> {
    fn cause(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), event);
    }

    fn wire(&mut self, from: PeId, to: PeId) -> (&mut Wire, Link) {
        let down = self.tree.parent(to) == Some(from);
        let below = if down { to } else { from };
        let edge = &self.model.edges[below.index()];
        let [downward, upward] = &mut self.wires[below.index()];
        match down {
            true => (downward, edge.down),
            false => (upward, edge.up),
        }
    }

    /// Lets a PE begin what it can do now.
    fn look(&mut self, now: u64, at: PeId) -> Result<(), Violation> {
        if self.stations[at.index()].action.is_some() {
            return Ok(());
        }
        match self.next(now, at)? {
            Next::Act(action) => {
                let station = &mut self.stations[at.index()];
                station.action = Some(action);
                station.began = now;
                if self.cores.is_over(now, at.index()) {
                    self.give_up_core(now, at.index());
                }
                if self.cores.take(now, at.index()) {
                    self.start(now, at);
                }
            }
            Next::Sleep(until) => {
                self.stations[at.index()].asleep = true;
                self.give_up_core(now, at.index());
                if let Some(until) = until {
                    self.cause(until, Event::Look(at));
                }
            }
        }
        Ok(())
    }

    /// Who has waited longest for a core goes on with this thread's, if it has one.
    fn give_up_core(&mut self, now: u64, thread: Thread) {
        let pes = self.stations.len();
        match self.cores.give_up(now, thread) {
            Some(next) if next < pes => self.start(now, PeId(next as u32)),
            Some(next) => self.work_on(now, next - pes),
            None => {}
        }
    }

    /// A PE that has a core begins its action.
    fn start(&mut self, now: u64, at: PeId) {
        let Some(action) = self.stations[at.index()].action else {
            return;
        };
        let work = self.work(at, &action);
        let wakes = std::mem::take(&mut self.stations[at.index()].asleep);
        let wake = if wakes { self.model.host.wake_ns } else { 0.0 };
        let done = now.saturating_add(wake.round() as u64);
        self.cause(done.saturating_add(work), Event::Done(at));
    }

    fn next(&mut self, now: u64, at: PeId) -> Result<Next, Violation> {
        loop {
            let station = &mut self.stations[at.index()];
            // In turns, orders go between two flits, as soon as they are due.
            let moves = matches!(station.job, Job::Send { .. } | Job::Receive { .. });
            if self.gathers
                && moves
                && !station.writes
                && let Some((to, item)) = station.pe.poll_interjection(Time(now))
            {
                let interjected = true;
                return Ok(Next::Act(Action::ControlOut {
                    to,
                    item,
                    interjected,
                }));
            }
            let station = &mut self.stations[at.index()];
            let next = match station.job {
                Job::Idle => match self.begin(now, at)? {
                    Some(next) => next,
                    None => continue,
                },
                Job::Control { to, item } => {
                    // A few bytes: they queue for the port, and nobody waits for that.
                    let interjected = false;
                    Next::Act(Action::ControlOut {
                        to,
                        item,
                        interjected,
                    })
                }
                Job::Send {
                    to, message, left, ..
                } => {
                    if !self.is_read(now, at, message, message.bytes - left) {
                        return Ok(Next::Sleep(None));
                    }
                    let bytes = left.min(self.piece);
                    let action = Action::FlitOut { to, message, bytes };
                    self.hand_over(now, at, to, self.flit_frames_bytes(bytes), action)
                }
                Job::Receive {
                    message,
                    route: Route::Relay { to },
                    in_hand: Some(bytes),
                    ..
                } => {
                    let action = Action::FlitOut { to, message, bytes };
                    self.hand_over(now, at, to, self.flit_frames_bytes(bytes), action)
                }
                Job::Receive { from, .. } => match self.front(from, at) {
                    Some(arrived) if arrived <= now => match self.pop(now, from, at) {
                        Some(Content::Flit(_, bytes)) => Next::Act(Action::FlitIn { bytes }),
                        _ => unreachable!("a message's flits stay together"),
                    },
                    arrives => {
                        let pe = &self.stations[at.index()].pe;
                        let timeout = pe.interjection_timeout().map(|Time(due)| due);
                        let timeout = timeout.filter(|&due| due > now);
                        Next::Sleep(arrives.into_iter().chain(timeout).min())
                    }
                },
            };
            return Ok(next);
        }
    }

    /// Between jobs: what to send, else whose frame to take. `None` when a job has
    /// begun.
    fn begin(&mut self, now: u64, at: PeId) -> Result<Option<Next>, Violation> {
        let station = &mut self.stations[at.index()];
        match station.pe.poll_transmit(Time(now)) {
            Some(Transmit::Control { to, item }) => {
                station.job = Job::Control { to, item };
                return Ok(None);
            }
            Some(Transmit::Message { to, message }) => {
                let (left, since) = (message.bytes, now);
                station.job = Job::Send {
                    to,
                    message,
                    left,
                    since,
                };
                return Ok(None);
            }
            None => {}
        }
        let timeout = station.pe.poll_timeout().map(|Time(due)| due);
        let mut soonest = timeout.filter(|&due| due > now);
        let tree = self.tree;
        let neighbours = tree
            .parent(at)
            .into_iter()
            .chain(tree.children(at).iter().copied());
        for from in neighbours {
            if !self.stations[at.index()].pe.listens_to(from) {
                continue;
            }
            let Some(arrived) = self.front(from, at) else {
                continue;
            };
            if arrived > now {
                soonest = Some(soonest.map_or(arrived, |soonest| soonest.min(arrived)));
                continue;
            }
            let content = self
                .wire(from, at)
                .0
                .frames
                .front()
                .map(|frame| frame.content);
            match content {
                Some(Content::Control(item)) => {
                    self.pop(now, from, at);
                    return Ok(Some(Next::Act(Action::ControlIn { from, item })));
                }
                Some(Content::Flit(message, _)) => {
                    let station = &mut self.stations[at.index()];
                    let route = station.pe.handle_head(from, message)?;
                    station.job = Job::Receive {
                        from,
                        message,
                        left: message.bytes,
                        route,
                        in_hand: None,
                        since: now,
                        relayed: None,
                    };
                    return Ok(None);
                }
                None => {}
            }
        }
        Ok(Some(Next::Sleep(soonest)))
    }

    /// When the frame at the front of a wire is whole at the receiver that looks at it.
    fn front(&mut self, from: PeId, at: PeId) -> Option<u64> {
        let shared = self.model.ports == Ports::Single;
        let port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let port = if shared { port } else { wire.receive };
        let frame = wire.frames.front()?;
        let arrived = match frame.content {
            Content::Flit(..) => port.arrival(frame.departed, frame.bytes, &link),
            // A few bytes slip in between two packets of a flit.
            Content::Control(_) => frame.departed + link.latency_ns,
        };
        Some(arrived.round() as u64)
    }

    /// The receiver takes the frame at the front.
    fn pop(&mut self, now: u64, from: PeId, at: PeId) -> Option<Content> {
        let shared = self.model.ports == Ports::Single;
        let mut port = self.stations[at.index()].receive;
        let (wire, link) = self.wire(from, at);
        let frame = wire.frames.pop_front()?;
        wire.unread -= frame.bytes;
        let receive = if shared { &mut port } else { &mut wire.receive };
        if let Content::Flit(..) = frame.content {
            receive.take(frame.departed, frame.bytes, &link);
        }
        self.stations[at.index()].receive = port;
        // The sender may have waited for the room.
        self.cause(now, Event::Look(from));
        Some(frame.content)
    }

    /// The action, if a frame of so many bytes can be handed over now.
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
        self.stations[at.index()].writes = !has_room;
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
            _ => Next::Act(action),
        }
    }

    fn control_bytes(&self, item: Control) -> u64 {
        match item {
            Control::Receipt => self.model.receipt_bytes,
            _ => self.model.control_bytes,
        }
    }

    /// Of the frames that carry so much payload.
    fn flit_frames_bytes(&self, payload_bytes: u64) -> u64 {
        payload_bytes + payload_bytes.div_ceil(self.flit) * self.model.prefix_bytes
    }

    /// A frame goes into the wire.
    fn push(&mut self, now: u64, at: PeId, to: PeId, bytes: u64, content: Content) {
        let ports = self.model.ports;
        let mut shared = self.stations[at.index()].send;
        let (wire, link) = self.wire(at, to);
        let port = if ports == Ports::Single {
            &mut shared
        } else {
            &mut wire.send
        };
        let departed = match content {
            Content::Flit(..) => port.depart(now as f64, bytes, &link),
            Content::Control(_) => port.slip_in(now as f64, bytes, &link),
        };
        wire.unread += bytes;
        wire.frames.push_back(Frame {
            content,
            bytes,
            departed,
        });
        self.stations[at.index()].send = shared;
        self.cause(now, Event::Look(to));
    }

    /// Nanoseconds of a core.
    fn work(&self, at: PeId, action: &Action) -> u64 {
        let host = &self.model.host;
        let (message, bytes, per_byte) = match *action {
            Action::ControlOut { .. } | Action::ControlIn { .. } => {
                return host.control_ns.round() as u64;
            }
            Action::FlitOut { message, bytes, .. } => (message, bytes, host.send_ns_per_byte),
            Action::FlitIn { bytes } => {
                let Job::Receive { message, .. } = self.stations[at.index()].job else {
                    return 0;
                };
                (message, bytes, host.receive_ns_per_byte)
            }
        };
        let flits = bytes.div_ceil(self.flit) as f64;
        let mut work = host.flit_ns * flits + per_byte * bytes as f64;
        let sends = matches!(action, Action::FlitOut { .. });
        let (end, first_or_last) = match self.stations[at.index()].job {
            Job::Send { left, .. } => (message.source == at, left == message.bytes),
            Job::Receive { left, .. } => (message.destination == at && !sends, left == bytes),
            _ => (false, false),
        };
        if end {
            work += host.end_ns_per_byte * bytes as f64;
            if first_or_last {
                work += host.message_ns;
            }
        }
        work.round() as u64
    }

    /// A PE has finished what it was doing.
    fn done(&mut self, now: u64, at: PeId) -> Result<(), Violation> {
        let Some(action) = self.stations[at.index()].action else {
            return Ok(());
        };
        if let Action::FlitIn { bytes } = action
            && !self.is_taken(now, at, bytes)
        {
            self.give_up_core(now, at.index());
            return Ok(());
        }
        self.stations[at.index()].action = None;
        match action {
            Action::ControlOut {
                to,
                item,
                interjected,
            } => {
                self.push(
                    now,
                    at,
                    to,
                    self.control_bytes(item),
                    Content::Control(item),
                );
                self.span(now, at, spans::Port::Send, to, item.into());
                if !interjected {
                    let station = &mut self.stations[at.index()];
                    station.pe.handle_sent();
                    station.job = Job::Idle;
                }
            }
            Action::ControlIn { from, item } => {
                self.span(now, at, spans::Port::Receive, from, item.into());
                let station = &mut self.stations[at.index()];
                station.pe.handle_control(Time(now), from, item)?;
            }
            Action::FlitOut { to, message, bytes } => self.flit_out(now, at, to, message, bytes),
            Action::FlitIn { bytes } => self.flit_in(now, at, bytes),
        }
        self.look(now, at)
    }

    fn flit_out(&mut self, now: u64, at: PeId, to: PeId, message: Message, bytes: u64) {
        let on_the_wire = self.flit_frames_bytes(bytes);
        self.push(now, at, to, on_the_wire, Content::Flit(message, bytes));
        let station = &mut self.stations[at.index()];
        station.pe.handle_progress(Time(now), bytes);
        let over = match &mut station.job {
            Job::Send { left, since, .. } => {
                *left -= bytes;
                (*left == 0).then_some(*since)
            }
            Job::Receive {
                left,
                in_hand,
                relayed,
                ..
            } => {
                *in_hand = None;
                let since = *relayed.get_or_insert(station.began);
                (*left == 0).then_some(since)
            }
            _ => None,
        };
        let Some(since) = over else {
            return;
        };
        if matches!(station.job, Job::Receive { .. }) {
            station.pe.handle_received();
        }
        station.pe.handle_sent();
        station.job = Job::Idle;
        station.began = since;
        self.span(
            now,
            at,
            spans::Port::Send,
            to,
            SpanItem::Message(message.pe()),
        );
    }

    fn flit_in(&mut self, now: u64, at: PeId, bytes: u64) {
        let has_files = self.desks.is_some();
        let station = &mut self.stations[at.index()];
        let Job::Receive {
            from,
            message,
            left,
            route,
            in_hand,
            since,
            ..
        } = &mut station.job
        else {
            return;
        };
        *left -= bytes;
        let (from, message, since) = (*from, *message, *since);
        let over = *left == 0;
        match *route {
            Route::Relay { .. } => *in_hand = Some(bytes),
            Route::Deliver => {
                station.pe.handle_progress(Time(now), bytes);
                if over {
                    self.arrivals_ns[message.pe().index()] = Some(now);
                    station.pe.handle_received();
                    if !has_files {
                        station.pe.handle_delivered();
                    }
                    station.job = Job::Idle;
                }
            }
            Route::Hold => {
                if over {
                    station.pe.handle_received();
                    station.job = Job::Idle;
                }
            }
        }
        if over {
            station.began = since;
            self.span(
                now,
                at,
                spans::Port::Receive,
                from,
                SpanItem::Message(message.pe()),
            );
        }
    }

    /// Notes what a port was busy with since its work began.
    fn span(&mut self, now: u64, at: PeId, port: spans::Port, peer: PeId, item: SpanItem) {
        let station = &mut self.stations[at.index()];
        station.spans.push(Span {
            port,
            peer,
            item,
            begin_ns: station.began,
            end_ns: now,
        });
    }
}

#[cfg(test)]
mod tests;
