//! The lock-step simulator: one state machine per PE under the papers' rules.
//!
//! In each step every PE sends at most one flit to one neighbour and receives at
//! most one from one neighbour; a flit received in step t is sent on in step
//! t+1; a message's flits stay together. The simulator checks each of these and
//! fails loudly. Receipts follow the data outside the model: they take no step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use thiserror::Error;

use crate::items::{Control, Message, Route, Transmit, Violation};
use crate::ops::{Brief, Operation, Pe, Word};
use crate::schedule::pace::Timing;
use crate::trace::{Crossing, Item};
use crate::{PeId, Time, Tree};

/// A finished simulation.
#[derive(Debug)]
pub struct Run {
    /// Everything that crossed an edge, by step, then by sender.
    pub crossings: Vec<Crossing>,
    /// By delivery: the step in which the last flit reached that destination; 0 for a null one.
    pub arrival_steps: Vec<u64>,
}

impl Run {
    /// The time of the operation, in steps: the last arrival. 0 if there was
    /// nothing to send.
    pub fn time_steps(&self) -> u64 {
        self.arrival_steps.iter().copied().max().unwrap_or(0)
    }

    /// The step in which each M_i first crossed a link; 0 for a null message.
    pub fn first_steps(&self) -> Vec<u64> {
        let mut first = vec![0; self.arrival_steps.len()];
        for crossing in &self.crossings {
            if let Item::Flit { message, index: 1 } = crossing.item
                && message.source == crossing.from
            {
                first[message.id.index()] = crossing.step;
            }
        }
        first
    }
}

/// A rule of the model was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// A state machine refused what a neighbour sent.
    #[error("step {step}: {pe}: {violation}")]
    Violation {
        /// The step.
        step: u64,
        /// Who refused.
        pe: PeId,
        /// Why.
        violation: Violation,
    },
    /// Two items reached a PE in one step.
    #[error("step {step}: {first} and {second} both send to {pe}")]
    ReceiveCollision {
        /// The step.
        step: u64,
        /// The receiver.
        pe: PeId,
        /// One sender.
        first: PeId,
        /// The other.
        second: PeId,
    },
    /// A flit could not be sent on in the step after its receipt.
    #[error("step {step}: {pe} holds a flit, but its send port is busy")]
    SendCollision {
        /// The step.
        step: u64,
        /// The PE.
        pe: PeId,
    },
    /// The flits of a message did not stay together, or not in order.
    #[error("step {step}: {pe} received flit {index} of the message of {}, not flit {expected}", message.pe())]
    Torn {
        /// The step.
        step: u64,
        /// The receiver.
        pe: PeId,
        /// The message.
        message: Message,
        /// What came.
        index: u64,
        /// What had to come.
        expected: u64,
    },
    /// Data left its source before an order reached it.
    #[error("step {step}: {pe} sent data before its order")]
    Early {
        /// The step.
        step: u64,
        /// The PE.
        pe: PeId,
    },
    /// Nothing can happen any more, but the round is not over.
    #[error("step {step}: the round stands still; unfinished: {unfinished:?}")]
    Stalled {
        /// The step.
        step: u64,
        /// Who is not finished.
        unfinished: Vec<PeId>,
    },
}

/// One PE and what its ports hold.
struct Station {
    pe: Pe,
    /// A message of which this PE is the source, who gets it, and how many flits were sent.
    outgoing: Option<(Vec<PeId>, Message, u64)>,
    /// What came and goes on: to one neighbour in the step after it came, to several in as many.
    held: VecDeque<(PeId, Message, u64)>,
    /// The message that is coming in, the next flit expected, its route.
    incoming: Option<(Message, u64, Route)>,
    /// When the PE got its order or wakeup call.
    ordered: Option<u64>,
    /// When it last received, and from whom.
    heard: (u64, PeId),
    finished: bool,
}

/// Runs one round, `flits[i]` being L_i, to its end.
pub fn run(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) -> Result<Run, Fault> {
    run_briefs(tree, Brief::all(tree, operation, flits, &Timing::LOCK_STEP))
}

