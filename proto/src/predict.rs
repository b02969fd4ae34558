//! What a round will take on measured links: the PEs' own state machines, run
//! in virtual time.
//!
//! A link carries a message in `latency_ns` plus `ns_per_byte` for each of its
//! bytes; a relay starts with the first whole flit. Nothing is known here of an
//! algorithm: who sends what when, the machines say, as they do in a real round.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::cost::{Edge, Link};
use crate::pe::{Brief, Control, Message, Operation, Pace, Pe, Route, Transmit, Violation};
use crate::spans::Span;
use crate::{PeId, Time, Tree};

/// What a round is expected to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// By PE index: when the last byte of M_i reaches its destination, counted
    /// from P0's trigger; `None` for a null message.
    pub arrivals_ns: Vec<Option<u64>>,
    /// By PE index: what its ports do, in nanoseconds from P0's trigger.
    pub spans: Vec<Vec<Span>>,
}

impl Prediction {
    /// The last arrival; 0 if there is nothing to send.
    pub fn round_ns(&self) -> u64 {
        self.arrivals_ns
            .iter()
            .copied()
            .flatten()
            .max()
            .unwrap_or(0)
    }
}

/// Predicts a round; `bytes[i]` is the length of M_i, `edges[i]` the edge between
/// P_i and its parent (`edges[0]` is not looked at).
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule, not of the caller's.
pub fn predict(
    tree: &Arc<Tree>,
    operation: Operation,
    bytes: &[u64],
    flit_bytes: u32,
    pace: Pace,
    edges: &[Edge],
) -> Result<Prediction, Violation> {
    let briefs = Brief::all(tree, operation, bytes, flit_bytes, pace);
    let mut world = World {
        pes: tree
            .pes()
            .zip(briefs)
            .map(|(id, brief)| Pe::new(tree.clone(), id, brief))
            .collect(),
        tree,
        edges,
        flit_bytes: u64::from(flit_bytes),
        waiting: vec![VecDeque::new(); tree.len()],
        events: BTreeMap::new(),
        caused: 0,
        arrivals_ns: vec![None; tree.len()],
    };
    world.pes[0].handle_trigger(Time(0));
    world.settle(0, PeId::ROOT)?;
    while let Some(((now, _), event)) = world.events.pop_first() {
        world.happen(now, event)?;
    }
    Ok(Prediction {
        arrivals_ns: world.arrivals_ns,
        spans: vec![Vec::new(); tree.len()],
    })
}

/// A message at the entrance of a PE: its first flit is there, its last byte will
/// be at `tail`.
#[derive(Clone, Copy)]
struct Front {
    from: PeId,
    message: Message,
    tail: u64,
}

enum Event {
    /// A control item is at its receiver.
    Control { at: PeId, from: PeId, item: Control },
    /// A message is at the entrance of a PE.
    Front { at: PeId, front: Front },
    /// The receive port is free; the message was for this PE, or passed through.
    Received {
        at: PeId,
        message: Message,
        route: Route,
    },
    /// The send port is free.
    Sent { at: PeId },
    /// Time alone may have brought something.
    Wake { at: PeId },
}

struct World<'a> {
    pes: Vec<Pe>,
    tree: &'a Tree,
    edges: &'a [Edge],
    flit_bytes: u64,
    /// Messages that wait for a PE's receive port, oldest first.
    waiting: Vec<VecDeque<Front>>,
    /// By time, and at the same time in the order in which they were caused.
    events: BTreeMap<(u64, u64), Event>,
    caused: u64,
    arrivals_ns: Vec<Option<u64>>,
}

