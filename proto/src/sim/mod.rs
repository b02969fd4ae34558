//! The lock-step simulator: one state machine per PE under the papers' rules.
//!
//! In each step every PE sends at most one flit to one neighbour and receives at
//! most one from one neighbour; a flit received in step t is sent on in step
//! t+1; a message's flits stay together. The simulator checks each of these and
//! fails loudly. Receipts follow the data outside the model: they take no step.

mod table;

use std::collections::VecDeque;
use std::sync::Arc;

use thiserror::Error;

use crate::pe::{Brief, Control, Message, Operation, Pace, Pe, Route, Transmit, Violation};
use crate::{PeId, Time, Tree};

pub use table::table;

/// Something that crossed an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The step in which it crossed.
    pub step: u64,
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    /// What it was.
    pub item: Item,
}

/// What crosses an edge in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A control item.
    Control(Control),
    /// Flit `index` (from 1) of a message.
    Flit {
        /// The message.
        message: Message,
        /// 1 for the head flit.
        index: u64,
    },
}

/// A finished simulation.
#[derive(Debug)]
pub struct Run {
    /// Everything that crossed an edge, by step, then by sender.
    pub crossings: Vec<Crossing>,
    /// By PE index: the step in which the last flit of M_i reached its
    /// destination; 0 for a null message.
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
                first[message.pe().index()] = crossing.step;
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
    /// A message of which this PE is the source, and the next flit to send.
    outgoing: Option<(PeId, Message, u64)>,
    /// The flit that came in the last step and must go on in this one.
    held: Option<(PeId, Message, u64)>,
    /// The message that is coming in, the next flit expected, its route.
    incoming: Option<(Message, u64, Route)>,
    /// When the PE got its order or wakeup call.
    ordered: Option<u64>,
}

/// Runs one round, `flits[i]` being L_i, to its end.
pub fn run(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) -> Result<Run, Fault> {
    run_briefs(tree, Brief::all(tree, operation, flits, 1, Pace::LOCK_STEP))
}

/// Runs one round of the given briefs, flits of one byte and steps of one tick.
pub fn run_briefs(tree: &Arc<Tree>, briefs: Vec<Brief>) -> Result<Run, Fault> {
    let scatter = briefs.iter().any(|brief| brief.operation.is_scatter());
    let sent = briefs.iter().flat_map(|brief| &brief.sends);
    let total: u64 = sent.map(|message| message.bytes).sum();
    let stations = tree.pes().zip(briefs).map(|(id, brief)| Station {
        pe: Pe::new(tree.clone(), id, brief),
        outgoing: None,
        held: None,
        incoming: None,
        ordered: None,
    });
    let mut simulation = Simulation {
        stations: stations.collect(),
        scatter,
        step: 0,
        run: Run {
            crossings: Vec::new(),
            arrival_steps: vec![0; tree.len()],
        },
    };
    simulation.stations[0].pe.handle_trigger(Time(0));
    // Nothing in flight and no step of the schedule outstanding for this long
    // means that nothing will ever come: no wait is longer than all the flits
    // and all the control items one after the other.
    let patience = 2 * total + 8 * tree.len() as u64 + 8;
    let mut quiet = 0;
    while simulation
        .stations
        .iter()
        .any(|station| !station.pe.is_finished())
    {
        let moved = simulation.advance()?;
        quiet = if moved { 0 } else { quiet + 1 };
        if quiet > patience {
            let stuck = simulation.stations.iter().filter(|s| !s.pe.is_finished());
            let unfinished = stuck.map(|s| s.pe.id()).collect();
            return Err(Fault::Stalled {
                step: simulation.step,
                unfinished,
            });
        }
    }
    Ok(simulation.run)
}

struct Simulation {
    stations: Vec<Station>,
    scatter: bool,
    step: u64,
    run: Run,
}

