//! The trees over which the messages of a request may be split.

use std::sync::Arc;

use flitcast_plan::network::cover::{Cover, cover};
use flitcast_proto::wire::MAX_LANES;
use flitcast_proto::{PeId, Tree};

use crate::job::parallel_trees::{ParallelTrees, has_parts};
use crate::job::request::{Request, Site};
use crate::options::order::MessageOrder;
use crate::site::reachability::Reachability;

/// Returns the trees over which the messages of a request may be split.
pub fn lanes_of(request: &Request) -> ParallelTrees {
    let (site, way) = (&request.site, &request.way);
    let rails = site.placement.rails();
    let expected = way.covers || rails > 1;
    let none = |why: &'static str| ParallelTrees {
        extra_trees: Vec::new(),
        alone: false,
        why_none: expected.then_some(why),
    };
    if !expected || way.baseline.is_some() || !has_parts(way.operation) {
        return none("this is played on one tree");
    }
    if way.packets.is_some() || way.order != MessageOrder::Tail {
        return none("packets and orders are worked out for one tree");
    }
    if site.tree.count() < site.tree.len() {
        return none("some PEs are not there");
    }
    let extra_trees = match way.covers {
        true => match covering(site) {
            Ok(extra_trees) => extra_trees,
            Err(why) => return none(why),
        },
        false => vec![site.tree.clone(); (rails - 1).min(MAX_LANES - 1)],
    };
    let fits = way.operation.fits();
    match extra_trees.iter().all(|tree| fits.holds(tree)) {
        true => ParallelTrees {
            extra_trees,
            alone: way.covers,
            why_none: None,
        },
        false => none("the algorithm does not work on all trees of the cover"),
    }
}

/// Returns the trees of a cover of the site's network.
fn covering(site: &Site) -> Result<Vec<Arc<Tree>>, &'static str> {
    let (Reachability::Network(spanned), Some(nodes)) = (&site.reach, &site.nodes) else {
        return Err("nothing says which network there is");
    };
    let tree = &site.tree;
    if tree.root() != PeId::ROOT {
        return Err("a cover is one from P0: say --root, and not --from or --to");
    }
    let cover = cover(&spanned.network, spanned.spec.as_ref(), nodes[0]);
    let Ok(Cover { trees, .. }) = cover else {
        return Err("the network is too large to work a cover out");
    };
    if trees.len() >= MAX_LANES {
        return Err("the cover has more trees than can be played on at once");
    }
    if trees.len() < 2 {
        return Err("no two trees over this network share no link");
    }
    let has_own_links = |tree: &Tree| match site.placement.has_any_edge() {
        true => site.own_links,
        false => site.placement.has_own_links(tree),
    };
    match trees.iter().all(has_own_links) {
        true => Ok(trees.into_iter().map(Arc::new).collect()),
        false => Err(
            "a PE has one network card for all its neighbours, so more trees would share it \
             (reached_by in a cluster file gives neighbours separate links; on this machine --link does)",
        ),
    }
}
