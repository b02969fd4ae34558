//! A PE that follows a static schedule: a list of crossings. It sends the next crossing as soon as
//! its first flit is available and its send port is free, and meanwhile receives the next crossing
//! that the schedule has for its receive port. It holds what it forwards later. No deadlock is
//! possible: of all unfinished crossings, the one with the smallest first step waits for none of
//! the others.
//!
//! In turns, a crossing begins when its receiver has called for it (`receive_queue.rs`), and several called
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

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::pe_schedule::PeSchedule;
use super::receive_queue::{PendingReceive, PullRequests, ReceiveQueue, ReceiveRule, take_one};
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Control, Message, MessageFault, Packing, Route, ScheduledHop, Transmit};
use crate::limits::SHORT_MESSAGE_BYTES;
use crate::{MessageId, PeId, Time};

#[derive(Debug)]
pub(super) struct StaticScheduleRole {
    /// Whether the PE may send: its begin or any other event of the round has occurred.
    begun: bool,
    /// When the PE begins, once it is triggered.
    begins_at: Option<Time>,
    /// Whether each crossing waits for its step, as in lock step, where all PEs begin with the
    /// first step.
    lock_step: bool,
    /// Payload bytes of a full flit.
    flit_bytes: u64,
    /// Messages that the PE can send: its own, and those of which it has at least a part.
    available: BTreeMap<MessageId, Message>,
    /// Messages that are yet to arrive for this PE.
    expected: BTreeSet<MessageId>,
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
    receives: ReceiveQueue,
    /// Calls, if the schedule runs in turns.
    calls: Option<PullRequests>,
}

/// A send port and its crossings.
#[derive(Debug, Default)]
struct SendPort {
    hops: VecDeque<ScheduledHop>,
    /// The neighbour of the crossing in progress.
    busy_with: Option<PeId>,
    /// Number of leading crossings that go to the same neighbour together. All but the first are at
    /// hand.
    coalesced_count: usize,
}

impl SendPort {
    /// Extends `coalesced_count` to all following crossings that are at hand.
    fn gather(&mut self, available: &BTreeMap<MessageId, Message>) {
        let Some(first) = self.hops.front() else {
            return;
        };
        let behind = self.hops.iter().skip(self.coalesced_count.max(1));
        let here = behind.take_while(|it| it.to == first.to && available.contains_key(&it.message));
        self.coalesced_count = self.coalesced_count.max(1) + here.count();
    }

    /// Returns whether the first crossing waits for the message of a later one; `short` has the
    /// steps in which short messages arrive.
    fn waits(&self, short: &BTreeMap<MessageId, u64>) -> bool {
        let [first, next] = [0, self.coalesced_count].map(|place| self.hops.get(place));
        let (Some(first), Some(next)) = (first, next) else {
            return false;
        };
        let arrival = short.get(&next.message);
        next.to == first.to && arrival.is_some_and(|step| *step < first.first_step)
    }
}