impl Simulation {
    /// One step; whether anything moved in it.
    fn advance(&mut self) -> Result<bool, Fault> {
        // A step begins at the tick before it and ends at its own.
        let start = Time(self.step);
        self.step += 1;
        let mut receipts = VecDeque::new();
        let mut crossings = Vec::new();
        for at in 0..self.stations.len() {
            if let Some((to, item)) = self.send(at, start, &mut receipts)? {
                let from = self.stations[at].pe.id();
                crossings.push(Crossing {
                    step: self.step,
                    from,
                    to,
                    item,
                });
            }
        }
        let moved = !crossings.is_empty() || !receipts.is_empty();
        let mut heard: Vec<Option<PeId>> = vec![None; self.stations.len()];
        for crossing in &crossings {
            let Crossing { from, to: pe, .. } = *crossing;
            if let Some(first) = heard[pe.index()].replace(from) {
                return Err(Fault::ReceiveCollision {
                    step: self.step,
                    pe,
                    first,
                    second: from,
                });
            }
        }
        for crossing in &crossings {
            self.receive(crossing)?;
        }
        for (from, to) in receipts {
            self.control(from, to, Control::Receipt)?;
        }
        self.run.crossings.append(&mut crossings);
        Ok(moved)
    }

    /// What a station sends in this step. A port is free again at its end, before
    /// anything is received.
    fn send(
        &mut self,
        at: usize,
        start: Time,
        receipts: &mut VecDeque<(PeId, PeId)>,
    ) -> Result<Option<(PeId, Item)>, Fault> {
        let step = self.step;
        let station = &mut self.stations[at];
        let id = station.pe.id();
        if let Some((to, message, index)) = station.held.take() {
            if station.outgoing.is_some() {
                return Err(Fault::SendCollision { step, pe: id });
            }
            if index == message.bytes {
                station.pe.handle_sent();
            }
            return Ok(Some((to, Item::Flit { message, index })));
        }
        while station.outgoing.is_none() {
            match station.pe.poll_transmit(start) {
                None => return Ok(None),
                Some(Transmit::Control {
                    to,
                    item: Control::Receipt,
                }) => {
                    receipts.push_back((id, to));
                    station.pe.handle_sent();
                }
                Some(Transmit::Control { to, item }) => {
                    station.pe.handle_sent();
                    return Ok(Some((to, Item::Control(item))));
                }
                Some(Transmit::Message { to, message }) => {
                    if !self.scatter && station.ordered.is_none_or(|ordered| ordered >= step) {
                        return Err(Fault::Early { step, pe: id });
                    }
                    station.outgoing = Some((to, message, 1));
                }
            }
        }
        let Some((to, message, index)) = station.outgoing.take() else {
            return Ok(None);
        };
        if index == message.bytes {
            station.pe.handle_sent();
        } else {
            station.outgoing = Some((to, message, index + 1));
        }
        Ok(Some((to, Item::Flit { message, index })))
    }

    fn receive(&mut self, crossing: &Crossing) -> Result<(), Fault> {
        let Crossing {
            step,
            from,
            to,
            item,
        } = *crossing;
        let (message, index) = match item {
            Item::Control(item) => return self.control(from, to, item),
            Item::Flit { message, index } => (message, index),
        };
        let station = &mut self.stations[to.index()];
        let route = match station.incoming {
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
            _ => {
                let expected = station.incoming.map_or(1, |(_, expected, _)| expected);
                return Err(Fault::Torn {
                    step,
                    pe: to,
                    message,
                    index,
                    expected,
                });
            }
        };
        if let Route::Relay { to } = route {
            station.held = Some((to, message, index));
        }
        station.incoming = Some((message, index + 1, route));
        if index == message.bytes {
            station.incoming = None;
            station.pe.handle_received();
            if route == Route::Deliver {
                station.pe.handle_delivered();
                self.run.arrival_steps[message.pe().index()] = step;
            }
        }
        Ok(())
    }

    fn control(&mut self, from: PeId, to: PeId, item: Control) -> Result<(), Fault> {
        let step = self.step;
        let station = &mut self.stations[to.index()];
        if matches!(item, Control::Wakeup { .. } | Control::Order { .. }) {
            station.ordered = Some(step);
        }
        let refused = |violation| Fault::Violation {
            step,
            pe: to,
            violation,
        };
        station
            .pe
            .handle_control(Time(step), from, item)
            .map_err(refused)
    }
}
