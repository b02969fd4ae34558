//! Execution of transfers along the edges of a tree, flit by flit, with single ports, unbounded
//! buffers and first come, first served.

use std::collections::VecDeque;

use flitcast_proto::{PeId, Tree};

use super::Transfer;

/// The cost of a set of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The last step in which a data flit reached the end of its transfer.
    pub time_steps: u64,
    /// Number of steps in which control items crossed edges.
    pub control_steps: u64,
    /// Maximum number of flits of other PEs' messages that a PE held at the end of a step.
    pub largest_buffer_flits: u64,
}

/// A transfer at one PE on its path.
#[derive(Clone, Copy)]
struct Hop {
    transfer: usize,
    next: PeId,
    /// Number of flits that have arrived here.
    here: u64,
    /// Number of these that were sent on.
    sent: u64,
}

struct Carrier<'a> {
    tree: &'a Tree,
    transfers: &'a [Transfer],
    /// The transfers that each PE has to send, in the order of their arrival; the first is under
    /// way.
    queues: Vec<VecDeque<Hop>>,
    /// Number of transfers that each transfer still waits for.
    waits_for: Vec<usize>,
    waiting: Vec<Vec<usize>>,
    /// Number of other PEs' flits at each PE.
    held: Vec<u64>,
    /// The sender and the transfer that each PE received from last; it continues with these.
    last_received: Vec<Option<(PeId, usize)>>,
    flow: Flow,
    step: u64,
}

/// Executes all transfers.
pub fn flow(tree: &Tree, transfers: &[Transfer]) -> Flow {
    let mut carrier = Carrier {
        tree,
        transfers,
        queues: vec![VecDeque::new(); tree.len()],
        waits_for: transfers.iter().map(|it| it.after.len()).collect(),
        waiting: vec![Vec::new(); transfers.len()],
        held: vec![0; tree.len()],
        last_received: vec![None; tree.len()],
        flow: Flow::default(),
        step: 0,
    };
    for (index, transfer) in transfers.iter().enumerate() {
        for &earlier in &transfer.after {
            carrier.waiting[earlier].push(index);
        }
    }
    for index in 0..transfers.len() {
        if carrier.waits_for[index] == 0 {
            carrier.begin(index);
        }
    }
    while carrier.advance() {}
    carrier.flow
}

