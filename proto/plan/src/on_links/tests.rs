//! Plans on links with only a latency, only a rate and only a set-up time.

use flitcast_proto::schedule::{certification::Sync, pace::Pacing};

use super::*;
use crate::algorithms::{Algorithm, plan::plan};
use crate::baseline::{BaselineModel, after_token, binomial_tree};
use crate::cost::Link;
use crate::gossip::{Gossip, GossipNetwork};
use crate::tests::{lengths, link, tree};
use crate::timing::Timing;

const LATENCY: Link = link(1.0, 0.0, 0.0);
const SETUP: Link = link(0.0, 1.0, 0.0);
const RATE: Link = link(0.0, 0.0, 1.0);

/// A model of one port for each PE, whose control items have no bytes.
fn model(pes: usize, link: Link) -> Model {
    Model {
        control_bytes: 0,
        ..Model::alike(pes, link)
    }
}

/// Returns the times of a plan of one flit from or to each PE with a latency, a rate and a set-up.
fn times(operation: Algorithm, spec: &str) -> [f64; 3] {
    let tree = tree(spec);
    let flits = lengths(tree.len() as u64, |_| 1);
    let plan = plan(&tree, operation, &flits);
    [LATENCY, RATE, SETUP].map(|link| {
        let model = model(tree.len(), link);
        let timing = Timing::of(&model, 1, Pacing::default());
        course(&plan.on_links(&timing), &tree, &model, 1).time_ns
    })
}

#[test]
fn control_items_take_latencies_alone() {
    let certification = Algorithm::certification;
    // Down the path, and data back up.
    assert_eq!(times(Algorithm::SHOULDER_TAP, "path:6"), [10.0, 5.0, 5.0]);
    // Token, certificates, orders and data, 5 edges each; serially the same on a path.
    for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
        assert_eq!(times(certification(sync), "path:6"), [20.0, 5.0, 5.0]);
    }
    let [gather, scatter] = [certification(Sync::Pipelined), Algorithm::FARTHEST_FIRST];
    assert_eq!(times(gather, "kary:2:7"), [8.0, 6.0, 6.0]);
    assert_eq!(times(scatter, "kary:2:7"), [2.0, 6.0, 6.0]);
}

/// Returns the times of a gossip of blocks of `flits` flits in a complete network.
fn gossip(algorithm: &str, pes: usize, flits: u64) -> [f64; 3] {
    let algorithm = algorithm.parse().expect("an algorithm");
    let plan = Gossip::new(GossipNetwork::Complete(pes), &vec![flits; pes], &algorithm);
    let sent = of_gossip(&plan.expect("it suits"), true);
    let tree = tree(&format!("star:{pes}"));
    let time = |link| course(&sent, &tree, &model(pes, link), 1).time_ns;
    [LATENCY, RATE, SETUP].map(time)
}

#[test]
fn nothing_waits_for_the_end_of_a_step_and_a_port_pays_for_each_packet() {
    assert_eq!(gossip("dissemination", 8, 1), [3.0, 7.0, 3.0]);
    // The last step sends what its senders have from the beginning.
    assert_eq!(gossip("dissemination", 9, 1), [3.0, 8.0, 4.0]);
    assert_eq!(gossip("direct", 8, 1), [1.0, 7.0, 7.0]);
    assert_eq!(gossip("circulate", 8, 3), [7.0, 21.0, 7.0]);
    assert_eq!(gossip("neighbour", 8, 1), [4.0, 7.0, 4.0]);
}

#[test]
fn baselines_wait_for_requests_and_tokens() {
    let star = tree("star:6");
    let flits = [0, 1, 1, 1, 1, 1];
    let gather = |window| of_transfers(&BaselineModel::Window(window).gather(&star, &flits));
    let time =
        |sent: &[Sent], tree: &Tree, link| course(sent, tree, &model(tree.len(), link), 1).time_ns;
    assert_eq!(time(&gather(1), &star, LATENCY), 10.0);
    assert_eq!(time(&gather(4), &star, LATENCY), 4.0);
    assert_eq!(time(&gather(1), &star, RATE), 5.0);
    let binomial = binomial_tree(8);
    let transfers = BaselineModel::Binomial.gather(&binomial, &[0, 1, 1, 1, 1, 1, 1, 1]);
    let token_transfers = of_transfers(&after_token(&binomial, transfers));
    assert_eq!(time(&token_transfers, &binomial, LATENCY), 6.0);
    assert_eq!(time(&token_transfers, &binomial, SETUP), 7.0);
}
