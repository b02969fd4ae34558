//! The lock-step simulator: one state machine per PE under the papers' rules.
//!
//! In each step every PE sends at most one flit to one neighbour and receives at
//! most one from one neighbour; a flit received in step t is sent on in step
//! t+1; a message's flits stay together. The simulator checks each of these and
//! fails loudly. Receipts follow the data outside the model: they take no step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use flitcast_proto::items::{Control, Hops, Message, Route, Transmit};
use flitcast_proto::ops::{Collective, Direction, PeMachine, PeRole, PeSchedule};
use flitcast_proto::{MessageId, PeId, Time, Tree};
use smallvec::smallvec;
use thiserror::Error;

use crate::algorithms::Algorithm;
use crate::timing::Timing;
use crate::trace::{Crossing, Item};

/// A finished simulation.
#[derive(Debug)]
pub struct Simulated {
    /// Everything that crossed an edge, by step, then by sender.
    pub crossings: Vec<Crossing>,
    /// The step in which the last flit reached its destination, by delivery; 0 for a null one.
    pub arrival_steps: Vec<u64>,
}

impl Simulated {
    /// Returns the time of the operation, in steps: the last arrival. 0 if there was nothing to
    /// send.
    pub fn time_steps(&self) -> u64 {
        self.arrival_steps.iter().copied().max().unwrap_or(0)
    }
}

/// A broken rule of the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("step {step}: {fault}")]
pub struct SimulationError {
    pub step: u64,
    /// The fault, as a clause.
    pub fault: String,
}

/// One PE and what its ports hold.
struct SimulatedPe {
    pe: PeMachine,
    /// A message that this PE sends, its receivers, the number of flits that were sent, and the
    /// number to be sent: each flit counts once for each receiver.
    outgoing: Option<(Hops, Message, u64, u64)>,
    /// Received flits that are forwarded: to one neighbour in the step after their arrival, to
    /// several in as many steps.
    held: VecDeque<(PeId, Message, u64)>,
    /// The message that is coming in, the next flit expected, its route.
    incoming: Option<(Message, u64, Route)>,
    /// The next expected flit and the route of each message that has partly arrived.
    paused: BTreeMap<MessageId, (Message, u64, Route)>,
    /// The number of stored flits of each message.
    here: BTreeMap<MessageId, u64>,
    /// When the PE got its order or wakeup call.
    ordered: Option<u64>,
    /// The step of the last receive, and the sender.
    last_received: (u64, PeId),
    finished: bool,
}

impl SimulatedPe {
    /// Returns the route of a received flit, which must be the next one of its message; else the fault.
    fn route(&mut self, from: PeId, message: Message, index: u64) -> Result<Route, String> {
        let pe = self.pe.id();
        let begun = match self.incoming.take() {
            None if index > 1 => {
                let next = self.pe.handle_next_part(from);
                next.and_then(|(id, until)| {
                    let (of, expected, mut route) = self.paused.remove(&id)?;
                    route.until = Some(until).filter(|until| *until < of.bytes);
                    Some((of, expected, route))
                })
            }
            begun => begun,
        };
        match begun {
            None if index == 1 => {
                let route = self.pe.handle_head(from, message);
                route.map_err(|violation| format!("{pe}: {violation}"))
            }
            Some((under_way, expected, route)) if under_way == message && expected == index => {
                Ok(route)
            }
            // The flits of a message stay together and in order.
            other => Err(format!(
                "{pe} received flit {index} of the message of {}, not flit {}",
                message.pe(),
                other.map_or(1, |(_, expected, _)| expected)
            )),
        }
    }
}

/// Runs one round, `flits[i]` being L_i, to its end.
pub fn run(
    tree: &Arc<Tree>,
    operation: Algorithm,
    flits: &[u64],
) -> Result<Simulated, SimulationError> {
    run_schedules(tree, operation.schedules(tree, flits, &Timing::LOCK_STEP))
}

