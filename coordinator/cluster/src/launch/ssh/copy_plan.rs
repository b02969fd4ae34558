//! The sources of the program for hosts that lack it. A host copies it from the host of its topmost
//! PE's parent, because the link between the two is known to exist. Hosts without such a parent
//! copy it from this machine; so do all hosts of a small cluster and of one that is a line.
//! `hosts.rs` copies.
//!
//! A host waits until its parent's host has the program. Then one call by ssh makes the parent's
//! host serve its file while the call lasts (`serve.rs`), for all hosts that copy it there. Another
//! call makes the host fetch it with bash, python3 or nc. Plain TCP is not authenticated, so the
//! digest goes over ssh, and the copy is not run before its digest is verified. If any step fails,
//! the host copies from this machine: a failed transfer never fails a launch. A source's topmost PE
//! is always above that of its copy, so no cycle of waiting hosts can occur.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use flitcast_proto::{PeId, Tree};

use crate::site::placement::{Placement, listen_on};

/// Minimum number of hosts for copies over the tree. Fewer hosts copy from this machine in two
/// turns (`hosts.rs`), and each level of a tree takes a turn as well
/// (`deploy/runs/2026-11-21-ssh-copies`).
const MANY: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    pub host: String,
    /// Address of the host on the edge between the two.
    pub address: IpAddr,
}

/// The source of each host, by destination of ssh.
#[derive(Debug, Default)]
pub struct CopyPlan {
    sources: HashMap<String, CopySource>,
}

impl CopyPlan {
    pub fn new(tree: &Tree, pes: &[PeId], placement: &Placement) -> CopyPlan {
        let pes: BTreeSet<PeId> = pes.iter().copied().collect();
        let host = |pe: PeId| placement.places[pe.index()].destination();
        let mut hosts: HashMap<String, (Option<CopySource>, usize)> = HashMap::new();
        let mut deepest = 0;
        // The topmost PE of a host decides. Its parent is on a host that was visited before, so no
        // cycle occurs.
        let is_remote = |pe: &PeId| pes.contains(pe) && !placement.places[pe.index()].is_here;
        for &pe in tree.top_down().iter().filter(|pe| is_remote(pe)) {
            if hosts.contains_key(&host(pe)) {
                continue;
            }
            let parent = tree.parent(pe).filter(is_remote);
            let source = parent.map(|parent| CopySource {
                host: host(parent),
                address: placement.address_for(parent, pe, 0),
            });
            let above = source.as_ref().and_then(|source| hosts.get(&source.host));
            let depth = above.map_or(0, |(_, depth)| depth + 1);
            deepest = deepest.max(depth);
            hosts.insert(host(pe), (source, depth));
        }
        // A deeper tree would copy mostly in sequence, like a path.
        if hosts.len() < MANY || 2 * deepest > hosts.len() {
            return CopyPlan::default();
        }
        let sources = hosts.into_iter();
        CopyPlan {
            sources: sources
                .filter_map(|(to, (from, _))| Some((to, from?)))
                .collect(),
        }
    }

    /// Returns the source of a host; `None` if it copies from this machine.
    pub fn source(&self, host: &str) -> Option<&CopySource> {
        self.sources.get(host)
    }

    /// Returns the address where a host serves the program; `None` if no host copies from it.
    pub fn listen(&self, host: &str) -> Option<IpAddr> {
        let takers = self.sources.values().filter(|source| source.host == host);
        let reached_at: Vec<IpAddr> = takers.map(|source| source.address).collect();
        listen_on(&reached_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places P_i on the host `h` with the number at index i.
    fn placement(on: &[usize]) -> Placement {
        let mut placement = Placement::local(on.len());
        for (place, host) in placement.places.iter_mut().zip(on) {
            place.name = Some(format!("h{host}"));
            place.address = [10, 0, 0, *host as u8].into();
        }
        placement
    }

    fn tree(pes: usize, parent: impl Fn(u32) -> u32) -> (Tree, Vec<PeId>) {
        let parents = (0..pes as u32).map(|pe| (pe > 0).then(|| PeId(parent(pe))));
        let tree = Tree::from_parents(parents.collect()).unwrap();
        let pes = tree.pes().collect();
        (tree, pes)
    }

    #[test]
    fn each_host_takes_it_from_the_one_above_its_topmost_pe() {
        // P1 is on the host of P0; P9 is on host 1 again, and P10 is its child.
        let on = [0, 0, 1, 2, 3, 4, 5, 6, 7, 1, 8];
        let parents = [0, 0, 1, 2, 2, 3, 3, 4, 7, 8, 9];
        let mut placement = placement(&on);
        // Host 1 has another address on that edge only.
        let own = [10, 9, 9, 1].into();
        placement.places[9].reached_by.insert(PeId(10), own);
        let (tree, pes) = tree(on.len(), |pe| parents[pe as usize]);
        let copy_plan = CopyPlan::new(&tree, &pes, &placement);
        let from = |host: &str| copy_plan.source(host).map(|source| source.host.as_str());
        assert_eq!(from("h0"), None);
        assert_eq!(from("h1"), Some("h0"));
        assert_eq!(from("h2"), Some("h1"));
        assert_eq!(from("h7"), Some("h6"));
        assert_eq!(from("h8"), Some("h1"));
        let address: IpAddr = [10, 9, 9, 1].into();
        assert_eq!(copy_plan.source("h8").unwrap().address, address);
        assert_eq!(copy_plan.listen("h0"), Some([10, 0, 0, 0].into()));
        assert_eq!(copy_plan.listen("h1"), Some([0, 0, 0, 0].into()));
        assert_eq!(copy_plan.listen("h8"), None);

        // The parent is not started, as when `map` runs a command again.
        let copy_plan = CopyPlan::new(&tree, &[&pes[..2], &pes[3..]].concat(), &placement);
        assert_eq!(copy_plan.source("h2"), None);
        assert_eq!(copy_plan.source("h6").unwrap().host, "h3");
    }

    #[test]
    fn few_hosts_get_it_from_here_and_so_do_those_in_a_line() {
        let takers = |hosts: usize, parent: fn(u32) -> u32| {
            // The number of PEs does not matter.
            let on: Vec<usize> = (0..2 * hosts).map(|pe| pe % hosts).collect();
            let (tree, pes) = tree(on.len(), parent);
            CopyPlan::new(&tree, &pes, &placement(&on)).sources.len()
        };
        assert_eq!(takers(MANY - 1, |_| 0), 0);
        assert_eq!(takers(MANY, |_| 0), MANY - 1);
        assert_eq!(takers(MANY, |pe| (pe - 1) / 2), MANY - 1);
        assert_eq!(takers(4 * MANY, |pe| pe - 1), 0);
    }
}
