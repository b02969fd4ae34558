//! The state of a predicted round, and its events in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use flitcast_proto::ops::{Collective, PeSchedule};
use flitcast_proto::round::{Action, ProtocolError, Round, Sized};
use flitcast_proto::{MessageId, PeId, RoundId, Time, Tree};

use super::compression::CompressedMessages;
use super::cores::{Cores, Thread};
use super::files::{FileTask, FileThreads};
use super::predicted_pe::{CoalescedFrames, FlitsOut, Next, PredictedPe, Work};
use super::prediction::Prediction;
use super::resources::Wire;
use crate::cost::Model;

/// Something that happens at a time.
pub(super) enum Event {
    /// A PE may be able to continue.
    Look(PeId),
    /// The work of a PE is done.
    Done(PeId),
    /// A thread that reads or writes files starts its next step.
    Step(usize),
    /// The time slice of another program on the machine of this thread may be over.
    Turn(Thread),
}

/// A neighbour whose frames a PE reads. The order is that in which a PE looks at its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sender {
    Parent(PeId),
    Child(PeId),
    /// A PE that is not adjacent in the tree.
    Peer(PeId),
}

impl Sender {
    pub fn new(tree: &Tree, from: PeId, to: PeId) -> Sender {
        match () {
            () if tree.parent(to) == Some(from) => Sender::Parent(from),
            () if tree.parent(from) == Some(to) => Sender::Child(from),
            () => Sender::Peer(from),
        }
    }

    pub fn id(self) -> PeId {
        let (Sender::Parent(id) | Sender::Child(id) | Sender::Peer(id)) = self;
        id
    }
}

/// The state of a predicted round.
pub(super) struct PredictionState<'a> {
    pub(super) stations: Vec<PredictedPe>,
    pub(super) tree: &'a Tree,
    pub(super) collective: Collective,
    pub(super) model: &'a Model,
    /// Payload bytes of a full flit of each message.
    pub(super) packets: BTreeMap<MessageId, u64>,
    pub(super) compression: CompressedMessages,
    /// For each PE: the wire from its parent, and the wire to it.
    pub(super) wires: Vec<[Wire; 2]>,
    /// Wires between PEs that are not neighbours in the tree, by sender and receiver.
    pub(super) others: BTreeMap<(PeId, PeId), Wire>,
    /// For each PE, the wires to it that have frames.
    pub(super) incoming: Vec<BTreeSet<Sender>>,
    pub(super) cores: Vec<Cores>,
    /// Number of PEs on each machine.
    pub(super) residents: Vec<usize>,
    /// File work, if messages are made of files.
    pub(super) file_threads: Option<FileThreads<'a>>,
    pub(super) tasks: Vec<FileTask>,
    /// Events by time, then in the order in which they were caused.
    pub(super) events: BTreeMap<(u64, u64), Event>,
    pub(super) caused: u64,
    /// All flits that were sent, in this order, with the number of packets that began with each.
    #[cfg(test)]
    pub(super) sent: Vec<(PeId, FlitsOut, u64)>,
}

