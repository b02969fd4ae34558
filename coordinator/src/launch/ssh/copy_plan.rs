//! Who takes the program from whom, where hosts lack it: from the host of its PE's parent,
//! since the edge between the two is the one link that is known to be there. Who has no
//! parent elsewhere gets it from here, and so do all of a cluster that is small or in a line. How
//! it is taken is `hosts.rs`'s business.
//!
//! A host that lacks it waits until its parent's has it. Then a call by ssh has that one hand out its own
//! file as long as the call lasts (`serve.rs`), one call for all who take it there, and another has the
//! child fetch it with what is there of bash, python3 and nc. Over plain TCP anybody may have answered, so
//! the digest goes to the child over ssh, and nothing of what came is run before it is found right.
//! Whatever goes wrong with this, the host gets its copy from here: it is never why a launch fails. Hosts
//! take it from those whose topmost PE stands above theirs, so nobody waits for itself.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use flitcast_proto::{PeId, Tree};

use crate::site::placement::{Placement, listen_on};

/// From so many hosts on, copies go over the tree: fewer have theirs from here in two turns
/// (`hosts.rs`), and each step down a tree takes a turn, too
/// (`deploy/runs/2026-11-21-ssh-copies`).
const MANY: usize = 8;

/// Where a host takes the program from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The other host, as ssh calls it.
    pub host: String,
    /// Where it is reached on the edge between them.
    pub address: IpAddr,
}

/// Who takes the program from whom, by what ssh calls the hosts.
#[derive(Debug, Default)]
pub struct CopyPlan {
    sources: HashMap<String, CopySource>,
}

impl CopyPlan {
    /// Among the hosts of these PEs.
    pub fn new(tree: &Tree, pes: &[PeId], placement: &Placement) -> CopyPlan {
        let pes: BTreeSet<PeId> = pes.iter().copied().collect();
        let host = |pe: PeId| placement.places[pe.index()].destination();
        let mut hosts: HashMap<String, (Option<CopySource>, usize)> = HashMap::new();
        let mut deepest = 0;
        // The topmost PE of a host decides. Its parent is on a host that was met before, so
        // that nobody waits for whom it keeps waiting.
        for &pe in tree.top_down().iter().filter(|pe| pes.contains(pe)) {
            if hosts.contains_key(&host(pe)) {
                continue;
            }
            let parent = tree.parent(pe).filter(|parent| pes.contains(parent));
            let source = parent.map(|parent| CopySource {
                host: host(parent),
                address: placement.address_for(parent, pe, 0),
            });
            let above = source.as_ref().and_then(|source| hosts.get(&source.host));
            let depth = above.map_or(0, |(_, depth)| depth + 1);
            deepest = deepest.max(depth);
            hosts.insert(host(pe), (source, depth));
        }
        // A tree that is deeper than that hands it on one by one, much like a path.
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

    /// Where this host takes it from; `None` if it gets it from here.
    pub fn source(&self, host: &str) -> Option<&CopySource> {
        self.sources.get(host)
    }

    /// Where this host hands it out; `None` if nobody takes it from there.
    pub fn listen(&self, host: &str) -> Option<IpAddr> {
        let takers = self.sources.values().filter(|source| source.host == host);
        let reached_at: Vec<IpAddr> = takers.map(|source| source.address).collect();
        listen_on(&reached_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P_i is on the host `h` and the number that stands there.
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
        // P1 is where P0 is; P9 is on host 1 again, and P10 hangs below it.
        let on = [0, 0, 1, 2, 3, 4, 5, 6, 7, 1, 8];
        let parents = [0, 0, 1, 2, 2, 3, 3, 4, 7, 8, 9];
        let mut placement = placement(&on);
        // On that edge alone, host 1 has another address.
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

        // Whose parent is not started, as where `map` runs a command again.
        let copy_plan = CopyPlan::new(&tree, &[&pes[..2], &pes[3..]].concat(), &placement);
        assert_eq!(copy_plan.source("h2"), None);
        assert_eq!(copy_plan.source("h6").unwrap().host, "h3");
    }

    #[test]
    fn few_hosts_get_it_from_here_and_so_do_those_in_a_line() {
        let takers = |hosts: usize, parent: fn(u32) -> u32| {
            // However many PEs they have.
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
