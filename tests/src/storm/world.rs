//! Virtual time: the network, the processes, and what happens when. One seed gives one
//! sequence of events; nothing here reads a clock or depends on an address in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use flitcast_proto::pe::Message;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::WireError;
use flitcast_proto::{PeId, RoundId, Tree};

use super::cause::Cause;
use super::scenario::{HEARTBEAT_NS, Kind, SILENCE_NS, Scenario, Way};
use super::trace::Trace;
use super::wire::Wire;

/// From the end of a round at P0 until the others hear of it, and from the last PE's end
/// until the next trigger: the coordinator's channels.
const COORDINATOR_NS: u64 = 1_000_000;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A PE wanted to be woken.
    Wake(PeId),
    /// A PE gives a sign of life and looks whether others did.
    Beat(PeId),
    /// Something reaches the end of a wire.
    Arrive(Way),
    /// A fault of the scenario.
    Fault(usize),
    /// A stopped process goes on.
    Continue(PeId),
    /// A restarted host refuses its old connections.
    Refuse(PeId),
    /// The round is over for P0, and the others may end it, too.
    Collect(u64),
    /// The next round begins.
    Trigger(u64),
}

/// How far a process is from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Runs,
    Stopped,
    Gone,
}

/// A message that is durable at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) round: u64,
    pub(super) message: Message,
    /// Whether it is what its source sent.
    pub(super) right: bool,
}

/// Everything there is.
pub(super) struct World {
    pub(super) now: u64,
    events: BTreeMap<(u64, u64), Event>,
    caused: u64,
    pub(super) scenario: Arc<Scenario>,
    tree: Arc<Tree>,
    /// By PE: down from its parent, up to it.
    wires: Vec<[Wire; 2]>,
    processes: Vec<Process>,
    /// PEs that are to be polled, each once.
    ready: VecDeque<PeId>,
    is_ready: Vec<bool>,
    chance: SplitMix64,
    pub(super) trace: Trace,
    /// The round that P0 may play, and the last that the others may leave; one more than
    /// there are when all are over.
    triggered: u64,
    collected: u64,
    /// The round whose trigger was decided on last.
    announced: u64,
    /// By PE: the last round that it has finished.
    finished: Vec<u64>,
    /// By round, when P0 took its trigger, and when its last message arrived.
    pub(super) rounds_ns: Vec<(u64, u64)>,
    /// Who gave up, when and why, in the order of time.
    pub(super) causes: Vec<(u64, PeId, Cause)>,
    pub(super) disk: Vec<Delivery>,
    /// Frames that were dropped since their round is over.
    pub(super) late_frames: u64,
    pub(super) doubled_frames: u64,
}

impl World {
    pub(super) fn new(scenario: Arc<Scenario>, trace: Trace) -> World {
        let tree = scenario.tree.clone();
        let edges = scenario.model.edges.iter();
        let mut world = World {
            now: 0,
            events: BTreeMap::new(),
            caused: 0,
            wires: edges
                .map(|edge| {
                    [edge.down, edge.up].map(|link| Wire::new(link, scenario.authenticated))
                })
                .collect(),
            processes: vec![Process::Runs; tree.len()],
            ready: tree.pes().collect(),
            is_ready: vec![true; tree.len()],
            chance: SplitMix64::new(scenario.seed ^ 0x5707_2d00),
            trace,
            triggered: 1,
            collected: 0,
            announced: 1,
            finished: vec![0; tree.len()],
            rounds_ns: vec![(0, 0); scenario.rounds as usize + 1],
            causes: Vec::new(),
            disk: Vec::new(),
            late_frames: 0,
            doubled_frames: 0,
            tree,
            scenario,
        };
        for pe in world.tree.ids() {
            world.cause(0, Event::Beat(pe));
        }
        for fault in 0..world.scenario.faults.len() {
            world.cause(world.scenario.faults[fault].at_ns, Event::Fault(fault));
        }
        world
    }

