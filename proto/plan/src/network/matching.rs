//! Matchings of two kinds of nodes that grow by augmenting paths, breadth first.

/// No node.
const NONE: u32 = u32::MAX;

/// A matching between callers and called nodes. The sets of called nodes that can be matched form a
/// matroid, so adding nodes by decreasing weight gives the matching with the heaviest nodes.
#[derive(Clone)]
pub(crate) struct Matching {
    partner: Vec<u32>,
    /// For each caller on an augmenting path, the called node before it.
    from: Vec<u32>,
    /// Whether a caller has been visited. After a failed search the mark stays, because no later
    /// search succeeds from there.
    seen: Vec<bool>,
    queue: Vec<u32>,
    looked_at: Vec<u32>,
}

impl Matching {
    /// Creates a matching of no nodes; their numbers are below `len`.
    pub(crate) fn new(len: usize) -> Matching {
        Matching {
            partner: vec![NONE; len],
            from: vec![NONE; len],
            seen: vec![false; len],
            queue: Vec::new(),
            looked_at: Vec::new(),
        }
    }

    /// Leaves these nodes without partners; the partners of called nodes have to be among them.
    pub(crate) fn clear<'n>(&mut self, nodes: impl IntoIterator<Item = &'n u32>) {
        for &node in nodes {
            self.partner[node as usize] = NONE;
            self.seen[node as usize] = false;
        }
    }

    /// Returns the partner of a node, if it has one.
    pub(crate) fn partner(&self, node: u32) -> Option<u32> {
        let partner = self.partner[node as usize];
        (partner != NONE).then_some(partner)
    }

    /// Adds a node to the called ones, if all can still be called at once. `callers` returns the nodes
    /// that can call a node.
    pub(crate) fn add<N>(&mut self, node: u32, mut callers: impl FnMut(u32) -> N) -> bool
    where
        N: IntoIterator<Item = u32>,
    {
        let is_free = |&caller: &u32| self.partner[caller as usize] == NONE;
        if let Some(caller) = callers(node).into_iter().find(is_free) {
            self.partner[caller as usize] = node;
            self.partner[node as usize] = caller;
            return true;
        }
        self.queue.clear();
        self.queue.push(node);
        self.looked_at.clear();
        let mut done = 0;
        while let Some(&called) = self.queue.get(done) {
            done += 1;
            for caller in callers(called) {
                if self.seen[caller as usize] {
                    continue;
                }
                self.seen[caller as usize] = true;
                self.looked_at.push(caller);
                self.from[caller as usize] = called;
                match self.partner[caller as usize] {
                    NONE => {
                        self.turn_over(caller, node);
                        for &caller in &self.looked_at {
                            self.seen[caller as usize] = false;
                        }
                        return true;
                    }
                    called => self.queue.push(called),
                }
            }
        }
        false
    }

    /// Matches every caller on the path from `node` to `end` with the node before it.
    fn turn_over(&mut self, end: u32, node: u32) {
        let mut caller = end;
        loop {
            let called = self.from[caller as usize];
            let next = std::mem::replace(&mut self.partner[called as usize], caller);
            self.partner[caller as usize] = called;
            if called == node {
                return;
            }
            caller = next;
        }
    }
}