impl World<'_> {
    fn link(&self, from: PeId, to: PeId) -> Link {
        match self.tree.parent(to) == Some(from) {
            true => self.edges[to.index()].down,
            false => self.edges[from.index()].up,
        }
    }

    fn cause(&mut self, at: u64, event: Event) {
        self.caused += 1;
        self.events.insert((at, self.caused), event);
    }

    fn happen(&mut self, now: u64, event: Event) -> Result<(), Violation> {
        let at = match event {
            Event::Control { at, from, item } => {
                self.pes[at.index()].handle_control(Time(now), from, item)?;
                at
            }
            Event::Front { at, front } => {
                self.waiting[at.index()].push_back(front);
                at
            }
            Event::Received { at, message, route } => {
                let pe = &mut self.pes[at.index()];
                pe.handle_received();
                if route == Route::Deliver {
                    pe.handle_delivered();
                    self.arrivals_ns[message.pe().index()] = Some(now);
                }
                at
            }
            Event::Sent { at } => {
                self.pes[at.index()].handle_sent();
                at
            }
            Event::Wake { at } => at,
        };
        self.settle(now, at)
    }

    /// Lets a PE do all that it can do now.
    fn settle(&mut self, now: u64, at: PeId) -> Result<(), Violation> {
        let waiting = &self.waiting[at.index()];
        let its_turn = waiting
            .iter()
            .position(|front| self.pes[at.index()].listens_to(front.from));
        if let Some(front) = its_turn.and_then(|place| self.waiting[at.index()].remove(place)) {
            self.take(now, at, front)?;
        }
        match self.pes[at.index()].poll_transmit(Time(now)) {
            Some(Transmit::Control { to, item }) => {
                let there = now + self.link(at, to).latency_ns as u64;
                self.cause(
                    there,
                    Event::Control {
                        at: to,
                        from: at,
                        item,
                    },
                );
                self.cause(now, Event::Sent { at });
            }
            Some(Transmit::Message { to, message }) => {
                let out = now + self.nanos(at, to, message.bytes);
                self.send(now, at, to, message, out);
            }
            None => {
                if let Some(Time(due)) = self.pes[at.index()].poll_timeout()
                    && due > now
                {
                    self.cause(due, Event::Wake { at });
                }
            }
        }
        Ok(())
    }

    /// The receive port takes a message that stands at the entrance.
    fn take(&mut self, now: u64, at: PeId, front: Front) -> Result<(), Violation> {
        let Front {
            from,
            message,
            tail,
        } = front;
        let route = self.pes[at.index()].handle_head(from, message)?;
        // What had to wait comes in at the link's rate from now.
        let rest = message.bytes.saturating_sub(self.flit_bytes);
        let tail = tail.max(now + self.nanos(from, at, rest));
        if let Route::Relay { to } = route {
            let last_flit = message.bytes.min(self.flit_bytes);
            let out =
                (now + self.nanos(at, to, message.bytes)).max(tail + self.nanos(at, to, last_flit));
            self.send(now, at, to, message, out);
        }
        self.cause(tail, Event::Received { at, message, route });
        Ok(())
    }

    /// A message starts to leave a PE now; its last byte is out at `out`.
    fn send(&mut self, now: u64, at: PeId, to: PeId, message: Message, out: u64) {
        let latency = self.link(at, to).latency_ns as u64;
        let first_flit = self.nanos(at, to, message.bytes.min(self.flit_bytes));
        let front = Front {
            from: at,
            message,
            tail: out + latency,
        };
        self.cause(now + latency + first_flit, Event::Front { at: to, front });
        self.cause(out, Event::Sent { at });
    }

    fn nanos(&self, from: PeId, to: PeId, bytes: u64) -> u64 {
        (self.link(from, to).ns_per_byte * bytes as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::certification::Sync;
    use crate::tree::TreeSpec;

    /// On links of one tick a flit and no latency, the prediction of a scatter is
    /// the schedule's own arithmetic.
    #[test]
    fn unit_links_give_the_steps_of_the_schedule() {
        let spec: TreeSpec = "kary:2:15".parse().unwrap();
        let tree = Arc::new(spec.build().unwrap());
        let flits: Vec<u64> = (0..15)
            .map(|i| if i == 0 { 0 } else { i * 7 % 5 })
            .collect();
        let link = Link {
            ns_per_byte: 1.0,
            ..Link::default()
        };
        let edges = vec![
            Edge {
                down: link,
                up: link
            };
            15
        ];
        let run = predict(
            &tree,
            Operation::Scatter,
            &flits,
            1,
            Pace::LOCK_STEP,
            &edges,
        )
        .unwrap();
        assert_eq!(
            run.round_ns(),
            crate::schedule::scatter::optimal_steps(&tree, &flits)
        );
    }

    #[test]
    fn every_message_of_every_operation_arrives() {
        let spec: TreeSpec = "path:6".parse().unwrap();
        let tree = Arc::new(spec.build().unwrap());
        let bytes = [0, 100, 0, 70_000, 1, 1_000_000];
        let link = Link {
            latency_ns: 20_000.0,
            ns_per_byte: 0.2,
            burst_bytes: 0.0,
        };
        let edges = vec![
            Edge {
                down: link,
                up: link
            };
            6
        ];
        for operation in [
            Operation::Scatter,
            Operation::ShoulderTap,
            Operation::Certification(Sync::Serial),
            Operation::Certification(Sync::Pipelined),
        ] {
            for step in [0, 5_000] {
                let pace = Pace {
                    step,
                    control_step: 0,
                };
                let run = predict(&tree, operation, &bytes, 65_536, pace, &edges).unwrap();
                for (arrival, bytes) in run.arrivals_ns.iter().zip(bytes) {
                    assert_eq!(arrival.is_some(), bytes > 0, "{operation:?}: {run:?}");
                }
            }
        }
    }
}