impl<'a> PredictionState<'a> {
    /// Runs a round in which this number of flits crosses an edge at a time to its end, unless another
    /// thread sets `given_up` before.
    pub(super) fn run_to_end(
        given_up: &AtomicBool,
        tree: &'a Arc<Tree>,
        schedules: &'a [PeSchedule],
        model: &'a Model,
        flits_a_piece: u64,
    ) -> Result<PredictionState<'a>, ProtocolError> {
        let mut state = PredictionState::new(tree, schedules, model, flits_a_piece);
        state.begin_all(schedules)?;
        while let Some(((now, _), event)) = state.events.pop_first() {
            if given_up.load(Relaxed) {
                return Err(ProtocolError::GivenUp);
            }
            match event {
                Event::Look(at) => state.look(now, at)?,
                Event::Done(at) => state.done(now, at)?,
                Event::Step(task) => state.step(now, task),
                Event::Turn(thread) => state.take_turn(now, thread),
            }
        }
        Ok(state)
    }

    /// Creates the state before the round.
    fn new(
        tree: &'a Arc<Tree>,
        schedules: &'a [PeSchedule],
        model: &'a Model,
        flits_a_piece: u64,
    ) -> PredictionState<'a> {
        let sent = schedules.iter().flat_map(PeSchedule::cut_sends);
        let packets = sent.map(|(message, flit)| (message.id, flit.into()));
        let packets: BTreeMap<MessageId, u64> = packets.collect();
        let flit = schedules.first().map_or(1, |schedule| schedule.flit_bytes);
        let piece = flits_a_piece.saturating_mul(flit.into());
        let collective = schedules.first().map(|schedule| schedule.collective);
        let collective = collective.unwrap_or(Collective::Scatter);
        // P0 runs already if it alone is triggered.
        let sleeps = |id| id != tree.root() || collective.begins_by_clock();
        let stations = tree.ids().zip(schedules).map(|(id, schedule)| {
            let round = Round::new(RoundId(1), tree.clone(), id, schedule.clone());
            let round = round.in_pieces(flits_a_piece).record_spans(usize::MAX);
            PredictedPe::new(round, schedule, sleeps(id))
        });
        let files = model.files.as_ref();
        let machines = model.hosts.machines().iter();
        let mut residents = vec![0; machines.len()];
        for pe in tree.pes() {
            residents[model.hosts.machine_of(pe)] += 1;
        }
        PredictionState {
            stations: stations.collect(),
            tree,
            collective,
            model,
            packets,
            compression: CompressedMessages::new(tree, schedules, model),
            wires: tree.ids().map(|_| Default::default()).collect(),
            others: BTreeMap::new(),
            incoming: tree.ids().map(|_| BTreeSet::new()).collect(),
            cores: machines.map(Cores::new).collect(),
            residents,
            file_threads: files.map(|files| FileThreads::new(files, tree, schedules, piece)),
            tasks: Vec::new(),
            events: BTreeMap::new(),
            caused: 0,
            #[cfg(test)]
            sent: Vec::new(),
        }
    }

    fn begin_all(&mut self, schedules: &[PeSchedule]) -> Result<(), ProtocolError> {
        let tree = self.tree;
        let root = tree.root();
        let others = tree.pes().filter(|pe| *pe != root);
        for pe in std::iter::once(root).chain(others) {
            let is_triggered = self.collective.is_triggered(tree, pe);
            if is_triggered {
                self.stations[pe.index()].round.handle_trigger(Time(0));
            }
            // In turns, a PE calls its first senders before the trigger.
            if is_triggered || schedules[pe.index()].in_turns {
                self.look(0, pe)?;
            }
        }
        Ok(())
    }

    pub(super) fn cause(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), event);
    }

    pub(super) fn prediction(self) -> Prediction {
        let pes = self.stations.len();
        let deliveries = self.collective.deliveries(self.tree);
        let mut prediction = Prediction {
            arrivals_ns: vec![None; deliveries],
            visible_ns: vec![None; deliveries],
            files_ns: Vec::with_capacity(pes),
            spans: Vec::with_capacity(pes),
            streams: Vec::with_capacity(pes),
            held_flits: 0,
        };
        for mut station in self.stations {
            let arrivals = station.round.arrivals().into_iter();
            for arrival in arrivals.filter(|it| it.bytes_received == it.bytes_total) {
                let (message, at) = (arrival.message, arrival.destination);
                let delivery = self.collective.delivery(self.tree, message, at).index();
                prediction.arrivals_ns[delivery] = Some(arrival.at_ns);
                prediction.visible_ns[delivery] = arrival.delivered.then_some(arrival.delivered_ns);
            }
            let held_flits = station.round.peak_buffered_flits();
            prediction.held_flits = prediction.held_flits.max(held_flits);
            prediction.files_ns.push(station.files_ns);
            prediction.spans.push(station.round.take_spans());
            prediction.streams.push(station.round.take_streams());
        }
        prediction
    }

    /// Lets a PE begin its next work.
    pub(super) fn look(&mut self, now: u64, at: PeId) -> Result<(), ProtocolError> {
        let station = &self.stations[at.index()];
        if station.work.is_some() {
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
                station.gathered = CoalescedFrames::default();
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
    pub(super) fn start(&mut self, now: u64, at: PeId) {
        let Some(work) = &self.stations[at.index()].work else {
            return;
        };
        let work = self.core_ns(at, work);
        let station = &mut self.stations[at.index()];
        let waited = station.waits_since.take().map(|since| now - since);
        let begins = std::mem::take(&mut station.fresh);
        let wake = waited.map_or(0.0, |waited| self.wake_ns(at, waited, begins));
        let first = match begins {
            true => self.model.hosts.of(at).first_ns,
            false => 0.0,
        };
        let done = now.saturating_add((wake + first).round() as u64);
        self.cause(done.saturating_add(work), Event::Done(at));
    }

    /// Polls the round for its next action; actions that take no time are done at once.
    pub(super) fn next(&mut self, now: u64, at: PeId) -> Result<Next, ProtocolError> {
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
            if let Some(FlitsOut { to, piece, .. }) = FlitsOut::of(&action) {
                let is_new = matches!(action, Action::SendFlit { .. });
                if is_new && !self.is_read(now, at, to, piece) {
                    return Ok(Next::Sleep(None));
                }
                let bytes = self.flit_frames_bytes(piece.message, piece.bytes);
                let Some(free) = self.waits_for_room(now, at, to, bytes) else {
                    return Ok(Next::Act(Work::Out(action)));
                };
                let station = &mut self.stations[at.index()];
                if is_duplex {
                    // The PE does other work meanwhile.
                    station.writes.insert(looked_at, action);
                    station.round.handle_under_way();
                    through = through.into_iter().chain(free).min();
                    looked_at += 1;
                    continue;
                }
                if free.is_none() {
                    station.writes.push_back(action);
                }
                return Ok(Next::Sleep(free));
            }
            match action {
                // A few bytes that queue for the port without a wait.
                Action::SendControl { .. } => return Ok(Next::Act(Work::Out(action))),
                Action::Store {
                    message,
                    offset,
                    payload,
                    ..
                } if !self.is_taken(now, at, message, [offset, payload.len() as u64]) => {
                    return Ok(Next::Stays);
                }
                Action::Commit { message } if self.file_threads.is_none() => {
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
                // Everything else takes no time.
                _ => {}
            }
            self.stations[at.index()].round.handle_done(Time(now))?;
        }
    }

    /// Handles the end of a PE's work.
    pub(super) fn done(&mut self, now: u64, at: PeId) -> Result<(), ProtocolError> {
        let station = &mut self.stations[at.index()];
        let began = station.began;
        match station.work.take() {
            Some(Work::Out(action)) => {
                if let Action::SendFlit { piece, .. } = &action
                    && piece.message.destination.one().is_none()
                {
                    station.set_up.insert(piece.message.id);
                }
                let (to, bytes, content, packets) = match (FlitsOut::of(&action), action) {
                    (Some(out), _) => {
                        let (message, bytes) = (out.piece.message, out.piece.bytes);
                        let on_the_wire = self.flit_frames_bytes(message, bytes);
                        let packets = out.packing.packets(self.flits(message, bytes));
                        #[cfg(test)]
                        self.sent.push((at, out, packets));
                        (out.to, on_the_wire, Sized::Flits(out.piece), packets)
                    }
                    (None, Action::SendControl { to, item }) => {
                        (to, self.control_bytes(item), Sized::Control(item), 0)
                    }
                    _ => return Ok(()),
                };
                self.push(now, at, to, bytes, (content, packets));
                let is_flit = matches!(content, Sized::Flits(_));
                let round = &mut self.stations[at.index()].round;
                match is_flit && round.is_under_way_to(to) {
                    true => round.handle_through(Time(now), to)?,
                    false => round.handle_done(Time(now))?,
                }
            }
            Some(Work::In(from, content, _)) => {
                station.gathered = CoalescedFrames::default();
                let times = [Time(began), Time(now)];
                station.round.handle_sized(times, from, content)?;
            }
            None => return Ok(()),
        }
        self.look(now, at)
    }

    /// Returns the cores of the machine on which a thread runs.
    fn cores_of(&mut self, thread: Thread) -> &mut Cores {
        let at = match thread.checked_sub(self.stations.len()) {
            Some(task) => self.tasks[task].at,
            None => PeId(thread as u32),
        };
        &mut self.cores[self.model.hosts.machine_of(at)]
    }

    /// Returns whether a thread with work has a core for it; if not, it will get one. A thread whose
    /// time slice is over has to wait for its next one.
    pub(super) fn takes_core(&mut self, now: u64, thread: Thread) -> bool {
        if self.cores_of(thread).is_over(now, thread) {
            self.give_up_core(now, thread);
        }
        let takes = self.cores_of(thread).take(now, thread);
        self.await_turn(now, thread);
        takes
    }

    /// Takes the core of a thread, if it has one, and runs the thread that has waited longest.
    pub(super) fn give_up_core(&mut self, now: u64, thread: Thread) {
        let next = self.cores_of(thread).give_up(now, thread);
        self.await_turn(now, thread);
        self.run(now, next);
    }

    /// Lets threads take turns with other programs on the machine of a thread.
    pub(super) fn take_turn(&mut self, now: u64, thread: Thread) {
        let next = self.cores_of(thread).turn(now);
        self.run(now, next);
        if next.is_some() {
            self.await_turn(now, thread);
        }
    }

    /// Plans the next turn of the threads that wait on the machine of a thread.
    fn await_turn(&mut self, now: u64, thread: Thread) {
        if let Some(turn) = self.cores_of(thread).next_turn() {
            self.cause(turn.max(now), Event::Turn(thread));
        }
    }

    /// Lets a thread with a core continue.
    fn run(&mut self, now: u64, thread: Option<Thread>) {
        let pes = self.stations.len();
        match thread {
            Some(next) if next < pes => self.start(now, PeId(next as u32)),
            Some(next) => self.work_on(now, next - pes),
            None => {}
        }
    }
}
