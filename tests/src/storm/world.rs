//! Virtual time: the network, the processes, and the order of events. One seed gives one sequence
//! of events; nothing here reads a clock or depends on an address in memory.

mod channels;
mod faults;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use flitcast_proto::items::Message;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::MAX_FLIT_PREFIX;
use flitcast_proto::wire::control::{Doing, FromPe, ToPe};
use flitcast_proto::{DeliveryId, PeId, RoundId, Time, Tree};

use super::Plant;
use super::cause::Cause;
use super::office::{Office, PeLoss, reset};
use super::scenario::{HEARTBEAT_NS, Lane, SILENCE_NS, Scenario, Way};
use super::trace::Trace;
use super::wire::Wire;
use channels::short;

#[derive(Debug)]
pub(super) enum Event {
    /// The wake-up of a PE at a requested time.
    Wake(PeId),
    /// A keepalive of a PE's host.
    Beat(PeId),
    /// An arrival at the end of a wire.
    Arrive(Way),
    Fault(usize),
    /// The continuation of a stopped process.
    Continue(PeId),
    /// A restarted host resets its old connections.
    Refuse(PeId),
    /// A message of the coordinator reaches a PE.
    Command(PeId, ToPe),
    /// The coordinator pings all PEs.
    Ping,
    /// A ping reaches a PE.
    Pinged(PeId, bool),
    /// A message of a PE reaches the coordinator.
    Reply(PeId, FromPe),
    /// The end of a PE's channel or process reaches the coordinator.
    Ended(PeId, PeLoss),
    /// The expiry of the coordinator's deadline.
    Late,
    /// A thread of a PE's process has made a message durable.
    Durable(PeId, Delivery),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Runs,
    Stopped,
    Gone,
}

/// A PE's answer to pings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulse {
    pub(super) doing: Doing,
    moved_at: u64,
    /// Number of pings that a stopped process has not answered.
    unanswered: u64,
}

/// A message that is durable at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) round: u64,
    pub(super) message: Message,
    pub(super) of: DeliveryId,
    /// Whether the message equals its source's.
    pub(super) right: bool,
}

struct Host {
    process: Process,
    pulse: Pulse,
    /// Messages that threads of a stopped process make durable after its continuation.
    undelivered: Vec<Delivery>,
    /// The coordinator's messages.
    commands: VecDeque<ToPe>,
    /// Whether the PE is to be polled.
    is_ready: bool,
    /// The last round that the PE has finished.
    finished: u64,
}

/// The complete state of the simulation.
pub(super) struct World {
    pub(super) now: u64,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    pub(super) scenario: Arc<Scenario>,
    tree: Arc<Tree>,
    /// The wires between all connected PEs.
    wires: BTreeMap<Way, Wire>,
    /// The hosts of all PEs, by PE index.
    hosts: Vec<Host>,
    pub(super) office: Office,
    plant: Option<Plant>,
    /// PEs that are to be polled, each once.
    ready: VecDeque<PeId>,
    chance: SplitMix64,
    pub(super) trace: Trace,
    /// For each round, when P0 was triggered, and when the last message arrived.
    pub(super) rounds_ns: Vec<(u64, u64)>,
    /// For each round, the total time for which ports are still busy with the last round's frames
    /// at its begin.
    pub(super) left_ns: Vec<u64>,
    pub(super) disk: Vec<Delivery>,
    /// Number of frames that were dropped because their round was over.
    pub(super) late_frames: u64,
    pub(super) doubled_frames: u64,
}

