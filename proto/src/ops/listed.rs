//! A PE that follows a static schedule: a list of crossings. It sends the next crossing as soon as
//! its first flit is available and its send port is free, and meanwhile receives the next crossing
//! that the schedule has for its receive port. It holds what it forwards later. No deadlock is
//! possible: of all unfinished crossings, the one with the smallest first step waits for none of
//! the others.
//!
//! In turns, a crossing begins when its receiver has called for it (`calls.rs`), and several called
//! crossings may arrive at once. There is no deadlock either: calls go between flits, and a PE that
//! has called receives what arrives, so the first of all crossings is called for and begins.
//!
//! With a port for each neighbour, each neighbour has its own list in each direction, and the next
//! crossing of any list may start. A crossing still waits only for crossings with smaller first
//! steps.
//!
//! If all PEs are sources, they begin at a time that the coordinator sets, or when something arrives
//! from a PE that has begun. If only processes take time, as on one machine, a message of one flit
//! is received as soon as it arrives, ahead of the schedule. A short message then waits for the next
//! ones to the same neighbour, if they arrive in earlier steps than its own, so that one system
//! call sends them all. There is no deadlock, because it waits for crossings with earlier steps.
//!
//! A scatter by a static schedule serves as a comparison with the scatter without one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::brief::Brief;
use super::calls::{Calls, take_one};
use super::intake::{Intake, Open, Take};
use super::messages::FROM_ROOT;
use super::operation::{AllPorts, Direction, Fits, Layout, Word};
use super::role::{Place, Role};
use super::scatter::{one_by_one, order, plan_farthest_first};
use super::spec::{Entry, no_peers};
use super::steps::MessagePlan;
use crate::items::{Control, Leg, Message, Packing, Route, Transmit, Violation};
use crate::schedule::flits_of;
use crate::schedule::pace::Timing;
use crate::schedule::scatter as rules;
use crate::{MessageId, PeId, Time, Tree};

/// Maximum length of messages that wait for others.
const SHORT_BYTES: u64 = 4 << 10;

/// Scatter by a static schedule.
pub(super) const SCATTER: Entry = Entry {
    name: "scatter",
    algorithm: "listed",
    sync: None,
    ways: &[],
    code: 9,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Trigger,
    has_control_ports: false,
    is_duplex: true,
    all_ports: AllPorts::Never,
    peers: no_peers,
    direction: Direction::Down,
    messages: FROM_ROOT,
    layout: Layout::ByDestination,
    order,
    legs: scatter_legs,
    plan: Some(plan_farthest_first),
    bound: rules::optimal_steps,
    role: |place, brief| Box::new(Listed::new(place, brief)),
};