impl StaticScheduleRole {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule) -> StaticScheduleRole {
        let lock_step = schedule.pace.lock_step;
        let by_clock = schedule.collective.begins_by_clock() && !lock_step;
        let (in_turns, all_ports) = (schedule.in_turns, schedule.all_ports);
        let (sends, receives): (Vec<ScheduledHop>, Vec<ScheduledHop>) = schedule
            .hops
            .into_iter()
            .partition(|hop| hop.from == place.id);
        let receivers = sends.iter().map(|hop| hop.to);
        let calls = PullRequests::new(schedule.pace.ahead_bytes, receivers);
        let lengths = schedule
            .receives
            .iter()
            .map(|message| (message.id, message.bytes));
        let lengths: BTreeMap<MessageId, u64> = lengths.collect();
        let flit_bytes = u64::from(schedule.flit_bytes);
        let mut sends_of: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for hop in &sends {
            let begin = sends_of.entry(hop.message).or_default();
            *begin.entry(hop.offset).or_default() += 1;
        }
        let mut ports: BTreeMap<Option<PeId>, SendPort> = BTreeMap::new();
        for hop in sends {
            let port = ports.entry(all_ports.then_some(hop.to)).or_default();
            port.hops.push_back(hop);
        }
        let is_short = |hop: &ScheduledHop| {
            let bytes = lengths.get(&hop.message);
            hop.flits == 1 && bytes.is_some_and(|bytes| *bytes <= SHORT_MESSAGE_BYTES)
        };
        let short = receives
            .iter()
            .filter(|hop| schedule.in_any_order && is_short(hop));
        let short = short.map(|hop| (hop.message, hop.first_step)).collect();
        let receives = receives.into_iter().map(|hop| {
            // The length of a message that is only forwarded is not known yet.
            let most = lengths.get(&hop.message).copied().unwrap_or(u64::MAX);
            let [first, end] = bytes_of(&hop, flit_bytes, most);
            PendingReceive {
                hop,
                left_bytes: end - first,
            }
        });
        let open = match () {
            () if all_ports => ReceiveRule::All(BTreeMap::new()),
            () if in_turns => ReceiveRule::Called(0),
            () if schedule.in_any_order => ReceiveRule::FirstOrShort,
            () => ReceiveRule::First,
        };
        let own = schedule.sends.iter().copied();
        let mut listed = StaticScheduleRole {
            begun: !place.is_root() && !by_clock,
            begins_at: None,
            lock_step,
            flit_bytes,
            available: own.map(|message| (message.id, message)).collect(),
            expected: schedule.receives.iter().map(|message| message.id).collect(),
            arrived: schedule.sends.iter().map(|it| (it.id, u64::MAX)).collect(),
            sends: ports.into_values().collect(),
            sends_of,
            short,
            receives: ReceiveQueue::new(receives, open),
            calls: Some(calls).filter(|_| in_turns),
        };
        listed.gather();
        listed
    }

    /// Updates the number of crossings that go together at each port.
    fn gather(&mut self) {
        if !self.short.is_empty() {
            let ports = self.sends.iter_mut();
            ports.for_each(|port| port.gather(&self.available));
        }
    }

    /// Returns the next crossing that can start, with its port and message.
    fn ready(&self) -> Option<(usize, ScheduledHop, Message)> {
        let ports = self.sends.iter().enumerate().filter(|_| self.begun);
        let ports = ports.filter(|(_, port)| !port.waits(&self.short));
        let free = ports.filter(|(_, port)| port.busy_with.is_none() && self.has_packet_of(port));
        let mut ready = free.filter_map(|(at, port)| {
            let hop = port.hops.front()?;
            let message = *self.available.get(&hop.message)?;
            let may_start = self.calls.as_ref().is_none_or(|it| it.has_received(hop.to));
            may_start.then_some((at, *hop, message))
        });
        ready.next()
    }

    /// Returns whether all of the next packet is here, if flits are sent in packets.
    fn has_packet_of(&self, port: &SendPort) -> bool {
        let is_here = |hop: &ScheduledHop| {
            let here = self.arrived.get(&hop.message);
            here.is_some_and(|flits| *flits >= hop.offset.saturating_add(hop.flits))
        };
        let mut hops = port.hops.iter();
        match hops.next() {
            Some(first) if first.packing == Packing::Begins => {
                let mut joined = hops.take_while(|hop| hop.packing == Packing::Joins);
                is_here(first) && joined.all(is_here)
            }
            _ => true,
        }
    }

    /// Returns the calls if the next sender can be called now, apart from the time.
    fn calls_next(&self) -> Option<&PullRequests> {
        let calls = self.calls.as_ref()?;
        let next = self.receives.next_call()?.hop;
        // Parts of one message come one after the other.
        let is_behind =
            |open: &ScheduledHop| open.message == next.message && open.from != next.from;
        let waits = self.receives.called().any(|it| is_behind(&it.hop));
        (self.begun && !waits).then_some(calls)
    }

    fn begin(&mut self, now: Time) {
        self.begun |= self.begins_at.is_some_and(|at| at <= now);
    }

    /// Calls the next sender.
    fn call(&mut self) -> Option<(PeId, Control)> {
        let take = self.receives.call()?;
        if let Some(calls) = &mut self.calls {
            calls.call(take.left_bytes);
        }
        Some((take.hop.from, Control::Wakeup { after: 1 }))
    }

    /// Returns when a crossing may begin.
    fn due(&self, hop: &ScheduledHop) -> Time {
        match self.lock_step {
            true => Time(hop.first_step - 1),
            false => Time(0),
        }
    }

    /// Returns where in a message a crossing begins and ends, in bytes.
    fn bytes(&self, hop: &ScheduledHop, message: &Message) -> [u64; 2] {
        bytes_of(hop, self.flit_bytes, message.bytes)
    }
}

/// Returns where in a message of `message_bytes` bytes a crossing begins and ends, in bytes.
fn bytes_of(hop: &ScheduledHop, flit_bytes: u64, message_bytes: u64) -> [u64; 2] {
    let flits = [hop.offset, hop.offset.saturating_add(hop.flits)];
    flits.map(|flits| flits.saturating_mul(flit_bytes).min(message_bytes))
}