impl World {
    pub(super) fn new(scenario: Arc<Scenario>, trace: Trace, plant: Option<Plant>) -> World {
        let tree = scenario.tree.clone();
        let max_frame = scenario.flit_bytes as usize + MAX_FLIT_PREFIX;
        let wire = |way: Way| {
            let Lane { tree, model, .. } = &scenario.lanes[way.lane];
            let link = model.link(tree, way.from, way.to);
            (way, Wire::new(link, scenario.authenticated, max_frame))
        };
        let ways = tree.pes().flat_map(|from| scenario.ways_from(from));
        let host = |pe| Host {
            process: match tree.contains(pe) {
                true => Process::Runs,
                false => Process::Gone,
            },
            pulse: Pulse {
                doing: Doing::Idle,
                moved_at: 0,
                unanswered: 0,
            },
            undelivered: Vec::new(),
            commands: VecDeque::new(),
            is_ready: tree.contains(pe),
            finished: 0,
        };
        let mut world = World {
            now: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            wires: ways.map(wire).collect(),
            hosts: tree.ids().map(host).collect(),
            office: Office::new(&scenario),
            plant,
            ready: tree.pes().collect(),
            chance: SplitMix64::new(scenario.seed ^ 0x5707_2d00),
            trace,
            rounds_ns: vec![(0, 0); scenario.rounds as usize + 1],
            left_ns: vec![0; scenario.rounds as usize + 1],
            disk: Vec::new(),
            late_frames: 0,
            doubled_frames: 0,
            tree,
            scenario,
        };
        for pe in world.tree.clone().pes() {
            world.schedule(0, Event::Beat(pe));
        }
        for fault in 0..world.scenario.faults.len() {
            world.schedule(world.scenario.faults[fault].at_ns, Event::Fault(fault));
        }
        world.schedule(HEARTBEAT_NS, Event::Ping);
        world.send_commands();
        world
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.events.insert((at, self.scheduled), event);
    }

    /// Executes all events of the next point in time, before any process is polled.
    pub(super) fn advance(&mut self) {
        let Some((&(moment, _), _)) = self.events.first_key_value() else {
            return;
        };
        self.now = self.now.max(moment);
        while let Some(next) = self.events.first_entry()
            && next.key().0 == moment
        {
            let event = next.remove();
            self.handle_event(event);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Wake(pe) => self.wake(pe),
            Event::Beat(pe) => self.beat(pe),
            Event::Arrive(way) => {
                let now = self.now;
                let wire = self.wire(way);
                if wire.looked_at == now {
                    wire.looked_at = u64::MAX;
                    if wire.arrive(now) && self.hosts[way.to.index()].process != Process::Gone {
                        self.wake(way.to);
                    }
                    self.schedule_arrival(way);
                }
            }
            Event::Fault(fault) => self.apply_fault(fault),
            Event::Continue(pe) => {
                if self.hosts[pe.index()].process == Process::Stopped {
                    self.hosts[pe.index()].process = Process::Runs;
                    self.trace.note(self.now, format_args!("{pe} goes on"));
                    for delivery in std::mem::take(&mut self.hosts[pe.index()].undelivered) {
                        self.delivered(delivery);
                    }
                    let unanswered = std::mem::take(&mut self.hosts[pe.index()].pulse.unanswered);
                    (0..unanswered).for_each(|_| self.answer(pe, false));
                    self.wake(pe);
                }
            }
            Event::Refuse(pe) => {
                self.trace.note(self.now, format_args!("{pe} is back"));
                for way in self.scenario.clone().ways_from(pe) {
                    self.cut(way);
                }
                self.schedule(self.now, Event::Ended(pe, reset()));
            }
            Event::Command(pe, command) => {
                self.hosts[pe.index()].commands.push_back(command);
                self.wake(pe);
            }
            Event::Ping => self.ping(),
            Event::Pinged(pe, look) => match self.hosts[pe.index()].process {
                Process::Runs => self.answer(pe, look),
                Process::Stopped => self.hosts[pe.index()].pulse.unanswered += 1,
                Process::Gone => {}
            },
            Event::Reply(pe, reply) => {
                let text = format_args!("the coordinator hears of {pe}: {}", short(&reply));
                self.trace.note(self.now, text);
                self.office.handle_reply(self.now, pe, reply);
                self.send_commands();
            }
            Event::Ended(pe, lost) => {
                let text = format_args!("the coordinator loses {pe}: {lost:?}");
                self.trace.note(self.now, text);
                self.office.lose(self.now, pe, lost);
                self.send_commands();
            }
            Event::Durable(pe, delivery) => match self.hosts[pe.index()].process {
                Process::Runs => self.delivered(delivery),
                Process::Stopped => self.hosts[pe.index()].undelivered.push(delivery),
                Process::Gone => {}
            },
            Event::Late => {
                self.office.is_late(self.now);
                self.send_commands();
            }
        }
    }

