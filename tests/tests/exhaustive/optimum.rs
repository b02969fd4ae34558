//! The minimum time of any gather in the model, by branch and bound over the steps in which the
//! messages reach P0. It knows all lengths from the start, so no distributed algorithm, which has
//! to find them, can be faster.
//!
//! The rest need not be searched:
//!
//! - **Data.** Data never waits on its path. A flit that reaches P0 in step t was sent by the PE at
//!   depth d of its path in step t - (d - 1), whatever its message is. So two messages that share a
//!   PE collide there if and only if they collide at P0, and the ports can transfer the data
//!   exactly if no two messages overlap at P0.
//! - **Orders.** One for each edge on a path of a message is enough: a second one contains nothing
//!   new. An order needs its sender's port, which may be sending data then. The receiver's port is
//!   always free: nothing moves below a PE that has no order yet.
//! - **Times.** Once the data is placed, the free steps of each PE's send port are fixed, and every
//!   order may be as late as possible. From the leaves up, each PE has a latest step for its own
//!   order, and its children's orders take its latest free steps, the child with the latest
//!   deadline first. This is optimal for unit jobs with deadlines, so there is no choice to branch
//!   on. The data is possible exactly if P0 need not start before step 1.

use flitcast_proto::{PeId, Tree};

/// Returns the least time of any gather, in steps; 0 if there is nothing to send.
pub fn gather_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let total = flits.iter().sum();
    (total..)
        .find(|&time_steps| Search::new(tree, flits, time_steps).place_rest(1, total))
        .expect("the range has no end")
}

struct Search<'a> {
    tree: &'a Tree,
    flits: &'a [u64],
    /// The step in which the gather must be over.
    time_steps: u64,
    /// For each message that is placed, the latest step for its PE's order.
    order_by: Vec<Option<u64>>,
    /// Bit t: the PE sends data in step t. P0 never does.
    sends: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(tree: &'a Tree, flits: &'a [u64], time_steps: u64) -> Search<'a> {
        assert!(time_steps < 64, "steps are bits of a word");
        Search {
            tree,
            flits,
            time_steps,
            order_by: vec![None; tree.len()],
            sends: vec![0; tree.len()],
        }
    }

    /// Returns whether the messages that are not placed, `left` flits, can all reach P0 from step
    /// `from` on and in time.
    fn place_rest(&mut self, from: u64, left: u64) -> bool {
        if left == 0 {
            return true;
        }
        for pe in self.tree.pes().skip(1) {
            let own = self.flits[pe.index()];
            if own == 0 || self.order_by[pe.index()].is_some() {
                continue;
            }
            let depth = u64::from(self.tree.depth(pe));
            // An order takes `depth` steps, and so does the data.
            let earliest = from.max(2 * depth);
            for arrival in earliest..=(self.time_steps + 1).saturating_sub(left) {
                self.order_by[pe.index()] = Some(arrival - depth);
                self.toggle(pe, arrival);
                // Messages that are not placed yet can only make it harder, so if the orders do not
                // fit now they never will.
                let placed = self.orders_fit() && self.place_rest(arrival + own, left - own);
                self.toggle(pe, arrival);
                self.order_by[pe.index()] = None;
                if placed {
                    return true;
                }
            }
        }
        false
    }

    /// Adds the message of `pe` to the ports of its path, or removes it.
    fn toggle(&mut self, pe: PeId, arrival: u64) {
        let at_p0 = ((1 << self.flits[pe.index()]) - 1) << arrival;
        let mut way = pe;
        while let Some(parent) = self.tree.parent(way) {
            self.sends[way.index()] ^= at_p0 >> (self.tree.depth(way) - 1);
            way = parent;
        }
    }

    /// Returns whether every PE whose message is placed can have its order in time.
    fn orders_fit(&self) -> bool {
        let mut latest = self.order_by.clone();
        for &pe in self.tree.top_down().iter().rev() {
            let children = self.tree.children(pe).iter();
            let mut deadlines: Vec<u64> =
                children.filter_map(|child| latest[child.index()]).collect();
            deadlines.sort_unstable_by(|a, b| b.cmp(a));
            let mut first_order = 64;
            for deadline in deadlines {
                let steps = 1u64.unbounded_shl(first_order.min(deadline as u32 + 1)) - 1;
                let free = steps & !self.sends[pe.index()];
                // Bit 0 does not represent a step.
                let Some(step @ 1..) = free.checked_ilog2() else {
                    return false;
                };
                first_order = step;
                let own = latest[pe.index()].unwrap_or(u64::MAX);
                latest[pe.index()] = Some(own.min(u64::from(step) - 1));
            }
        }
        true
    }
}