    fn cause(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), event);
    }

    /// Lets the next things happen: all of one moment, before anybody looks.
    pub(super) fn advance(&mut self) {
        let Some((&(moment, _), _)) = self.events.first_key_value() else {
            return;
        };
        self.now = self.now.max(moment);
        while let Some(next) = self.events.first_entry()
            && next.key().0 == moment
        {
            let event = next.remove();
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(pe) => self.wake(pe),
            Event::Beat(pe) => self.beat(pe),
            Event::Arrive(way) => {
                let now = self.now;
                let wire = self.wire(way);
                if wire.looked_at == now {
                    wire.looked_at = u64::MAX;
                    if wire.arrive(now) && self.processes[way.to.index()] != Process::Gone {
                        self.wake(way.to);
                    }
                    self.expect(way);
                }
            }
            Event::Fault(fault) => self.strike(fault),
            Event::Continue(pe) => {
                if self.processes[pe.index()] == Process::Stopped {
                    self.processes[pe.index()] = Process::Runs;
                    self.trace.note(self.now, format_args!("{pe} goes on"));
                    self.wake(pe);
                }
            }
            Event::Refuse(pe) => {
                self.trace.note(self.now, format_args!("{pe} is back"));
                for to in self.neighbours(pe) {
                    let (now, way) = (self.now, Way { from: pe, to });
                    let World { wires, chance, .. } = self;
                    wires[edge(&self.tree, way)][direction(&self.tree, way)].cut(now, chance);
                    self.expect(way);
                }
            }
            Event::Collect(round) => {
                self.collected = round;
                self.tree.ids().for_each(|pe| self.wake(pe));
            }
            Event::Trigger(round) => {
                self.triggered = round;
                self.tree.ids().for_each(|pe| self.wake(pe));
            }
        }
    }

    /// A PE that is to be polled now.
    pub(super) fn next_ready(&mut self) -> Option<PeId> {
        loop {
            let pe = self.ready.pop_front()?;
            self.is_ready[pe.index()] = false;
            if self.processes[pe.index()] == Process::Runs {
                return Some(pe);
            }
        }
    }

    pub(super) fn wake(&mut self, pe: PeId) {
        if !std::mem::replace(&mut self.is_ready[pe.index()], true) {
            self.ready.push_back(pe);
        }
    }

    pub(super) fn wake_at(&mut self, at: u64, pe: PeId) {
        let at = at.max(self.now);
        self.cause(at, Event::Wake(pe));
    }

    /// The parent first, then the children in index order.
    pub(super) fn neighbours(&self, pe: PeId) -> Vec<PeId> {
        let children = self.tree.children(pe).iter().copied();
        self.tree.parent(pe).into_iter().chain(children).collect()
    }

    pub(super) fn wire(&mut self, way: Way) -> &mut Wire {
        &mut self.wires[edge(&self.tree, way)][direction(&self.tree, way)]
    }

    /// Notes when something arrives next on a wire.
    fn expect(&mut self, way: Way) {
        let now = self.now;
        let wire = self.wire(way);
        if let Some(at) = wire.next_arrival().map(|at| at.max(now))
            && at < wire.looked_at
        {
            wire.looked_at = at;
            self.cause(at, Event::Arrive(way));
        }
    }

    /// Whether a flit that counts for so many bytes can be handed over.
    pub(super) fn has_room(&mut self, way: Way, counts: u64) -> bool {
        let buffer_bytes = self.scenario.model.buffer_bytes;
        self.wire(way).has_room(counts, buffer_bytes)
    }

    /// A process hands a frame over that counts for so many bytes.
    pub(super) fn send(&mut self, way: Way, frame: &[u8], counts: u64) {
        let now = self.now;
        let Way { from, to } = way;
        let bytes = frame.len();
        self.trace
            .note(now, format_args!("{from} to {to}: {bytes} bytes"));
        let World { wires, chance, .. } = self;
        let wire = &mut wires[edge(&self.tree, way)][direction(&self.tree, way)];
        let copies = wire.send(now, frame, counts, chance);
        self.doubled_frames += copies.saturating_sub(1);
        self.expect(way);
    }

    /// Reads the frame that has come, or what can never be one.
    pub(super) fn read(
        &mut self,
        way: Way,
        frame_limit: usize,
    ) -> Option<Result<Vec<u8>, WireError>> {
        let frame = self.wire(way).read_frame(frame_limit)?;
        // The sender may have waited for the room.
        self.wake(way.from);
        Some(frame)
    }

    /// The last byte of a message has reached its destination.
    pub(super) fn arrived(&mut self, round: RoundId) {
        self.rounds_ns[round.0 as usize].1 = self.now;
    }

    pub(super) fn delivered(&mut self, delivery: Delivery) {
        let (round, message) = (delivery.round, delivery.message);
        let what = format_args!("delivered in round {round}: {message:?}");
        self.trace.note(self.now, what);
        self.disk.push(delivery);
    }

    /// Why a PE cannot go on, if one of its neighbours is gone or silent.
    pub(super) fn trouble(&mut self, pe: PeId, frame_limit: usize) -> Option<Cause> {
        let now = self.now;
        for from in self.neighbours(pe) {
            let wire = self.wire(Way { from, to: pe });
            if wire.has_ended() {
                return Some(Cause::of_end(from, wire, frame_limit));
            }
            if now - wire.heard() >= SILENCE_NS {
                return Some(Cause::Silent { peer: from });
            }
        }
        None
    }

    fn beat(&mut self, pe: PeId) {
        let now = self.now;
        if self.processes[pe.index()] == Process::Gone {
            return;
        }
        if self.processes[pe.index()] == Process::Runs {
            for to in self.neighbours(pe) {
                let way = Way { from: pe, to };
                self.wire(way).beat(now);
                self.expect(way);
            }
            self.wake(pe);
        }
        self.cause(now + HEARTBEAT_NS, Event::Beat(pe));
    }

    /// A process ends, and its host closes its connections.
    pub(super) fn close(&mut self, pe: PeId) {
        let now = self.now;
        for to in self.neighbours(pe) {
            let way = Way { from: pe, to };
            self.wire(way).close(now);
            self.expect(way);
        }
    }

    fn strike(&mut self, fault: usize) {
        let now = self.now;
        let kind = self.scenario.faults[fault].kind.clone();
        self.trace.note(now, format_args!("fault: {kind:?}"));
        let until = |for_ns: u64| now.saturating_add(for_ns);
        let is_gone = kind
            .pe()
            .is_some_and(|pe| self.processes[pe.index()] == Process::Gone);
        match kind {
            _ if is_gone => {}
            Kind::Kill(pe) => {
                self.processes[pe.index()] = Process::Gone;
                self.close(pe);
            }
            Kind::Vanish(pe) => self.vanish(pe),
            Kind::Restart { pe, after_ns } => {
                self.vanish(pe);
                self.cause(until(after_ns), Event::Refuse(pe));
            }
            Kind::Stop { pe, for_ns } => {
                self.processes[pe.index()] = Process::Stopped;
                if for_ns < u64::MAX {
                    self.cause(until(for_ns), Event::Continue(pe));
                }
            }
            Kind::Cut(Way { from, to }) => {
                for way in [Way { from, to }, Way { from: to, to: from }] {
                    let World { wires, chance, .. } = self;
                    wires[edge(&self.tree, way)][direction(&self.tree, way)].cut(now, chance);
                    self.expect(way);
                }
            }
            Kind::Block { way, for_ns } => self.wire(way).block(until(for_ns)),
            Kind::Delay { way, by_ns, for_ns } => self.wire(way).delay(until(for_ns), by_ns),
            Kind::Duplicate { way, percent } => self.wire(way).duplicate(percent),
            Kind::Corrupt { way, skip, bits } => self.wire(way).corrupt(skip, bits),
            Kind::Late(way) => self.wire(way).owe_late_frame(),
        }
    }

    fn vanish(&mut self, pe: PeId) {
        self.processes[pe.index()] = Process::Gone;
        for to in self.neighbours(pe) {
            self.wire(Way { from: pe, to }).fall_silent();
        }
    }

    /// Whether a PE may begin a round: P0 at its trigger, the others when the one before
    /// it is over.
    pub(super) fn may_begin(&self, pe: PeId, round: u64) -> bool {
        match pe == PeId::ROOT {
            true => self.triggered >= round,
            false => self.collected + 1 >= round,
        }
    }

    /// Whether all rounds are over everywhere.
    pub(super) fn is_over(&self) -> bool {
        self.triggered > self.scenario.rounds
    }

    pub(super) fn finish(&mut self, pe: PeId, round: u64) {
        self.trace
            .note(self.now, format_args!("{pe} has finished round {round}"));
        self.finished[pe.index()] = round;
        let soon = self.now + COORDINATOR_NS;
        if pe == PeId::ROOT {
            self.cause(soon, Event::Collect(round));
        }
        if self.rounds_finished() == self.announced {
            self.announced += 1;
            self.cause(soon, Event::Trigger(self.announced));
        }
    }

    /// Whether a PE's life must come to an end by itself: it is not dead, and not stopped
    /// for ever.
    pub(super) fn is_to_end(&self, pe: PeId) -> bool {
        match self.processes[pe.index()] {
            Process::Runs => true,
            Process::Gone => false,
            Process::Stopped => {
                let mut events = self.events.values();
                events.any(|event| matches!(event, Event::Continue(other) if *other == pe))
            }
        }
    }

    /// Frames that came again and were dropped.
    pub(super) fn repeated_frames(&self) -> u64 {
        let wires = self.wires.iter().flatten();
        wires.map(|wire| wire.repeated).sum()
    }

    /// Rounds that every PE has finished.
    pub(super) fn rounds_finished(&self) -> u64 {
        self.finished.iter().copied().min().unwrap_or(0)
    }
}

/// The place of a wire: its edge, and whether it leads up.
fn edge(tree: &Tree, way: Way) -> usize {
    match tree.parent(way.to) == Some(way.from) {
        true => way.to.index(),
        false => way.from.index(),
    }
}

fn direction(tree: &Tree, way: Way) -> usize {
    usize::from(tree.parent(way.to) != Some(way.from))
}