    /// Returns the activity of a PE.
    pub(super) fn pulse(&mut self, pe: PeId) -> &mut Pulse {
        &mut self.hosts[pe.index()].pulse
    }

    /// Handles the end of a PE's process.
    pub(super) fn exit(&mut self, pe: PeId) {
        self.trace.note(self.now, format_args!("{pe} leaves"));
        self.hosts[pe.index()].process = Process::Gone;
        self.close(pe);
    }

    /// Returns the next PE to be polled.
    pub(super) fn next_ready(&mut self) -> Option<PeId> {
        loop {
            let pe = self.ready.pop_front()?;
            self.hosts[pe.index()].is_ready = false;
            if self.hosts[pe.index()].process == Process::Runs {
                return Some(pe);
            }
        }
    }

    pub(super) fn wake(&mut self, pe: PeId) {
        if !std::mem::replace(&mut self.hosts[pe.index()].is_ready, true) {
            self.ready.push_back(pe);
        }
    }

    pub(super) fn wake_at(&mut self, at: u64, pe: PeId) {
        let at = at.max(self.now);
        self.schedule(at, Event::Wake(pe));
    }

    pub(super) fn wire(&mut self, way: Way) -> &mut Wire {
        wire(&mut self.wires, way)
    }

    /// Breaks a connection in one direction.
    fn cut(&mut self, way: Way) {
        let World { wires, chance, .. } = self;
        wire(wires, way).cut(self.now, chance);
        self.schedule_arrival(way);
    }

    fn schedule_arrival(&mut self, way: Way) {
        let now = self.now;
        let wire = self.wire(way);
        if let Some(at) = wire.next_arrival().map(|at| at.max(now))
            && at < wire.looked_at
        {
            wire.looked_at = at;
            self.schedule(at, Event::Arrive(way));
        }
    }

    /// Returns whether there is room for a flit that counts for `counts` bytes.
    pub(super) fn has_room(&mut self, way: Way, counts: u64) -> bool {
        let buffer_bytes = self.scenario.lanes[way.lane].model.buffer_bytes;
        self.wire(way).has_room(counts, buffer_bytes)
    }

    /// Sends a frame that counts for `counts` bytes.
    pub(super) fn send(&mut self, way: Way, frame: &[u8], counts: u64) {
        let now = self.now;
        let Way { lane, from, to } = way;
        let bytes = frame.len();
        let on = match lane {
            0 => String::new(),
            lane => format!(" on tree {lane}"),
        };
        let what = format_args!("{from} to {to}{on}: {bytes} bytes");
        self.trace.note(now, what);
        let World { wires, chance, .. } = self;
        let wire = wire(wires, way);
        let copies = wire.send(now, frame, counts, chance);
        self.hosts[from.index()].pulse.moved_at = now;
        self.doubled_frames += copies.saturating_sub(1);
        self.schedule_arrival(way);
    }

    /// Reads the next frame, or returns the error if none can arrive.
    pub(super) fn read(&mut self, way: Way) -> Option<Result<Vec<u8>, Cause>> {
        let (now, peer) = (self.now, way.from);
        let wire = self.wire(way);
        match wire.read() {
            Some(Ok(body)) => {
                self.hosts[way.to.index()].pulse.moved_at = now;
                // The sender may have waited for the room.
                self.wake(way.from);
                Some(Ok(body))
            }
            Some(Err(error)) => Some(Err(Cause::Wire { peer, error })),
            None if wire.ended => Some(Err(match wire.torn() {
                Some((got, expected)) => Cause::Truncated {
                    peer,
                    got,
                    expected,
                },
                None => Cause::Closed { peer },
            })),
            None if now - wire.last_received_at >= SILENCE_NS => {
                Some(Err(Cause::Unreached { peer }))
            }
            None => None,
        }
    }