impl Carrier<'_> {
    /// Starts a transfer at its source.
    fn begin(&mut self, index: usize) {
        let Transfer { from, flits, .. } = self.transfers[index];
        self.queue(from, index, flits);
    }

    /// Queues a transfer at a PE that has `here` of its flits.
    fn queue(&mut self, at: PeId, transfer: usize, here: u64) {
        let next = self.toward(at, self.transfers[transfer].to);
        self.queues[at.index()].push_back(Hop {
            transfer,
            next,
            here,
            sent: 0,
        });
    }

    /// Returns the neighbour of `at` on the path to `to`.
    fn toward(&self, at: PeId, to: PeId) -> PeId {
        let down = self.tree.child_toward(at, to);
        down.or(self.tree.parent(at)).unwrap_or(at)
    }

    /// Executes one step and returns whether anything moved.
    fn advance(&mut self) -> bool {
        self.step += 1;
        // The receiver of each sender, and the sender that each PE receives from.
        let mut chosen: Vec<Option<PeId>> = vec![None; self.queues.len()];
        for from in self.tree.pes() {
            let leg = self.queues[from.index()].front();
            let Some(leg) = leg.filter(|leg| leg.sent < leg.here) else {
                continue;
            };
            let to = leg.next.index();
            let continues = self.last_received[to] == Some((from, leg.transfer));
            if continues || chosen[to].is_none() {
                chosen[to] = Some(from);
            }
        }
        let moves = self
            .tree
            .pes()
            .filter_map(|to| Some((chosen[to.index()]?, to)));
        let sent = moves.filter_map(|(from, to)| Some((from, to, self.send(from)?)));
        let sent: Vec<(PeId, PeId, Hop)> = sent.collect();
        for (from, to, leg) in &sent {
            self.receive(*from, *to, *leg);
        }
        let fullest = self.held.iter().copied().max().unwrap_or(0);
        self.flow.largest_buffer_flits = self.flow.largest_buffer_flits.max(fullest);
        !sent.is_empty()
    }

    /// Sends one flit of the transfer under way and returns its state.
    fn send(&mut self, from: PeId) -> Option<Hop> {
        let queue = &mut self.queues[from.index()];
        let leg = queue.front_mut()?;
        leg.sent += 1;
        let leg = *leg;
        let transfer = &self.transfers[leg.transfer];
        if leg.sent == transfer.flits {
            queue.pop_front();
        }
        // The sender's own part of a combined message goes first.
        let own = transfer.flits - transfer.held_flits;
        let of_others = transfer.from != from || leg.sent > own;
        if of_others && !transfer.control {
            self.held[from.index()] = self.held[from.index()].saturating_sub(1);
        }
        self.flow.control_steps += u64::from(transfer.control);
        Some(leg)
    }

    fn receive(&mut self, from: PeId, at: PeId, leg: Hop) {
        let transfer = &self.transfers[leg.transfer];
        let last = leg.sent == transfer.flits;
        self.last_received[at.index()] = (!last).then_some((from, leg.transfer));
        let keeps = transfer.to == at;
        if !keeps {
            let mut queue = self.queues[at.index()].iter_mut();
            match queue.find(|it| it.transfer == leg.transfer) {
                Some(under_way) => under_way.here += 1,
                None => self.queue(at, leg.transfer, 1),
            }
        } else if !transfer.control {
            self.flow.time_steps = self.step;
        }
        // Flits that end here are not buffered, unless a later transfer passes them on.
        let is_forwarded = self.waiting[leg.transfer].iter().any(|&later| {
            let later = &self.transfers[later];
            later.from == at && later.held_flits > 0
        });
        if !transfer.control && (!keeps || is_forwarded) {
            self.held[at.index()] += 1;
        }
        if keeps && last {
            for later in std::mem::take(&mut self.waiting[leg.transfer]) {
                self.waits_for[later] -= 1;
                if self.waits_for[later] == 0 {
                    self.begin(later);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BaselineModel;
    use super::*;
    use crate::tests::{lengths, tree};

    /// The time, the control items and the fullest buffer. A request goes down in `depth` steps, and the first
    /// flit comes back after as many; a wide window hides the requests and needs buffers. A binomial gather on
    /// its own tree has levels of 1, 2 and 4 flits, one after the other.
    #[test]
    fn transfers_take_the_steps_of_the_table() {
        let [scatter, gather] = [BaselineModel::scatter, BaselineModel::gather];
        let (linear, binomial) = (BaselineModel::Window(1), BaselineModel::Binomial);
        for (transfers, baseline, spec, flits, expected) in [
            (gather, linear, "star:4", &[0, 5, 5, 5][..], (18, 3, 0)),
            (gather, linear, "star:4", &[0, 5, 0, 5], (12, 2, 0)),
            (gather, linear, "path:4", &[0, 0, 0, 5], (10, 3, 1)),
            (
                gather,
                linear,
                "kary:2:7",
                &[0, 8, 8, 8, 8, 8, 8],
                (62, 10, 1),
            ),
            (
                gather,
                BaselineModel::Window(6),
                "kary:2:7",
                &[0, 8, 8, 8, 8, 8, 8],
                (49, 10, 15),
            ),
            (
                gather,
                binomial,
                "binomial:8",
                &[0, 1, 1, 1, 1, 1, 1, 1],
                (7, 0, 3),
            ),
            (
                scatter,
                binomial,
                "binomial:8",
                &[0, 1, 1, 1, 1, 1, 1, 1],
                (7, 0, 4),
            ),
        ] {
            let tree = tree(spec);
            let flow = flow(&tree, &transfers(baseline, &tree, flits));
            let found = (
                flow.time_steps,
                flow.control_steps,
                flow.largest_buffer_flits,
            );
            assert_eq!(found, expected, "{baseline:?} {spec} {flits:?}");
        }
    }

    #[test]
    fn the_adaptive_tree_spares_the_heavy_message_detours() {
        let flits = [0, 1, 1, 1, 1, 1, 1, 100];
        let star = tree("star:8");
        let heavy_hops = |baseline: BaselineModel| {
            let transfers = baseline.gather(&star, &flits).into_iter();
            transfers.filter(|transfer| transfer.flits >= 100).count()
        };
        assert_eq!(heavy_hops(BaselineModel::Binomial), 3);
        assert_eq!(heavy_hops(BaselineModel::Adaptive), 1);
    }

    #[test]
    fn every_flit_arrives_in_every_baseline() {
        let tree = tree("random:23:5");
        let flits = lengths(23, |i| i * 5 % 7);
        let total: u64 = flits.iter().sum();
        for baseline in [
            BaselineModel::Window(1),
            BaselineModel::Window(4),
            BaselineModel::Binomial,
            BaselineModel::Adaptive,
        ] {
            for transfers in [BaselineModel::gather, BaselineModel::scatter]
                .map(|it| it(baseline, &tree, &flits))
            {
                let is_at_root = |t: &&Transfer| [t.to, t.from].contains(&PeId::ROOT);
                let at_root = transfers.iter().filter(|t| !t.control).filter(is_at_root);
                assert_eq!(at_root.map(|t| t.flits).sum::<u64>(), total, "{baseline:?}");
                assert!(flow(&tree, &transfers).time_steps >= total, "{baseline:?}");
            }
        }
    }
}