/// Runs one round of the given briefs, flits of one byte and steps of one tick.
pub fn run_briefs(tree: &Arc<Tree>, briefs: Vec<Brief>) -> Result<Run, Fault> {
    let operation = briefs.first().map(|brief| brief.operation);
    let stations = tree.ids().zip(briefs).map(|(id, brief)| Station {
        pe: Pe::new(tree.clone(), id, brief),
        outgoing: None,
        held: VecDeque::new(),
        incoming: None,
        ordered: None,
        heard: (0, id),
        finished: !tree.contains(id),
    });
    let mut simulation = Simulation {
        stations: stations.collect(),
        operation,
        step: 0,
        unfinished: tree.count(),
        agenda: BTreeMap::from([(1, tree.pes().map(PeId::index).collect())]),
        run: Run {
            crossings: Vec::new(),
            arrival_steps: vec![0; tree.len()],
        },
    };
    simulation.stations[0].pe.handle_trigger(Time(0));
    while simulation.unfinished > 0 {
        simulation.advance()?;
    }
    Ok(simulation.run)
}

struct Simulation {
    stations: Vec<Station>,
    operation: Option<Operation>,
    step: u64,
    unfinished: usize,
    /// By step, the stations that may have something to send in it: nothing else
    /// is looked at.
    agenda: BTreeMap<u64, BTreeSet<usize>>,
    run: Run,
}

impl Simulation {
    /// Whether control items of any number may be sent and received in a step.
    fn is_multi_port(&self) -> bool {
        self.operation.is_some_and(Operation::has_control_ports)
    }

    /// On which word sources may begin.
    fn begins_on(&self) -> Word {
        self.operation.map_or(Word::Trigger, Operation::begins_on)
    }