/// Returns the crossings of a scatter with their lock-step times.
fn scatter_legs(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<Leg> {
    let flits = bytes
        .iter()
        .map(|&bytes| flits_of(bytes, timing.flit_bytes()));
    let flits: Vec<u64> = flits.collect();
    let destinations = order(tree, bytes, timing).into_iter().map(MessageId::pe);
    legs_in_order(tree, &flits, &destinations.collect::<Vec<_>>())
}

/// Returns the crossings of a scatter in which P0 sends to the destinations in this order.
pub(super) fn legs_in_order(tree: &Tree, flits: &[u64], destinations: &[PeId]) -> Vec<Leg> {
    let messages = one_by_one(tree, flits, destinations);
    let legs = messages.iter().flat_map(|message| legs_of(tree, message));
    let mut legs: Vec<Leg> = legs.collect();
    legs.sort_by_key(|leg| leg.first_step);
    legs
}

/// Returns the crossings of a message that goes from P0 down to its PE without a stop, the last one
/// first.
pub fn legs_of(tree: &Tree, message: &MessagePlan) -> impl Iterator<Item = Leg> {
    let MessagePlan {
        pe,
        flits,
        first_step,
        ..
    } = *message;
    let up = std::iter::successors(Some(pe), |pe| tree.parent(*pe));
    up.filter_map(move |to| {
        Some(Leg {
            message: pe.into(),
            offset: 0,
            flits,
            from: tree.parent(to)?,
            to,
            first_step: first_step + u64::from(tree.depth(to)) - 1,
            every: 1,
            packing: Packing::Flits,
        })
    })
}

#[derive(Debug)]
pub(super) struct Listed {
    /// Whether the PE may send: its begin or any other event of the round has come.
    begun: bool,
    /// When the PE begins, once it is triggered.
    begins_at: Option<Time>,
    /// Whether each crossing waits for its step, as in lock step, where all PEs begin with the
    /// first step.
    lock_step: bool,
    /// Payload bytes of a full flit.
    flit_bytes: u64,
    /// Messages that the PE can send: its own, and those of which it has at least a part.
    at_hand: BTreeMap<MessageId, Message>,
    /// Messages that are yet to arrive for this PE.
    owed: BTreeSet<MessageId>,
    /// Crossings yet to be sent, in order, for the only port or for each neighbour's port; and for
    /// each message, the number of crossings that begin at each flit.
    sends: Vec<SendPort>,
    sends_of: BTreeMap<MessageId, BTreeMap<u64, u64>>,
    /// For each message that is sent: the number of its flits, from the first one, that are here;
    /// all of an own message.
    arrived: BTreeMap<MessageId, u64>,
    /// Steps in which short messages arrive, if messages to be sent wait for them.
    short: BTreeMap<MessageId, u64>,
    /// Crossings yet to be received.
    takes: Intake,
    /// Calls, if the schedule runs in turns.
    calls: Option<Calls>,
}

/// A send port and its crossings.
#[derive(Debug, Default)]
struct SendPort {
    legs: VecDeque<Leg>,
    /// The neighbour of the crossing in progress.
    busy_with: Option<PeId>,
    /// Number of leading crossings that go to the same neighbour together. All but the first are at
    /// hand.
    together: usize,
}

impl SendPort {
    /// Extends `together` to all following crossings that are at hand.
    fn gather(&mut self, at_hand: &BTreeMap<MessageId, Message>) {
        let Some(first) = self.legs.front() else {
            return;
        };
        let behind = self.legs.iter().skip(self.together.max(1));
        let here = behind.take_while(|it| it.to == first.to && at_hand.contains_key(&it.message));
        self.together = self.together.max(1) + here.count();
    }

    /// Returns whether the first crossing waits for the message of a later one; `short` has the
    /// steps in which short messages arrive.
    fn waits(&self, short: &BTreeMap<MessageId, u64>) -> bool {
        let [first, next] = [0, self.together].map(|place| self.legs.get(place));
        let (Some(first), Some(next)) = (first, next) else {
            return false;
        };
        let comes = short.get(&next.message);
        next.to == first.to && comes.is_some_and(|step| *step < first.first_step)
    }
}

impl Listed {
    pub(super) fn new(place: &Place, brief: Brief) -> Listed {
        let lock_step = brief.pace.lock_step;
        let by_clock = brief.operation.begins_on() == Word::Clock && !lock_step;
        let (in_turns, all_ports) = (brief.is_in_turns(), brief.all_ports);
        let (sends, takes): (Vec<Leg>, Vec<Leg>) =
            brief.legs.into_iter().partition(|leg| leg.from == place.id);
        let receivers = sends.iter().map(|leg| leg.to);
        let calls = Calls::new(brief.pace.ahead_bytes, receivers);
        let lengths = brief
            .takes
            .iter()
            .map(|message| (message.id, message.bytes));
        let lengths: BTreeMap<MessageId, u64> = lengths.collect();
        let flit_bytes = u64::from(brief.flit_bytes);
        let mut sends_of: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for leg in &sends {
            let begin = sends_of.entry(leg.message).or_default();
            *begin.entry(leg.offset).or_default() += 1;
        }
        let mut ports: BTreeMap<Option<PeId>, SendPort> = BTreeMap::new();
        for leg in sends {
            let port = ports.entry(all_ports.then_some(leg.to)).or_default();
            port.legs.push_back(leg);
        }
        let is_short = |leg: &Leg| {
            let bytes = lengths.get(&leg.message);
            leg.flits == 1 && bytes.is_some_and(|bytes| *bytes <= SHORT_BYTES)
        };
        let short = takes
            .iter()
            .filter(|leg| brief.in_any_order && is_short(leg));
        let short = short.map(|leg| (leg.message, leg.first_step)).collect();
        let takes = takes.into_iter().map(|leg| {
            // The length of a message that is only forwarded is not known yet.
            let most = lengths.get(&leg.message).copied().unwrap_or(u64::MAX);
            let [first, end] = bytes_of(&leg, flit_bytes, most);
            Take {
                leg,
                left_bytes: end - first,
            }
        });
        let open = match () {
            () if all_ports => Open::All(BTreeMap::new()),
            () if in_turns => Open::Called(0),
            () if brief.in_any_order => Open::FirstOrShort,
            () => Open::First,
        };
        let own = brief.sends.iter().copied();
        let mut listed = Listed {
            begun: !place.is_root() && !by_clock,
            begins_at: None,
            lock_step,
            flit_bytes,
            at_hand: own.map(|message| (message.id, message)).collect(),
            owed: brief.takes.iter().map(|message| message.id).collect(),
            arrived: brief.sends.iter().map(|it| (it.id, u64::MAX)).collect(),
            sends: ports.into_values().collect(),
            sends_of,
            short,
            takes: Intake::new(takes, open),
            calls: Some(calls).filter(|_| in_turns),
        };
        listed.gather();
        listed
    }

    /// Updates the number of crossings that go together at each port.
    fn gather(&mut self) {
        if !self.short.is_empty() {
            let ports = self.sends.iter_mut();
            ports.for_each(|port| port.gather(&self.at_hand));
        }
    }

    /// Returns the next crossing that can start, with its port and message.
    fn ready(&self) -> Option<(usize, Leg, Message)> {
        let ports = self.sends.iter().enumerate().filter(|_| self.begun);
        let ports = ports.filter(|(_, port)| !port.waits(&self.short));
        let free = ports.filter(|(_, port)| port.busy_with.is_none() && self.has_packet_of(port));
        let mut ready = free.filter_map(|(at, port)| {
            let leg = port.legs.front()?;
            let message = *self.at_hand.get(&leg.message)?;
            let goes = self.calls.as_ref().is_none_or(|it| it.has_heard(leg.to));
            goes.then_some((at, *leg, message))
        });
        ready.next()
    }

    /// Returns whether all of the next packet is here, if flits are sent in packets.
    fn has_packet_of(&self, port: &SendPort) -> bool {
        let is_here = |leg: &Leg| {
            let here = self.arrived.get(&leg.message);
            here.is_some_and(|flits| *flits >= leg.offset.saturating_add(leg.flits))
        };
        let mut legs = port.legs.iter();
        match legs.next() {
            Some(first) if first.packing == Packing::Begins => {
                let mut joined = legs.take_while(|leg| leg.packing == Packing::Joins);
                is_here(first) && joined.all(is_here)
            }
            _ => true,
        }
    }

    /// Returns the calls if the next sender can be called now, apart from the time.
    fn calls_next(&self) -> Option<&Calls> {
        let calls = self.calls.as_ref()?;
        let next = self.takes.next_call()?.leg;
        // Parts of one message come one after the other.
        let is_behind = |open: &Leg| open.message == next.message && open.from != next.from;
        let waits = self.takes.called().any(|it| is_behind(&it.leg));
        (self.begun && !waits).then_some(calls)
    }

    /// Begins if it is time.
    fn begin(&mut self, now: Time) {
        self.begun |= self.begins_at.is_some_and(|at| at <= now);
    }

    /// Calls the next sender.
    fn call(&mut self) -> Option<(PeId, Control)> {
        let take = self.takes.call()?;
        if let Some(calls) = &mut self.calls {
            calls.call(take.left_bytes);
        }
        Some((take.leg.from, Control::Wakeup { after: 1 }))
    }

    /// Returns when a crossing may begin.
    fn due(&self, leg: &Leg) -> Time {
        match self.lock_step {
            true => Time(leg.first_step - 1),
            false => Time(0),
        }
    }

    /// Returns where in a message a crossing begins and ends, in bytes.
    fn bytes(&self, leg: &Leg, message: &Message) -> [u64; 2] {
        bytes_of(leg, self.flit_bytes, message.bytes)
    }
}

/// Returns where in a message of `message_bytes` bytes a crossing begins and ends, in bytes.
fn bytes_of(leg: &Leg, flit_bytes: u64, message_bytes: u64) -> [u64; 2] {
    let flits = [leg.offset, leg.offset.saturating_add(leg.flits)];
    flits.map(|flits| flits.saturating_mul(flit_bytes).min(message_bytes))
}

impl Role for Listed {
    fn trigger(&mut self, at: Time) {
        self.begins_at = Some(at);
    }

    fn phase(&self) -> &'static str {
        "in a round by a list"
    }

    fn control(
        &mut self,
        _place: &Place,
        _now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        let is_due = match item {
            Control::Wakeup { .. } => self.calls.as_mut().is_some_and(|it| it.hear(from)),
            _ => false,
        };
        if !is_due {
            let phase = self.phase();
            return Err(Violation::UnexpectedControl { from, item, phase });
        }
        self.begun = true;
        Ok(())
    }

    fn route(&mut self, _place: &Place, from: PeId, message: &Message) -> Result<Route, Violation> {
        let message = *message;
        if self.takes.is_empty() {
            return Err(Violation::Overrun { from, message });
        }
        let open = self.takes.open_from(from).map(|take| take.leg);
        let Some(take) = open.filter(|it| it.message == message.id && it.offset == 0) else {
            return Err(Violation::OutOfTurn { from, message });
        };
        let [_, until] = self.bytes(&take, &message);
        self.at_hand.insert(message.id, message);
        self.gather();
        // The sender has begun.
        self.begun = true;
        Ok(Route {
            deliver: self.owed.contains(&message.id),
            hold: self.sends_of.contains_key(&message.id),
            until: (until < message.bytes).then_some(until),
            ..Route::default()
        })
    }

    fn next_part(&mut self, from: PeId) -> Option<(Message, u64)> {
        let take = self.takes.open_from(from)?.leg;
        let message = *self
            .at_hand
            .get(&take.message)
            .filter(|_| take.offset > 0)?;
        let [_, until] = self.bytes(&take, &message);
        Some((message, until))
    }

    fn taken(&mut self, from: PeId, bytes: u64) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        if let Some(take) = self.takes.open_from(from) {
            let bytes = bytes.min(take.left_bytes);
            take.left_bytes -= bytes;
            calls.settle(bytes);
        }
    }

    fn has_more_from(&self, from: PeId) -> bool {
        self.takes.has_more_from(from)
    }

    fn received(&mut self, from: PeId, _message: &Message) {
        let through = self.takes.through(from);
        if let Some(Take { leg, .. }) = &through
            && self.sends_of.contains_key(&leg.message)
        {
            self.arrived.insert(leg.message, leg.offset + leg.flits);
        }
        if let (Some(calls), Some(take)) = (&mut self.calls, through) {
            calls.settle(take.left_bytes);
        }
    }

    fn interjection(&mut self, now: Time) -> Option<(PeId, Control)> {
        self.begin(now);
        self.calls_next().filter(|calls| calls.is_time())?;
        self.call()
    }

    fn awaits_bytes(&self) -> Option<u64> {
        self.calls_next().map(Calls::awaits_bytes)
    }

    fn arriving(&mut self, bytes: u64) {
        if let Some(calls) = &mut self.calls {
            calls.arriving(bytes);
        }
    }

    fn next(&mut self, _place: &Place, now: Time) -> Option<Transmit> {
        self.begin(now);
        let (port, leg, message) = self.ready()?;
        if self.due(&leg) > now {
            return None;
        }
        // A call to this neighbour would wait behind the crossing, so it goes first.
        let next = self.takes.next_call().map(|next| next.leg.from);
        if self.calls_next().is_some() && next == Some(leg.to) {
            let (to, item) = self.call()?;
            return Some(Transmit::Control { to, item });
        }
        let port = &mut self.sends[port];
        port.legs.pop_front();
        port.busy_with = Some(leg.to);
        port.together = port.together.saturating_sub(1);
        self.gather();
        if let Some(calls) = &mut self.calls {
            calls.follow(leg.to);
        }
        let mut later_from = u64::MAX;
        if let Some(begin) = self.sends_of.get_mut(&leg.message) {
            take_one(begin, leg.offset);
            if let Some((flits, _)) = begin.first_key_value() {
                later_from = flits.saturating_mul(self.flit_bytes);
            }
        }
        let bytes = self.bytes(&leg, &message);
        Some(Transmit::Part {
            to: leg.to,
            message,
            bytes,
            later_from,
            packing: leg.packing,
        })
    }

    fn sent(&mut self, transmit: &Transmit) {
        let Transmit::Part { to, .. } = transmit else {
            return;
        };
        let mut ports = self.sends.iter_mut();
        if let Some(port) = ports.find(|port| port.busy_with == Some(*to)) {
            port.busy_with = None;
        }
    }

    fn timeout(&self) -> Option<Time> {
        match self.begun {
            true => self.ready().map(|(_, leg, _)| self.due(&leg)),
            false => self.begins_at,
        }
    }

    fn listens_to(&self, _place: &Place, from: PeId) -> bool {
        let calls = self.calls.as_ref();
        self.takes.is_open_from(from) || calls.is_some_and(|calls| calls.awaits(from))
    }

    fn is_over(&self, _place: &Place) -> bool {
        let is_sent = |port: &SendPort| port.legs.is_empty() && port.busy_with.is_none();
        let is_done = self.sends.iter().all(is_sent) && self.takes.is_empty();
        self.begun && is_done
    }
}