/// Runs one round of the given schedules, flits of one byte and steps of one tick.
pub fn run_schedules(
    tree: &Arc<Tree>,
    schedules: Vec<PeSchedule>,
) -> Result<Simulated, SimulationError> {
    let played = schedules
        .first()
        .map(|schedule| (schedule.collective, schedule.role));
    let (collective, role) = played.unwrap_or((Collective::Scatter, PeRole::Scatter));
    let pes = tree.ids().zip(schedules).map(|(id, schedule)| SimulatedPe {
        pe: PeMachine::new(tree.clone(), id, schedule),
        outgoing: None,
        held: VecDeque::new(),
        incoming: None,
        paused: BTreeMap::new(),
        here: BTreeMap::new(),
        ordered: None,
        last_received: (0, id),
        finished: !tree.contains(id),
    });
    let mut simulation = Simulation {
        pes: pes.collect(),
        tree: tree.clone(),
        collective,
        role,
        step: 0,
        unfinished: tree.count(),
        agenda: BTreeMap::from([(1, tree.pes().map(PeId::index).collect())]),
        run: Simulated {
            crossings: Vec::new(),
            arrival_steps: vec![0; collective.deliveries(tree)],
        },
    };
    let root = tree.root();
    simulation.pes[root.index()].pe.handle_trigger(Time(0));
    while simulation.unfinished > 0 {
        let step = simulation.advance();
        step.map_err(|fault| SimulationError {
            step: simulation.step,
            fault,
        })?;
    }
    Ok(simulation.run)
}

/// Returns the fault of a PE that cannot send a flit on in the step after its receipt.
fn busy(pe: PeId) -> String {
    format!("{pe} holds a flit, but its send port is busy")
}

struct Simulation {
    pes: Vec<SimulatedPe>,
    tree: Arc<Tree>,
    collective: Collective,
    role: PeRole,
    step: u64,
    unfinished: usize,
    /// The PEs that may have something to send in each step; others are not examined.
    agenda: BTreeMap<u64, BTreeSet<usize>>,
    run: Simulated,
}

impl Simulation {
    /// Moves to the next step in which something can happen.
    fn advance(&mut self) -> Result<(), String> {
        let Some((step, busy)) = self.agenda.pop_first() else {
            let stuck = self.pes.iter().filter(|player| !player.finished);
            let unfinished: Vec<PeId> = stuck.map(|player| player.pe.id()).collect();
            return Err(format!(
                "the round makes no progress; unfinished: {unfinished:?}"
            ));
        };
        self.step = step;
        let mut receipts = Vec::new();
        let mut crossings = Vec::new();
        for &at in &busy {
            self.send(at, &mut crossings, &mut receipts)?;
        }
        for crossing in &crossings {
            self.receive(crossing)?;
        }
        for (from, to) in receipts {
            self.control(from, to, Control::Receipt)?;
        }
        self.run.crossings.append(&mut crossings);
        for at in busy {
            self.look_ahead(at);
        }
        Ok(())
    }

    /// Schedules the next check of a PE after this step.
    fn look_ahead(&mut self, at: usize) {
        let player = &mut self.pes[at];
        if !player.finished && player.pe.is_finished() {
            player.finished = true;
            self.unfinished -= 1;
        }
        if !player.held.is_empty() || player.outgoing.is_some() {
            self.wake(at, self.step + 1);
        } else if let Some(Time(due)) = player.pe.poll_timeout() {
            // An item that is due at a tick is sent in the step that begins there.
            self.wake(at, (due + 1).max(self.step + 1));
        }
    }

    fn wake(&mut self, at: usize, step: u64) {
        self.agenda.entry(step).or_default().insert(at);
    }

    /// Lets a PE send in this step. A port is free again at the end of the step, before anything is
    /// received.
    fn send(
        &mut self,
        at: usize,
        crossings: &mut Vec<Crossing>,
        receipts: &mut Vec<(PeId, PeId)>,
    ) -> Result<(), String> {
        let step = self.step;
        // Control items of any number may be sent and received in a step.
        let has_control_ports = self.role.has_control_ports();
        let needs_order = self.collective.direction() == Direction::Up;
        // A step begins at the tick before it and ends at its own.
        let start = Time(step - 1);
        let player = &mut self.pes[at];
        let from = player.pe.id();
        let mut cross = |to, item| crossings.push(Crossing::new(step, [from, to], item));
        if let Some((to, message, index)) = player.held.pop_front() {
            if player.outgoing.is_some() {
                return Err(busy(from));
            }
            if index == message.bytes && player.held.is_empty() {
                player.pe.handle_sent();
                // The port is free for the next step.
                self.wake(at, step + 1);
            }
            cross(to, Item::Flit { message, index });
            return Ok(());
        }
        while player.outgoing.is_none() {
            match player.pe.poll_transmit(start) {
                None => return Ok(()),
                Some(Transmit::Control {
                    to,
                    item: Control::Receipt,
                }) => {
                    receipts.push((from, to));
                    player.pe.handle_sent();
                }
                Some(Transmit::Control { to, item }) => {
                    player.pe.handle_sent();
                    cross(to, Item::Control(item));
                    if !has_control_ports {
                        self.wake(at, step + 1);
                        return Ok(());
                    }
                }
                Some(Transmit::Message { to, message }) => {
                    if needs_order && player.ordered.is_none_or(|ordered| ordered >= step) {
                        return Err(format!("{from} sent data before its order"));
                    }
                    let flits = message.bytes * to.len() as u64;
                    player.outgoing = Some((to, message, 0, flits));
                }
                Some(Transmit::Part {
                    to, message, bytes, ..
                }) => {
                    let [first, end] = bytes;
                    player.outgoing = Some((smallvec![to], message, first, end));
                }
            }
        }
        if let Some((to, message, index)) = self.next_flit(at)? {
            cross(to, Item::Flit { message, index });
        }
        Ok(())
    }