    /// The next step in which something can happen.
    fn advance(&mut self) -> Result<(), Fault> {
        let Some((step, busy)) = self.agenda.pop_first() else {
            let stuck = self.stations.iter().filter(|station| !station.finished);
            let unfinished = stuck.map(|station| station.pe.id()).collect();
            let step = self.step;
            return Err(Fault::Stalled { step, unfinished });
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

    /// When a station has to be looked at again after this step.
    fn look_ahead(&mut self, at: usize) {
        let station = &mut self.stations[at];
        if !station.finished && station.pe.is_finished() {
            station.finished = true;
            self.unfinished -= 1;
        }
        if !station.held.is_empty() || station.outgoing.is_some() {
            self.wake(at, self.step + 1);
        } else if let Some(Time(due)) = station.pe.poll_timeout() {
            // What is due at a tick goes in the step that begins there.
            self.wake(at, (due + 1).max(self.step + 1));
        }
    }

    fn wake(&mut self, at: usize, step: u64) {
        self.agenda.entry(step).or_default().insert(at);
    }

    /// What a station sends in this step. A port is free again at its end, before
    /// anything is received.
    fn send(
        &mut self,
        at: usize,
        crossings: &mut Vec<Crossing>,
        receipts: &mut Vec<(PeId, PeId)>,
    ) -> Result<(), Fault> {
        let step = self.step;
        let multi_port = self.is_multi_port();
        let waits_for_word = self.begins_on() != Word::Trigger;
        // A step begins at the tick before it and ends at its own.
        let start = Time(step - 1);
        let station = &mut self.stations[at];
        let from = station.pe.id();
        let mut cross = |to, item| {
            crossings.push(Crossing {
                step,
                from,
                to,
                item,
            });
        };
        if let Some((to, message, index)) = station.held.pop_front() {
            if station.outgoing.is_some() {
                return Err(Fault::SendCollision { step, pe: from });
            }
            if index == message.bytes && station.held.is_empty() {
                station.pe.handle_sent();
                // The port is free for the next step.
                self.wake(at, step + 1);
            }
            cross(to, Item::Flit { message, index });
            return Ok(());
        }
        while station.outgoing.is_none() {
            match station.pe.poll_transmit(start) {
                None => return Ok(()),
                Some(Transmit::Control {
                    to,
                    item: Control::Receipt,
                }) => {
                    receipts.push((from, to));
                    station.pe.handle_sent();
                }
                Some(Transmit::Control { to, item }) => {
                    station.pe.handle_sent();
                    cross(to, Item::Control(item));
                    if !multi_port {
                        self.wake(at, step + 1);
                        return Ok(());
                    }
                }
                Some(Transmit::Message { to, message }) => {
                    if waits_for_word && station.ordered.is_none_or(|ordered| ordered >= step) {
                        return Err(Fault::Early { step, pe: from });
                    }
                    station.outgoing = Some((to, message, 0));
                }
            }
        }
        if let Some((to, message, sent)) = station.outgoing.take() {
            // Each flit goes to one after the other.
            let several = to.len() as u64;
            let (next, index) = (to[(sent % several) as usize], sent / several + 1);
            if sent + 1 == message.bytes * several {
                station.pe.handle_sent();
                self.wake(at, step + 1);
            } else {
                station.outgoing = Some((to, message, sent + 1));
            }
            cross(next, Item::Flit { message, index });
        }
        Ok(())
    }

    fn receive(&mut self, crossing: &Crossing) -> Result<(), Fault> {
        let Crossing {
            step,
            from,
            to,
            item,
        } = *crossing;
        let ports_are_enough = self.is_multi_port() && matches!(item, Item::Control(_));
        let station = &mut self.stations[to.index()];
        let (last, first) = std::mem::replace(&mut station.heard, (step, from));
        if last == step && !ports_are_enough {
            return Err(Fault::ReceiveCollision {
                step,
                pe: to,
                first,
                second: from,
            });
        }
        let (message, index) = match item {
            Item::Control(item) => return self.control(from, to, item),
            Item::Flit { message, index } => (message, index),
        };
        let route = match station.incoming.take() {
            None if index == 1 => {
                let refused = |violation| Fault::Violation {
                    step,
                    pe: to,
                    violation,
                };
                station.pe.handle_head(from, message).map_err(refused)?
            }
            Some((under_way, expected, route)) if under_way == message && expected == index => {
                route
            }
            other => {
                let expected = other.map_or(1, |(_, expected, _)| expected);
                return Err(Fault::Torn {
                    step,
                    pe: to,
                    message,
                    index,
                    expected,
                });
            }
        };
        let goes_on = route.relay.iter().map(|&to| (to, message, index));
        station.held.extend(goes_on);
        // Only what goes to several neighbours may fall behind.
        if route.relay.len() == 1 && station.held.len() > 1 {
            return Err(Fault::SendCollision { step, pe: to });
        }
        if index < message.bytes {
            station.incoming = Some((message, index + 1, route));
        } else {
            station.pe.handle_received();
            if route.deliver {
                station.pe.handle_delivered();
                let delivery = self.operation.map(|it| it.delivery(message.id, to));
                self.run.arrival_steps[delivery.unwrap_or(0)] = step;
            }
        }
        self.wake(to.index(), step + 1);
        Ok(())
    }

    fn control(&mut self, from: PeId, to: PeId, item: Control) -> Result<(), Fault> {
        let step = self.step;
        let begins_on = self.begins_on();
        let station = &mut self.stations[to.index()];
        let is_word_to_send = match item {
            Control::Wakeup { .. } | Control::Order { .. } => true,
            // The schedules never send on a token, what users know does.
            Control::Token => begins_on == Word::Token,
            Control::Certificate(_) | Control::Receipt => false,
        };
        if is_word_to_send {
            station.ordered = Some(step);
        }
        let refused = |violation| Fault::Violation {
            step,
            pe: to,
            violation,
        };
        let handled = station.pe.handle_control(Time(step), from, item);
        self.wake(to.index(), step + 1);
        handled.map_err(refused)
    }
}
