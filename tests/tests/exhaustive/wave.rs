//! The least time in which P0 can have a certificate from every PE: a token down
//! every edge, then, when a PE has its children's certificates, its own up. By
//! trying every order of the tokens.

use flitcast_proto::{PeId, Tree};

use super::every::for_each_order;

/// The step in which P0 can have the last certificate. Orders that depend on all
/// of them cross after it, and all ports are free then; so the best gather that
/// collects certificates first takes this and the best gather's time.
pub fn steps(tree: &Tree) -> u64 {
    certified(tree, PeId::ROOT)
}

/// How many steps after its token a PE can have its children's certificates. Any
/// later is possible too: a certificate can wait, data cannot.
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