    /// Takes the next flit of a PE's outgoing message: its receiver, the message, and its number from 1.
    fn next_flit(&mut self, at: usize) -> Result<Option<(PeId, Message, u64)>, String> {
        // In lock step, static schedules contain all begins.
        let is_duplex = self.role == PeRole::StaticSchedule;
        let step = self.step;
        let player = &mut self.pes[at];
        let Some((to, message, sent, end)) = player.outgoing.take() else {
            return Ok(None);
        };
        let pe = player.pe.id();
        // Each flit goes to one receiver after the other.
        let several = to.len() as u64;
        let (next, index) = (to[(sent % several) as usize], sent / several + 1);
        let here = player.here.get(&message.id);
        if message.source != pe && is_duplex && here.is_none_or(|here| *here < index) {
            let of = message.pe();
            return Err(format!(
                "{pe} has no flit {index} of the message of {of} to send"
            ));
        }
        if sent + 1 == end {
            player.pe.handle_sent();
            self.wake(at, step + 1);
        } else {
            player.outgoing = Some((to, message, sent + 1, end));
        }
        Ok(Some((next, message, index)))
    }

    fn receive(&mut self, crossing: &Crossing) -> Result<(), String> {
        let (step, from, to) = (crossing.step, crossing.from, crossing.to);
        let is_control = matches!(crossing.item, Item::Control(_));
        let ports_are_enough = self.role.has_control_ports() && is_control;
        let player = &mut self.pes[to.index()];
        let (last, first) = std::mem::replace(&mut player.last_received, (step, from));
        if last == step && !ports_are_enough {
            return Err(format!("{first} and {from} both send to {to}"));
        }
        let (message, index) = match crossing.item {
            Item::Control(item) => return self.control(from, to, item),
            Item::Flit { message, index } => (message, index),
        };
        let route = player.route(from, message, index)?;
        let relayed = route.relay.iter().map(|&to| (to, message, index));
        player.held.extend(relayed);
        // Only a message to several neighbours may fall behind.
        if route.relay.len() == 1 && player.held.len() > 1 {
            return Err(busy(to));
        }
        if route.hold {
            player.here.insert(message.id, index);
        }
        if route.until == Some(index) {
            player.pe.handle_received(from);
            let next = (message, index + 1, route);
            player.paused.insert(message.id, next);
        } else if index < message.bytes {
            player.incoming = Some((message, index + 1, route));
        } else {
            player.pe.handle_received(from);
            if route.deliver {
                player.pe.handle_delivered();
                let delivery = self.collective.delivery(&self.tree, message.id, to);
                self.run.arrival_steps[delivery.index()] = step;
            }
        }
        self.wake(to.index(), step + 1);
        Ok(())
    }

    fn control(&mut self, from: PeId, to: PeId, item: Control) -> Result<(), String> {
        let step = self.step;
        let player = &mut self.pes[to.index()];
        let permits_sending = match item {
            Control::Wakeup { .. } | Control::Order { .. } => true,
            // Only a baseline sends on a token.
            Control::Token => self.role == PeRole::Combining,
            Control::Certificate(_) | Control::Receipt => false,
        };
        if permits_sending {
            player.ordered = Some(step);
        }
        let handled = player.pe.handle_control(Time(step), from, item);
        self.wake(to.index(), step + 1);
        handled.map_err(|violation| format!("{to}: {violation}"))
    }
}
