use super::*;
use crate::pe::Operation;
use crate::schedule::certification::Sync;
use crate::schedule::pace::Timing;
use crate::sim;
use crate::tree::TreeSpec;

fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().unwrap();
    Arc::new(spec.build().unwrap())
}

/// On links of one tick a flit and with software that costs nothing, every message
/// arrives in the step of the lock-step simulator.
#[test]
fn unit_links_give_the_steps_of_the_simulator() {
    for seed in 0..60u64 {
        let n = 2 + seed % 19;
        let tree = tree(&format!("random:{n}:{seed}"));
        let flits: Vec<u64> = (0..n)
            .map(|i| if i == 0 { 0 } else { (i * 7 + seed * 13) % 9 })
            .collect();
        let mut operations = vec![
            Operation::Scatter,
            Operation::Certification(Sync::Serial),
            Operation::Certification(Sync::Pipelined),
        ];
        if tree.is_path() {
            operations.push(Operation::ShoulderTap);
        }
        for operation in operations {
            let briefs = Brief::all(&tree, operation, &flits, &Timing::LOCK_STEP);
            let predicted = predict(&tree, &briefs, &Model::unit(tree.len())).unwrap();
            let simulated = sim::run(&tree, operation, &flits).unwrap();
            let steps: Vec<u64> = predicted
                .arrivals_ns
                .iter()
                .map(|a| a.unwrap_or(0))
                .collect();
            assert_eq!(steps, simulated.arrival_steps, "{operation:?}, seed {seed}");
        }
    }
}
