//! The minimum time in which P0 can receive a certificate from every PE, over all orders of the
//! tokens: a token crosses every edge downwards, and a PE sends its certificate up when it has
//! those of its children.

use flitcast_proto::{PeId, Tree};

use super::every::for_each_order;

/// Returns the step in which P0 can have the last certificate. Orders that depend on all of them cross
/// after it, and all ports are free then; so the best gather that collects certificates first takes
/// this and the best gather's time.
pub fn steps(tree: &Tree) -> u64 {
    certified(tree, PeId::ROOT)
}

/// Returns the number of steps after its token until a PE can have its children's certificates. Any
/// later time is possible too: a certificate can wait, data cannot.
fn certified(tree: &Tree, pe: PeId) -> u64 {
    let children = tree.children(pe).iter();
    // From a child's token to its certificate.
    let mut answers: Vec<u64> = children.map(|&child| certified(tree, child) + 1).collect();
    let mut least = u64::MAX;
    for_each_order(&mut answers, &mut |answers| {
        let mut ready: Vec<u64> = (1..).zip(answers).map(|(token, a)| token + a).collect();
        ready.sort_unstable();
        let last = ready.iter().fold(0, |last, &step| step.max(last + 1));
        least = least.min(last);
    });
    least
}