impl Role for StaticScheduleRole {
    fn trigger(&mut self, at: Time) {
        self.begins_at = Some(at);
    }

    fn control(&mut self, _place: &PePosition, _now: Time, from: PeId, item: Control) -> bool {
        let is_due = match item {
            Control::Wakeup { .. } => self.calls.as_mut().is_some_and(|it| it.receive(from)),
            _ => false,
        };
        self.begun |= is_due;
        is_due
    }

    fn route(&mut self, _place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        if self.receives.is_empty() {
            return Err(MessageFault::Overrun);
        }
        let open = self.receives.open_from(from).map(|take| take.hop);
        let Some(take) = open.filter(|it| it.message == message.id && it.offset == 0) else {
            return Err(MessageFault::OutOfTurn);
        };
        let [_, until] = self.bytes(&take, message);
        self.available.insert(message.id, *message);
        self.gather();
        // The sender has begun.
        self.begun = true;
        Ok(Route {
            deliver: self.expected.contains(&message.id),
            hold: self.sends_of.contains_key(&message.id),
            until: (until < message.bytes).then_some(until),
            ..Route::default()
        })
    }

    fn next_part(&mut self, from: PeId) -> Option<(Message, u64)> {
        let take = self.receives.open_from(from)?.hop;
        let message = *self
            .available
            .get(&take.message)
            .filter(|_| take.offset > 0)?;
        let [_, until] = self.bytes(&take, &message);
        Some((message, until))
    }

    fn taken(&mut self, from: PeId, bytes: u64) {
        let Some(calls) = &mut self.calls else {
            return;
        };
        if let Some(take) = self.receives.open_from(from) {
            let bytes = bytes.min(take.left_bytes);
            take.left_bytes -= bytes;
            calls.settle(bytes);
        }
    }

    fn has_more_from(&self, from: PeId) -> bool {
        self.receives.has_more_from(from)
    }

    fn received(&mut self, from: PeId, _message: &Message) {
        let through = self.receives.through(from);
        if let Some(PendingReceive { hop, .. }) = &through
            && self.sends_of.contains_key(&hop.message)
        {
            self.arrived.insert(hop.message, hop.offset + hop.flits);
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
        self.calls_next().map(PullRequests::awaits_bytes)
    }

    fn arriving(&mut self, bytes: u64) {
        if let Some(calls) = &mut self.calls {
            calls.arriving(bytes);
        }
    }

    fn next(&mut self, _place: &PePosition, now: Time) -> Option<Transmit> {
        self.begin(now);
        let (port, hop, message) = self.ready()?;
        if self.due(&hop) > now {
            return None;
        }
        // A call to this neighbour would wait behind the crossing, so it goes first.
        let next = self.receives.next_call().map(|next| next.hop.from);
        if self.calls_next().is_some() && next == Some(hop.to) {
            let (to, item) = self.call()?;
            return Some(Transmit::Control { to, item });
        }
        let port = &mut self.sends[port];
        port.hops.pop_front();
        port.busy_with = Some(hop.to);
        port.coalesced_count = port.coalesced_count.saturating_sub(1);
        self.gather();
        if let Some(calls) = &mut self.calls {
            calls.follow(hop.to);
        }
        let mut later_from = u64::MAX;
        if let Some(begin) = self.sends_of.get_mut(&hop.message) {
            take_one(begin, hop.offset);
            if let Some((flits, _)) = begin.first_key_value() {
                later_from = flits.saturating_mul(self.flit_bytes);
            }
        }
        let bytes = self.bytes(&hop, &message);
        Some(Transmit::Part {
            to: hop.to,
            message,
            bytes,
            later_from,
            packing: hop.packing,
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
            true => self.ready().map(|(_, hop, _)| self.due(&hop)),
            false => self.begins_at,
        }
    }

    fn listens_to(&self, _place: &PePosition, from: PeId) -> bool {
        let calls = self.calls.as_ref();
        self.receives.is_open_from(from) || calls.is_some_and(|calls| calls.awaits(from))
    }

    fn is_over(&self, _place: &PePosition) -> bool {
        let is_sent = |port: &SendPort| port.hops.is_empty() && port.busy_with.is_none();
        let is_done = self.sends.iter().all(is_sent) && self.receives.is_empty();
        self.begun && is_done
    }
}