    /// Returns whether the receiver has received the end of the stream.
    pub(super) fn has_ended(&mut self, way: Way) -> bool {
        self.wire(way).ended
    }

    /// Records the begin of a round at P0, now or later.
    pub(super) fn begin(&mut self, round: RoundId, Time(at): Time) {
        let left: f64 = self.wires.values().map(|wire| wire.busy_ns(at)).sum();
        let place = round.0 as usize;
        self.rounds_ns[place] = (at, at);
        self.left_ns[place] = left.ceil() as u64;
    }

    /// Records that a message has arrived at its destination.
    pub(super) fn arrived(&mut self, round: RoundId) {
        self.rounds_ns[round.0 as usize].1 = self.now;
    }

    /// Makes a message durable at `at`, as a thread of a PE's process would.
    pub(super) fn deliver(&mut self, at: u64, pe: PeId, delivery: Delivery) {
        match at <= self.now {
            true => self.delivered(delivery),
            false => self.schedule(at, Event::Durable(pe, delivery)),
        }
    }

    fn delivered(&mut self, delivery: Delivery) {
        let (round, message) = (delivery.round, delivery.message);
        let what = format_args!("delivered in round {round}: {message:?}");
        self.trace.note(self.now, what);
        self.disk.push(delivery);
    }

    fn beat(&mut self, pe: PeId) {
        let now = self.now;
        // A host answers keepalives in any state of its processes.
        if self.hosts[pe.index()].process == Process::Gone {
            return;
        }
        for way in self.scenario.clone().ways_from(pe) {
            self.wire(way).beat(now);
            self.schedule_arrival(way);
        }
        self.wake(pe);
        self.schedule(now + HEARTBEAT_NS, Event::Beat(pe));
    }

    /// Handles the end of a process, whose host closes its connections.
    pub(super) fn close(&mut self, pe: PeId) {
        let now = self.now;
        for way in self.scenario.clone().ways_from(pe) {
            self.wire(way).close(now);
            self.schedule_arrival(way);
        }
    }

    pub(super) fn finish(&mut self, pe: PeId, round: u64) {
        self.trace
            .note(self.now, format_args!("{pe} has finished round {round}"));
        self.hosts[pe.index()].finished = round;
    }

    /// Returns whether no fault affects a PE and its channel is open.
    pub(super) fn is_sound(&self, pe: PeId) -> bool {
        let mut faults = self.scenario.faults.iter();
        faults.all(|fault| fault.kind.pe() != Some(pe)) && self.office.listens_to(pe)
    }

    /// Returns whether a PE's process must end by itself: it is neither dead nor stopped forever.
    pub(super) fn is_to_end(&self, pe: PeId) -> bool {
        match self.hosts[pe.index()].process {
            Process::Runs => true,
            Process::Gone => false,
            Process::Stopped => {
                let mut events = self.events.values();
                events.any(|event| matches!(event, Event::Continue(other) if *other == pe))
            }
        }
    }

    pub(super) fn repeated_frames(&self) -> u64 {
        self.wires.values().map(|wire| wire.repeated).sum()
    }

    pub(super) fn damaged_payloads(&self) -> u64 {
        let wires = self.wires.values();
        wires.map(|wire| wire.damaged_payloads).sum()
    }

    pub(super) fn rounds_finished(&self) -> u64 {
        let finished = self.tree.pes().map(|pe| self.hosts[pe.index()].finished);
        finished.min().unwrap_or(0)
    }
}

/// Returns the wire in a direction.
fn wire(wires: &mut BTreeMap<Way, Wire>, way: Way) -> &mut Wire {
    wires.get_mut(&way).expect("they are connected")
}
